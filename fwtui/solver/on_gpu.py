"""All distances on a GPU: the graph goes over once and the distances come back once."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fwtui.common.errors import NoGpu, Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.text import shown
from fwtui.common.units import memory
from fwtui.engine.engine import Engine, one_of_each_op
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import EXACT_INTEGER, Facts
from fwtui.solver.compiling import compiled
from fwtui.solver.memory import check_room, check_wide
from fwtui.solver.solved import Finished, Solved, Tell
from kernels.auto import in_order
from kernels.paths.predecessors import compile_search
from kernels.plan import Kernel, Shape, Step
from kernels.streaming import out_of_core

if TYPE_CHECKING:
    from fwtui.solver.device_graph import Carried

WORTH = 2048  # vertices from which a GPU is done before its code is loaded twice over
_PIECE = 1 << 26  # bytes of distances that are converted and copied at once
_BUILT = 8  # programs that are kept

_built: dict[tuple[str, Shape, Engine], tuple[Any, list[Step]]] = {}
_searched: set[tuple[str, bool, Engine]] = set()


def engine_for(device: str | int | None, n: int, needed: bool) -> Engine | None:
    """The GPU to use, or None for the CPU. A GPU that is asked for and is not there is NoGpu; Refused for what names none."""
    if device == "cpu" and not needed:
        return None
    text = "0" if device in (None, "auto") else str(device)
    if device == "cpu" or not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise Refused(f"device {shown(str(device))} is not the one for it; give a GPU's number, or leave it out")
    asked = needed or device not in (None, "auto")
    from fwtui.machine.hardware import driver_present

    if not asked and (n < WORTH or not driver_present()):
        return None
    try:
        return _cuda_engine(int(text))
    except Exception as error:  # no package, no driver, no such GPU: numba, the driver and we each have their own class
        if asked:
            raise NoGpu(f"GPU {text} cannot be used ({str(error).splitlines()[0][:120]}); run `fwtui doctor`") from None
        return None


@cache
def _cuda_engine(index: int) -> Engine:
    from fwtui.engine.cuda_engine import CudaEngine

    return CudaEngine(index)


def suited(named: Kernel | None, n: int, dtype: str, nonnegative: bool, engine: Engine) -> tuple[Kernel, Shape]:
    """The kernel that was named, or else the best known that takes the size on this GPU. Raises Refused where none does."""
    simulated = engine.target.backend == "simulator"
    first: str | None = None
    for kernel in [named] if named is not None else in_order("cuda", dtype):
        shape = shape_for(kernel, n, dtype, nonnegative, simulated)
        reason = kernel.refuses(shape) or kernel.lacks(shape, engine.target)
        if reason is None and (kernel.simulates or not simulated):
            return kernel, shape
        first = first or reason
    raise Refused(first or f"no kernel takes {n:,} vertices in {dtype} here; choose another dtype")


def shape_for(kernel: Kernel, n: int, dtype: str, nonnegative: bool, simulated: bool) -> Shape:
    """The kernel's own tile and options."""
    options = tuple(sorted((o.name, o.default) for o in kernel.options))
    return Shape(n=n, tile=kernel.tile_for(n, simulated) or 1, dtype=dtype, nonnegative=nonnegative, options=options)


def fitting(named: Kernel | None, facts: Facts, dtype: str, engine: Engine) -> tuple[Kernel, Shape]:
    """The kernel and its shape; where the device does not hold the matrix, the one that streams it. Raises Refused."""
    n, nonnegative = facts.n, (facts.low or 0) >= 0
    kernel, shape = suited(named, n, dtype, nonnegative, engine)
    free = engine.free_bytes()
    if free is None or (kernel.matrices + 1) * shape.padded**2 * shape.itemsize <= free - KEPT_FREE:
        return kernel, shape
    tile = out_of_core.tile_for(n, shape.itemsize, free - KEPT_FREE)
    if tile is None:
        most = out_of_core.largest_n(shape.itemsize, free - KEPT_FREE)
        raise Refused(
            f"{n:,} vertices in {dtype} need more than the {memory(free)} of device memory that are free, even tile by tile; "
            f"choose a graph of up to {most:,} vertices, or device cpu"
        )
    options = tuple(sorted((o.name, o.default) for o in out_of_core.KERNEL.options))
    shape = Shape(n=n, tile=tile, dtype=dtype, nonnegative=nonnegative, options=options)
    check_room(shape.padded, dtype, False)
    return out_of_core.KERNEL, shape


class Ready(NamedTuple):
    program: Any
    buffers: Any
    plan: list[Step]
    seconds: dict[str, float]


def ready(kernel: Kernel, shape: Shape, engine: Engine, predecessors: bool, rounded: bool) -> Ready:
    """Its program with new buffers, and everything compiled that they will launch; `rounded`: so are sums of float32.

    A program that was built here before is used again. Called within compiling.compiled().
    """
    begin = time.perf_counter()
    known = _built.get((kernel.id, shape, engine))
    program: Any
    program, plan = known or (kernel.build(shape, engine.target), list(kernel.plan(shape, False)))
    built = time.perf_counter()
    buffers = program.allocate()
    allocated = time.perf_counter()
    if known is None:
        # what is in the buffers does not matter yet: each op is compiled by its first launch
        for step in one_of_each_op(plan):
            program.launch(step, buffers, engine.stream)
        if kernel is not out_of_core.KERNEL and not program.reorders:  # others hold memory of their own
            while len(_built) >= _BUILT:
                del _built[next(iter(_built))]
            _built[kernel.id, shape, engine] = program, plan
    search = (shape.dtype, shape.dtype == "float32" and rounded, engine)
    if predecessors and kernel is not out_of_core.KERNEL and search not in _searched:
        compile_search(*search[:2], engine.target.cc, engine.stream)
        _searched.add(search)
    engine.synchronize()
    seconds = {"compile": built - begin + time.perf_counter() - allocated, "allocate": allocated - built}
    return Ready(program, buffers, plan, seconds)


def run(
    graph: Adjacency | Carried,
    dtype: str,
    named: Kernel | None,
    engine: Engine,
    tell: Tell,
    predecessors: bool = False,
    unproved: bool = False,
) -> Solved:
    """Distances by the CUDA kernel that was named, or the best known. Raises Refused where they do not fit the device.

    What was carried there comes back as Result has it, anything else as the kernel left it. With `predecessors` these too,
    where the device can find them. `unproved`: distances that were carried may be too long for the type.
    """
    from fwtui.solver import launching

    engine.activate()
    facts = graph if isinstance(graph, Adjacency) else graph.facts
    kernel, shape = fitting(named, facts, dtype, engine)
    if kernel is out_of_core.KERNEL and not isinstance(graph, Adjacency):
        graph = graph.whole()  # it comes tile by tile
    with compiled():
        program, buffers, plan, spent = ready(kernel, shape, engine, predecessors, not facts.exact_sums)
        if isinstance(graph, Adjacency):
            spent |= _loaded(graph, kernel, program, buffers, engine)
        else:
            begin = time.perf_counter()
            program.load_with(lambda to: graph.enter(to, dtype), buffers, engine.stream)
            engine.synchronize()
            compiling = launching.compiling()
            spent["compile"] += compiling
            spent["prepare"] = time.perf_counter() - begin - compiling
        launched = 0

        def count() -> None:
            nonlocal launched
            tell(launched / len(plan))
            launched += 1

        spent["kernels"] = engine.clean_pass(program, plan, buffers, "eager")(count)
        ran = time.perf_counter()
        raw: Any = None
        finished: Finished | None = None
        if isinstance(graph, Adjacency):
            raw = program.unload(buffers, engine.stream)
            useful = not (raw.diagonal() < 0).any()
        else:
            result = program.result_on_device(buffers, engine.stream)
            finished = _finished(result, graph, dtype, predecessors, unproved, engine)
            useful = not finished.escaped and not (finished.diagonal < 0).any()
        out, compiling = time.perf_counter(), launching.compiling()
        spent["compile"] += compiling
        spent["copy out"] = out - ran - compiling
        found = None
        if predecessors and useful and kernel is not out_of_core.KERNEL:
            found = _predecessors(facts, dtype, program, buffers, engine, finished)
    if found is not None:
        spent["copy out"] += found[1]
        spent["paths"] = time.perf_counter() - out - found[1]
    before, again = (found[0], found[2]) if found is not None else (None, None)
    return Solved(raw, kernel.id, shape.tile if kernel.tiles else 0, spent, before, again, finished)


def _loaded(graph: Adjacency, kernel: Kernel, program: Any, buffers: Any, engine: Engine) -> dict[str, float]:
    """Seconds of bringing a graph over that the host lays out."""
    begin = time.perf_counter()
    if kernel is out_of_core.KERNEL:
        program.load_with(graph.fill, buffers, engine.stream)  # the host may have no room for another matrix
        filled = time.perf_counter()
    else:
        matrix = np.empty(program.host_size, dtype=program.shape.dtype)  # padded, so that loading makes no other one
        graph.fill(matrix)
        filled = time.perf_counter()
        program.load(matrix, buffers, engine.stream)
        engine.synchronize()
    return {"prepare": filled - begin, "copy in": time.perf_counter() - filled}


def _finished(raw: Any, graph: Carried, dtype: str, predecessors: bool, unproved: bool, engine: Engine) -> Finished:
    """Distances of a device array, converted there and copied, a piece after the other, to where they will stay."""
    from fwtui.solver import launching, matrix_kernels
    from fwtui.solver.device_predecessors import far_of
    from kernels.numba_door.device import cuda

    n, stream, functions = graph.n, engine.stream, matrix_kernels.functions()
    far = far_of(graph.facts, dtype)
    if unproved and dtype != "float32" and graph.escaped(raw, far):
        return Finished(np.empty((0, 0), np.float32), 0.0, np.zeros(n), True)
    largest, least = extremes(raw, n, far, engine)
    wide = dtype != "float32" and largest >= EXACT_INTEGER
    if wide:
        check_wide(n, predecessors)
    distances = np.empty((n, n), np.float64 if wide else np.float32)
    rows = max(1, min(n, _PIECE // distances[0].nbytes))
    piece = cuda.device_array((rows, n), distances.dtype, stream=stream)
    for first in range(0, n, rows):
        part = distances[first : first + rows]
        launching.launch(functions.leave, len(part), stream, raw, piece, np.int32(first), np.int32(n), np.float64(far))
        piece[: len(part)].copy_to_host(part, stream=stream)
    diagonal = diagonal_of(raw, n, engine) if least < 0 else np.zeros(n)
    engine.synchronize()
    return Finished(distances, largest, diagonal, False)


def extremes(raw: Any, n: int, far: float, engine: Engine) -> tuple[float, float]:
    """The greatest absolute value below `far` of the n x n corner of a device array, and the least on its diagonal, or 0."""
    from fwtui.solver import launching, matrix_kernels
    from kernels.numba_door.device import cuda

    found = cuda.to_device(np.zeros(2), stream=engine.stream)
    launching.launch(
        matrix_kernels.functions().look, min(n, launching.BLOCKS), engine.stream, raw, np.int32(n), np.float64(far), found
    )
    told = found.copy_to_host(stream=engine.stream)
    engine.synchronize()
    return float(told[matrix_kernels.LARGEST]), float(told[matrix_kernels.DIAGONAL])


def diagonal_of(raw: Any, n: int, engine: Engine) -> np.ndarray:
    """The first n distances from a vertex to itself, of a device array."""
    from fwtui.solver import launching, matrix_kernels
    from kernels.numba_door.device import cuda

    found = cuda.device_array(n, np.float64, stream=engine.stream)
    launching.launch(matrix_kernels.functions().diagonal, -(-n // launching.THREADS), engine.stream, raw, np.int32(n), found)
    told = found.copy_to_host(stream=engine.stream)
    engine.synchronize()
    return told


def _predecessors(
    facts: Facts, dtype: str, program: Any, buffers: Any, engine: Engine, finished: Finished | None
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """They, the seconds of their copies, and the sources to search for again; None where the device cannot find them."""
    from fwtui.solver.device_predecessors import far_of, on_host, search_for, terms_of

    if not hasattr(program, "result_on_device"):
        return None
    n = facts.n
    if finished is None:
        largest, _ = extremes(program.result_on_device(buffers, engine.stream), n, far_of(facts, dtype), engine)
    else:
        largest = finished.largest
    terms = terms_of(facts, dtype, largest)
    search = None if terms is None else search_for(program, buffers, terms, engine)
    return None if search is None else (*on_host(*search, n, engine), search[0].unfound())
