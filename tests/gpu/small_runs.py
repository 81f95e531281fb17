"""Every CUDA kernel, or the named ones, on small graphs in this process, for a memory checker.

So are, unless others are named than `solve`: answers with predecessors, and one with less device memory than its matrix takes.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from covering import covering

sys.path.append(str(Path(__file__).parents[1]))  # where pytest looks too, but no checker of memory
from path_checks import by_scipy, check_paths, random_matrix, sparse

from fwtui.common.errors import Refused
from fwtui.engine.cuda_engine import CudaEngine
from fwtui.experiment.experiment import Experiment, Settled, kernel_named, settle
from fwtui.graphs.library_objects import lazy_of_object, of_object
from fwtui.measure.run_context import RunContext
from fwtui.measure.runner import Runner
from fwtui.solver import costs
from fwtui.solver.call import Call
from fwtui.solver.driver import answer
from fwtui.stream.model import Model
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel, Shape, Target
from fwtui_kernels.streaming import out_of_core


def combined(kernel: Kernel, row: dict[Any, Any], n: int) -> Settled | None:
    """Return the run of a kernel with a combination of its choices; None if the kernel refuses that combination."""
    chosen: dict[str, Any] = {key: row[key] for key in ("dtype", "tile", "launch")}
    options = {o.name: row["option", o.name] for o in kernel.options}
    try:
        return settle(Experiment(kernel=kernel.id, n=n, options=options, repeats=1, verify="full", **chosen))
    except Refused:
        return None


def experiments(sizes: tuple[int, ...], target: Target | None = None, strength: int = 2) -> list[Settled]:
    """Each CUDA kernel at each size with a few combinations of its types, tiles, options and launch modes: every two values
    that can meet do (strength 2), or every value occurs (1). What `target` lacks something for is left out.
    """
    asked = [
        combined(kernel, row, n)
        for kernel in registry().values()
        if kernel.backend == "cuda"
        for row in covering(
            {
                "dtype": kernel.dtypes,
                "tile": kernel.tiles or (0,),
                "launch": kernel.launch_modes,
                **{("option", o.name): o.values for o in kernel.options},
            },
            strength,
            lambda row, kernel=kernel: combined(kernel, row, min(kernel.max_n, max(sizes))) is not None,
        )
        for n in sizes
        if n <= kernel.max_n
    ]
    return [e for e in asked if e is not None and (target is None or registry()[e.kernel].lacks(e.shape(e.n), target) is None)]


def ran(engine: Any, *asked: Experiment, **more: Any) -> Model:
    """Run these experiments one after the other, numbered from 1."""
    model = Model()
    runner = Runner()
    for number, experiment in enumerate(asked, 1):
        kernel = kernel_named(experiment.kernel)
        runner.run(RunContext(number, settle(experiment), kernel, engine, lambda: None, model.apply, time.monotonic), **more)
    return model


def wrong(engine: Any, *asked: Experiment) -> list[tuple[Experiment, object]]:
    """Return the unverified experiments with their verdicts."""
    runs = ran(engine, *asked).runs
    return [(e, runs[i].verdict or runs[i].done) for i, e in enumerate(asked, 1) if not runs[i].verified]


def solve_small(engine: Any, sizes: tuple[int, ...]) -> None:
    """Solve graphs of these sizes, with predecessors; raises AssertionError if a result is wrong."""
    for n in sizes:
        some = random_matrix(n, n)
        ways = {"int16": some, "int32": some * 5000, "float32": some / 4, "negative": random_matrix(n, n, negative=True)}
        for name, matrix in {**ways, "rounded": some * np.pi}.items():
            matrix = matrix.astype(np.float32).astype(float)
            result = answer(of_object(np.ma.masked_invalid(matrix)), Call(predecessors=True), engine)
            near = 4e-6 * (name == "rounded")
            assert np.allclose(result.distances, by_scipy(matrix), 2 * near, 0) and result.predecessors is not None, (name, n)
            check_paths(matrix, result.distances, result.predecessors, near=near)
            for graph in (lazy_of_object(matrix), lazy_of_object(sparse(matrix))):
                assert graph is not None
                assert np.array_equal(answer(graph, engine=engine).distances, result.distances), (name, n)


def solve_capped(engine: Any, n: int) -> None:
    """Solve a matrix larger than device memory; raises AssertionError if a distance is wrong."""
    matrix = random_matrix(n, 1)
    tile = min(out_of_core.KERNEL.tiles)
    free, engine.free_bytes = (
        engine.free_bytes,
        lambda: costs.RESERVED_MEMORY + out_of_core.device_bytes(Shape(n=n, tile=tile, dtype="int32")),
    )
    try:
        result = answer(of_object(matrix), Call(dtype="int32"), engine)
    finally:
        engine.free_bytes = free
    assert result.stats.kernel == "out-of-core" and (result.distances == by_scipy(matrix)).all()


if __name__ == "__main__":
    gpu = CudaEngine()
    sizes = tuple(int(word) for word in sys.argv[1:] if word.isdecimal()) or (1, 9, 33, 70)
    kernels = [word for word in sys.argv[1:] if not word.isdecimal()]
    if not kernels or "solve" in kernels:
        solve_small(gpu, sizes)
        solve_capped(gpu, 800)
    asked = [e for e in experiments(sizes, gpu.target, strength=1) if not kernels or e.kernel in kernels]
    found = wrong(gpu, *asked)
    for experiment, said in found:
        print(experiment.kernel, experiment.n, experiment.dtype, experiment.tile, experiment.options, said)
    sys.exit(bool(found))
