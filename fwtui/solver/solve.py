"""`solve`: a graph in, shortest paths out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import shown
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import AFTERWARDS, Facts, exact_up_to
from fwtui.graphs.graph import blocks
from fwtui.graphs.library_objects import Unseen, accept, seen, unseen
from fwtui.solver import on_cpu
from fwtui.solver import on_gpu as gpu
from fwtui.solver.clock import Clock
from fwtui.solver.cycles import check_cycles
from fwtui.solver.memory import check_room
from fwtui.solver.number_type import ROUNDED, Choice, choices, reach_of
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats
from fwtui.solver.solved import Finished, Tell
from kernels import registry
from kernels.plan import Kernel

if TYPE_CHECKING:
    from fwtui.solver.device_graph import Carried


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
    clock = Clock()
    given = unseen(graph) or accept(graph)
    return answer(given, dtype=dtype, predecessors=predecessors, kernel=kernel, device=device, clock=clock)


def answer(
    graph: Adjacency | Unseen,
    *,
    dtype: str | None = None,
    predecessors: bool = False,
    kernel: str = "auto",
    device: str | int | None = None,
    engine: Engine | None = None,
    tell: Tell = lambda share: None,
    clock: Clock | None = None,
) -> Result:
    """As solve. `tell` hears the share that is done; `engine` is what CUDA kernels run on, found by `device` unless given."""
    clock = clock or Clock()
    clock.lap("prepare")
    named = _named(kernel)
    cuda = named is not None and named.backend == "cuda"
    if engine is None and (cuda or kernel == "auto"):
        engine = gpu.engine_for(device, graph.n, cuda)
        clock.lap("set-up")
    carried: Carried | None = None
    if engine is not None:
        from fwtui.solver.device_graph import carry

        engine.activate()
        clock.lap("set-up")
        carried, told = carry(graph, engine)
        clock.take(told)

    whole = partial(seen, graph)
    facts: Facts = whole() if carried is None else carried.facts
    reach = carried.reach if carried is not None else partial(reach_of, whole())
    for choice in choices(facts, dtype, reach):
        check_room(facts.n, choice.dtype, predecessors, low=facts.low)
        clock.lap("prepare", 0.0 if carried is None else carried.compiling())
        if engine is not None:
            unproved = choice.proof == AFTERWARDS
            solved = gpu.run(carried or whole(), choice.dtype, named, engine, tell, predecessors, unproved)
        else:
            solved = on_cpu.run(whole(), choice.dtype, on_cpu.kernel_for(facts.n) if kernel == "auto" else kernel, tell)
        clock.take(solved.seconds)
        if solved.finished is not None:
            distances = solved.finished.distances
            if solved.finished.escaped:
                continue
            check_cycles(whole, facts, solved.finished.diagonal)
        else:
            assert solved.raw is not None
            check_cycles(whole, facts, solved.raw.diagonal())
            distances = on_cpu.floating(solved.raw, choice.dtype, facts.drift, predecessors and solved.before is None)
            np.fill_diagonal(distances, 0)  # where weights were rounded it may be a little less
            clock.lap("copy out")
        fits, exact = _fits(whole, facts, distances, choice, solved.finished)
        clock.lap("prepare")
        if fits:
            break
    else:
        raise Refused(f"some distances are beyond what {dtype} can hold; choose another dtype, or leave it out")
    paths = Paths(graph, distances, exact)
    before = solved.before
    if predecessors and before is None:
        before = paths.predecessors()
        clock.lap("paths")
    elif before is not None and solved.again is not None and len(solved.again):
        before[solved.again] = paths.by_dijkstra(solved.again)
        clock.lap("paths")
    where = "cpu" if engine is None else engine.target.backend
    proof = ROUNDED if choice.dtype == "float32" and not exact else choice.proof
    stats = Stats(facts.n, facts.edges, choice.dtype, proof, exact, solved.kernel, solved.tile, where, dict(clock.seconds))
    return Result(distances, before, stats, graph.vertices, paths)


def _on_device(array: Any, dtype: str | None, predecessors: bool, kernel: str, device: str | int | None) -> Result:
    """The answer to an array that is on a GPU, where it stays."""
    clock = Clock()
    named = _named(kernel)
    if named is not None and named.backend != "cuda":
        raise Refused(f"kernel {kernel} runs on the host and the array is on a GPU; copy it, or leave the kernel out")
    engine = gpu.engine_for(device, 0, needed=True)  # of any size, and it may have no length
    assert engine is not None
    engine.activate()
    from numba import cuda

    from fwtui.solver import on_gpu_resident

    clock.lap("set-up")
    return on_gpu_resident.answer(cuda.as_cuda_array(array), dtype, named, engine, predecessors, clock)


def _named(name: str) -> Kernel | None:
    """The kernel of that id; None for what chooses by itself, and for NumPy's loop."""
    if name in ("auto", on_cpu.NUMPY):
        return None
    kernel = registry().get(name)
    if kernel is None:
        raise Refused(f"there is no kernel {shown(str(name))}; choose auto, {on_cpu.NUMPY}, {', '.join(registry())}")
    return kernel


def _fits(
    whole: Callable[[], Adjacency], facts: Facts, distances: np.ndarray, choice: Choice, finished: Finished | None
) -> tuple[bool, bool]:
    """Whether the type held every distance, and whether every sum was exact."""
    if choice.dtype != "float32":
        return choice.proof != AFTERWARDS or finished is not None or not escaped(whole(), np.isfinite(distances)), True
    if not facts.exact_sums:
        return True, False
    if choice.proof != AFTERWARDS:
        return True, True
    if finished is not None:
        largest = finished.largest
    else:
        largest = max(
            (float(np.abs(distances[r]).max(initial=0, where=np.isfinite(distances[r]))) for r in blocks(distances)), default=0.0
        )
    return True, exact_up_to(facts, largest)


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
