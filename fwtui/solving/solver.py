"""`solve`: a graph in, shortest paths out."""

from __future__ import annotations

import time
from math import fsum
from typing import Any

import numpy as np

from fwtui.errors import Refused
from fwtui.graphs.adjacency import Adjacency, weights_along
from fwtui.graphs.bounds import AFTERWARDS, limit
from fwtui.graphs.cycles import negative_cycle
from fwtui.graphs.graph import blocks
from fwtui.graphs.objects import accept
from fwtui.measure.engine import Engine
from fwtui.solving import device as gpu
from fwtui.solving import host
from fwtui.solving.choice import ROUNDED, Choice, choices
from fwtui.solving.paths import Paths
from fwtui.solving.result import Result, Stats
from fwtui.solving.room import check_room
from fwtui.solving.solved import Tell
from fwtui.text import shown
from kernels import registry
from kernels.plan import Kernel

_SHOWN = 8  # vertices of a negative cycle in words


def solve(
    graph: Any,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
) -> Result:
    """Distances between all pairs of vertices, as scipy.sparse.csgraph.shortest_path gives them, and how they were found.

    `graph` is an (n, n) NumPy array (+inf, NaN or a mask for no edge), a SciPy sparse matrix, a NetworkX graph, or an array on
    a GPU (`__cuda_array_interface__`), where its distances stay. `dtype`
    ("int16", "int32", "float32") is chosen from the weights: 16 bit where distances provably fit, else int32, else float32.
    `kernel` is "auto", "numpy" or a kernel's id; `device` is "cpu", a GPU's number, or None for the GPU where that pays.

    Other than in SciPy, a zero in a dense array is an edge of weight 0, a negative self-loop is a negative cycle, and
    distances are float32 where that is exact. Raises scipy.sparse.csgraph.NegativeCycleError, Refused (a ValueError) for
    what is no graph or does not fit, and TypeError.
    """
    if hasattr(graph, "__cuda_array_interface__"):
        return _on_device(graph, dtype, predecessors, kernel, device)
    return answer(accept(graph), dtype=dtype, predecessors=predecessors, kernel=kernel, device=device)


def answer(
    adjacency: Adjacency,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    engine: Engine | None = None,
    tell: Tell = lambda share: None,
) -> Result:
    """As solve. `tell` hears the share that is done; `engine` is what CUDA kernels run on, found by `device` unless given."""
    named = _named(kernel)
    cuda = named is not None and named.backend == "cuda"
    if engine is None and (cuda or kernel == "auto"):
        engine = gpu.engine_for(device, adjacency.n, cuda)
    begin = time.perf_counter()
    for choice in choices(adjacency, dtype):
        check_room(adjacency.n, choice.dtype, predecessors, low=adjacency.low)
        ready = time.perf_counter()
        if engine is not None:
            solved = gpu.run(adjacency, choice.dtype, named, engine, tell, predecessors)
        else:
            solved = host.run(adjacency, choice.dtype, host.kernel_for(adjacency.n) if kernel == "auto" else kernel, tell)
        _check_cycles(adjacency, solved.raw)
        ran = time.perf_counter()
        distances = host.floating(solved.raw, choice.dtype, adjacency.drift, predecessors and solved.before is None)
        np.fill_diagonal(distances, 0)  # where weights were rounded it may be a little less
        fits, exact = _fits(adjacency, distances, choice)
        seconds = {**solved.seconds, "prepare": solved.seconds["prepare"] + ready - begin}
        seconds["copy out"] = seconds.get("copy out", 0.0) + time.perf_counter() - ran
        if fits:
            break
        begin = time.perf_counter()
    else:
        raise Refused(f"some distances are beyond what {dtype} can hold; choose another dtype, or leave it out")
    begin = time.perf_counter()
    paths = Paths(adjacency, distances, exact)
    before = solved.before
    if predecessors and before is None:
        before = paths.predecessors()
        seconds["paths"] = time.perf_counter() - begin
    elif before is not None and solved.again is not None and len(solved.again):
        before[solved.again] = paths.by_dijkstra(solved.again)
        seconds["paths"] += time.perf_counter() - begin
    where = "cpu" if engine is None else engine.target.backend
    proof = ROUNDED if choice.dtype == "float32" and not exact else choice.proof
    stats = Stats(adjacency.n, adjacency.weights.edges, choice.dtype, proof, exact, solved.kernel, solved.tile, where, seconds)
    return Result(distances, before, stats, adjacency.vertices, paths)


def _on_device(array: Any, dtype: str | None, predecessors: bool, kernel: str, device: str | int | None) -> Result:
    """The answer to an array that is on a GPU, where it stays."""
    named = _named(kernel)
    if named is not None and named.backend != "cuda":
        raise Refused(f"kernel {kernel} runs on the host and the array is on a GPU; copy it, or leave the kernel out")
    engine = gpu.engine_for(device, len(array), needed=True)
    assert engine is not None
    from numba import cuda

    from fwtui.solving import resident

    return resident.answer(cuda.as_cuda_array(array), dtype, named, engine, predecessors)


def _named(name: str) -> Kernel | None:
    """The kernel of that id; None for what chooses by itself, and for NumPy's loop."""
    if name in ("auto", host.NUMPY):
        return None
    kernel = registry().get(name)
    if kernel is None:
        raise Refused(f"there is no kernel {shown(str(name))}; choose auto, {host.NUMPY}, {', '.join(registry())}")
    return kernel


def _check_cycles(adjacency: Adjacency, raw: np.ndarray) -> None:
    """Raises SciPy's NegativeCycleError, with the vertices of a cycle, where a vertex is nearer to itself than 0."""
    low = adjacency.low or 0
    if low >= 0 or not (raw.diagonal() < 0).any():
        return
    weights = np.empty((adjacency.n, adjacency.n), dtype=np.float32 if raw.dtype.kind == "f" else np.int32)
    adjacency.fill(weights)
    cycle = negative_cycle(weights)
    closed = [*cycle, *cycle[:1]]
    if not cycle or fsum(weights_along(adjacency, closed)) >= 0:
        # float32 may make a cycle of weight 0 a little less, but no more than this
        rounding = adjacency.n * float(np.finfo(np.float32).eps) * max(-low, adjacency.high or 0)
        if adjacency.integer or float(raw.diagonal().min()) < -rounding:
            closed = [int(raw.diagonal().argmin())]
        else:
            return
    from scipy.sparse.csgraph import NegativeCycleError

    names = [adjacency.vertices.name(v) for v in closed]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN - 2], "...", names[-1]]
    where = f": {' -> '.join(names)}" if len(names) > 1 else f" through {names[0]}"
    raise NegativeCycleError(f"the graph has a negative cycle{where}")


def _fits(adjacency: Adjacency, distances: np.ndarray, choice: Choice) -> tuple[bool, bool]:
    """Whether the type held every distance, and whether every sum was exact."""
    if choice.dtype != "float32":
        return choice.proof != AFTERWARDS or not escaped(adjacency, np.isfinite(distances)), True
    if not adjacency.exact_sums:
        return True, False
    if choice.proof != AFTERWARDS:
        return True, True
    largest = max(
        (float(np.abs(distances[r]).max(initial=0, where=np.isfinite(distances[r]))) for r in blocks(distances)), default=0.0
    )
    return True, largest < (limit(adjacency, "float32") / 2 if adjacency.drift else limit(adjacency, "float32"))


def escaped(adjacency: Adjacency, reached: np.ndarray) -> bool:
    """Whether some arc leads from what a vertex reaches to what it does not: then a distance was too long for the type.

    Without such an arc, all that is beyond cannot be reached at all.
    """
    sets = np.ascontiguousarray(np.packbits(reached, axis=0).T)  # row v: who reaches v, as bits
    rows = max(1, (1 << 24) // max(1, sets.shape[1]))
    for arcs in adjacency.pieces():
        for start in range(0, len(arcs.weights), rows):
            part = slice(start, start + rows)
            if (sets[arcs.sources[part]] & ~sets[arcs.targets[part]]).any():
                return True
    return False
