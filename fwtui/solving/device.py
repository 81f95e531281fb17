"""All distances on a GPU: the matrix goes over once and the distances come back once."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from fwtui.errors import NoGpu, Refused
from fwtui.graphs.adjacency import Adjacency
from fwtui.measure.engine import Engine, one_of_each_op
from fwtui.solving.compiling import compiled
from fwtui.solving.room import check_room
from fwtui.solving.solved import Solved, Tell
from fwtui.text import shown
from fwtui.units import memory
from kernels import out_of_core
from kernels.auto import in_order
from kernels.plan import Kernel, Shape
from kernels.predecessors import compile_search

WORTH = 2048  # vertices from which a GPU is done before its code is loaded twice over
SPARE = 1 << 28  # bytes of device memory left to everything else


def engine_for(device: str | int | None, n: int, needed: bool) -> Engine | None:
    """The GPU to use, or None for the CPU. A GPU that is asked for and is not there is NoGpu; Refused for what names none."""
    if device == "cpu" and not needed:
        return None
    text = "0" if device in (None, "auto") else str(device)
    if device == "cpu" or not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise Refused(f"device {shown(str(device))} is not the one for it; give a GPU's number, or leave it out")
    asked = needed or device not in (None, "auto")
    from fwtui.hardware import driver_present

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
    from fwtui.measure.cuda_engine import CudaEngine

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


def fitting(named: Kernel | None, adjacency: Adjacency, dtype: str, engine: Engine) -> tuple[Kernel, Shape]:
    """The kernel and its shape; where the device does not hold the matrix, the one that streams it. Raises Refused."""
    n, nonnegative = adjacency.n, (adjacency.low or 0) >= 0
    kernel, shape = suited(named, n, dtype, nonnegative, engine)
    free = engine.free_bytes()
    if free is None or (kernel.matrices + 1) * shape.padded**2 * shape.itemsize <= free - SPARE:
        return kernel, shape
    tile = out_of_core.tile_for(n, shape.itemsize, free - SPARE)
    if tile is None:
        most = out_of_core.largest_n(shape.itemsize, free - SPARE)
        raise Refused(
            f"{n:,} vertices in {dtype} need more than the {memory(free)} of device memory that are free, even tile by tile; "
            f"choose a graph of up to {most:,} vertices, or device cpu"
        )
    options = tuple(sorted((o.name, o.default) for o in out_of_core.KERNEL.options))
    shape = Shape(n=n, tile=tile, dtype=dtype, nonnegative=nonnegative, options=options)
    check_room(shape.padded, dtype, False)
    return out_of_core.KERNEL, shape


def run(adjacency: Adjacency, dtype: str, named: Kernel | None, engine: Engine, tell: Tell, predecessors: bool = False) -> Solved:
    """Distances by the CUDA kernel that was named, or the best known. Raises Refused where they do not fit the device.

    With `predecessors` these too, where the device can find them.
    """
    begin = time.perf_counter()
    engine.activate()
    kernel, shape = fitting(named, adjacency, dtype, engine)
    plan = list(kernel.plan(shape, False))
    with compiled():
        program: Any = kernel.build(shape, engine.target)
        buffers: Any = program.allocate()
        # what is in the buffers does not matter yet: each op is compiled by its first launch
        for step in one_of_each_op(plan):
            program.launch(step, buffers, engine.stream)
        here = predecessors and kernel is not out_of_core.KERNEL
        if here:
            compile_search(dtype, dtype == "float32" and not adjacency.exact_sums, engine.target.cc, engine.stream)
        engine.synchronize()
        built = time.perf_counter()
        if kernel is out_of_core.KERNEL:
            program.load_with(adjacency.fill, buffers, engine.stream)  # the host may have no room for another matrix
            filled = time.perf_counter()
        else:
            matrix = np.empty(program.host_size, dtype=dtype)  # padded, so that loading makes no other one
            adjacency.fill(matrix)
            filled = time.perf_counter()
            program.load(matrix, buffers, engine.stream)
            engine.synchronize()
            del matrix
        copied = time.perf_counter()
        launched = 0

        def count() -> None:
            nonlocal launched
            tell(launched / len(plan))
            launched += 1

        seconds = engine.clean_pass(program, plan, buffers, "eager")(count)
        ran = time.perf_counter()
        raw = program.unload(buffers, engine.stream)
        out = time.perf_counter()
        found = None
        if here and not (raw.diagonal() < 0).any():
            found = _predecessors(adjacency, dtype, program, buffers, engine)
    spent = {"compile": built - begin, "prepare": filled - built, "copy in": copied - filled, "kernels": seconds}
    spent["copy out"] = out - ran
    if found is not None:
        spent["copy out"] += found[1]
        spent["paths"] = time.perf_counter() - out - found[1]
    return Solved(raw, kernel.id, shape.tile if kernel.tiles else 0, spent, *((found[0], found[2]) if found is not None else ()))


def _predecessors(
    graph: Adjacency, dtype: str, program: Any, buffers: Any, engine: Engine
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """They, the seconds of their copies, and the sources to search for again; None where the device cannot find them."""
    from fwtui.solving.resident import extremes
    from fwtui.solving.tracing import far_of, on_host, search_for, terms_of

    if not hasattr(program, "result_on_device"):
        return None
    n = graph.n
    largest, _ = extremes(program.result_on_device(buffers, engine.stream), n, far_of(graph, dtype), engine)
    terms = terms_of(graph, dtype, largest)
    search = None if terms is None else search_for(program, buffers, terms, engine)
    return None if search is None else (*on_host(*search, n, engine), search[0].unfound())
