"""NetworkX's routine, and the usual k-loop with an array package: n whole-matrix operations, with the sums in another matrix.

    for k in range(n):
        distance = minimum(distance, distance[:, k, None] + distance[k])

Written as efficiently as each package allows: in place, without allocations in the loop, on the timed device and stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from fwtui_kernels.parts import library
from fwtui_kernels.parts.library import LibraryProgram
from fwtui_kernels.plan import Buffers, Cost, Kernel, Program, Rect, Shape, Step, Target

TOGETHER = 64  # values of k in a step


def _plan(shape: Shape, stepwise: bool, passes: int) -> Iterator[Step]:
    """Several k per step, as such a loop need not check for cancelling at every k; `passes`: over a matrix in memory, per k."""
    n = shape.n
    everything = Rect(0, 0, n, n)
    for first in range(0, n, TOGETHER):
        end = min(first + TOGETHER, n)
        cost = Cost((end - first) * n**2, (end - first) * passes * n**2 * shape.itemsize)
        yield Step("relax", "all", (first, end), cost, (everything,), (everything,))


def _loop(library: Any, sums: Any) -> Callable[[Any, int, int], None]:
    """The loop with NumPy, or with a package that has its functions."""

    def relax(matrix: Any, first: int, end: int) -> None:
        for k in range(first, end):
            library.add(matrix[:, k, None], matrix[k], out=sums)
            library.minimum(matrix, sums, out=matrix)

    return relax


def _numpy(shape: Shape, target: Target) -> Program:
    import numpy as np

    from fwtui_kernels.programs.cpu_program import CpuProgram

    return CpuProgram(shape, {"relax": _loop(np, np.empty((shape.n, shape.n), shape.dtype))})


def _torch_on_cpu(shape: Shape, target: Target) -> Program:
    import torch  # pyright: ignore[reportMissingImports]

    from fwtui_kernels.programs.cpu_program import CpuProgram

    relax = _loop(torch, torch.empty((shape.n, shape.n), dtype=getattr(torch, shape.dtype)))
    # the same memory
    return CpuProgram(shape, {"relax": lambda distance, first, end: relax(torch.from_numpy(distance), first, end)})


def _torch(shape: Shape, target: Target) -> Program:
    import torch  # pyright: ignore[reportMissingImports]

    relax = _loop(torch, torch.empty((shape.n, shape.n), dtype=getattr(torch, shape.dtype), device="cuda"))

    def of(stream: Any) -> Any:
        return torch.cuda.stream(torch.cuda.ExternalStream(int(stream.handle)))

    def to_device(matrix: Any) -> Any:
        return torch.from_numpy(matrix).to("cuda")

    return DeviceLoop(shape, relax, of, to_device, lambda matrix: matrix.cpu().numpy(), lambda to, source: to.copy_(source))


def _cupy(shape: Shape, target: Target) -> Program:
    import cupy  # pyright: ignore[reportMissingImports]

    # row and column k do not change in step k, so no thread reads what another writes
    relaxed = cupy.ElementwiseKernel("T to, T onward", "T distance", "distance = min(distance, T(to + onward))", "relax")

    def relax(matrix, first, end):
        for k in range(first, end):
            relaxed(matrix[:, k : k + 1], matrix[k : k + 1], matrix)

    def of(stream: Any) -> Any:
        return cupy.cuda.ExternalStream(int(stream.handle))

    return DeviceLoop(shape, relax, of, cupy.asarray, cupy.asnumpy, cupy.copyto)


@dataclass(eq=False)
class DeviceLoop(Program):
    """A matrix of another package on the GPU, worked on in the stream that is timed."""

    shape: Shape
    relax: Callable[[Any, int, int], None]
    of: Callable[[Any], Any]  # the package's own form of a stream, as a context
    to_device: Callable[[Any], Any]
    to_host: Callable[[Any], Any]
    copy: Callable[[Any, Any], object]

    def allocate(self) -> Buffers:
        return [None, None]  # result, input: the package allocates both when it has the input

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        import numpy as np

        with self.of(stream):
            for place in range(2):
                buffers[place] = self.to_device(np.ascontiguousarray(matrix))  # type: ignore[index]
            stream.synchronize()

    def restore(self, buffers: Buffers, stream: Any) -> None:
        with self.of(stream):
            self.copy(buffers[0], buffers[1])

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        with self.of(stream):
            self.relax(buffers[0], *step.args)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        with self.of(stream):
            host = self.to_host(buffers[0])
            stream.synchronize()
        return host


def _kernel(name: str, title: str, backend: str, build: Callable[[Shape, Target], Program], fused: bool = False) -> Kernel:
    package = title.partition(",")[0]

    return Kernel(
        id=name,
        title=title,
        backend=backend,
        papers=(package,),
        plan=partial(_plan, passes=2 if fused else 4),  # or with sums that are also written and read
        build=build,
        summary=f"The k-loop on whole matrices with {package}, in place.",
        lesson="",
        compiles=backend == "cuda",
        simulates=False,
        matrices=1 if fused else 2,
    )


NUMPY = _kernel("numpy", "NumPy, k-loop", "cpu", _numpy)
WITH_TORCH = (
    _kernel("torch-cpu", "PyTorch, k-loop on the CPU", "cpu", _torch_on_cpu),
    _kernel("torch", "PyTorch, k-loop", "cuda", _torch),
)
CUPY = _kernel("cupy", "CuPy, k-loop in one kernel", "cuda", _cupy, fused=True)


def _networkx_graph(n: int, rows: Any, columns: Any, weights: Any) -> Any:
    import networkx  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True))
    return graph


def _networkx_distances(graph: Any) -> Any:
    """Converting the graph to an array is part of the routine, so it is timed."""
    import networkx  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

    return networkx.floyd_warshall_numpy(graph, nodelist=range(len(graph.nodes)))


NETWORKX = Kernel(
    id="networkx",
    title="NetworkX, floyd_warshall_numpy",
    backend="cpu",
    papers=("NetworkX, floyd_warshall_numpy",),
    plan=library.plan,
    build=lambda shape, target: LibraryProgram(shape, _networkx_graph, _networkx_distances),
    summary="The graph library's routine: a k-loop with NumPy in double precision.",
    lesson="",
    compiles=False,
    itemsize=8,
    host_bytes=500,  # an edge is a dictionary in a dictionary
    simulates=False,
)
