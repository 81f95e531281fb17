"""All distances on this machine's cores, in place: one matrix and nothing beside it."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import EXACT_INTEGER
from fwtui.graphs.graph import blocks
from fwtui.solver.compiling import compiled
from fwtui.solver.memory import check_wide
from fwtui.solver.solved import Solved, Tell
from kernels import registry
from kernels.plan import NO_EDGE, Kernel, Shape, Target

NUMPY = "numpy"
TILED = "tiled-cpu"
# vertices up to which plain NumPy is done before numba is imported (measured on two cores: 0.4 s)
NUMPY_MOST = 1024
_ALWAYS_NUMPY = 256
# time of a relaxation in tiles of that size, the largest one's being 1 (measured, int16 to float32)
_TILES = {32: 1.6, 64: 1.15, 128: 1.0}


def kernel_for(n: int) -> str:
    """The fastest way to an answer here: compiled code has to be loaded first, which takes as long as a small graph."""
    few = NUMPY_MOST if "numba" not in sys.modules else _ALWAYS_NUMPY
    return NUMPY if n <= few else TILED


def tile_for(n: int) -> int:
    """The tile with the least time: large ones are faster, and pad more."""
    return min(_TILES, key=lambda tile: (-(-n // tile) * tile) ** 3 * _TILES[tile])


def run(adjacency: Adjacency, dtype: str, kernel: str, tell: Tell) -> Solved:
    """Distances by the kernel of that id, or by NumPy's loop."""
    if kernel == NUMPY:
        return _by_numpy(adjacency, dtype, tell)
    return _by_kernel(adjacency, dtype, registry()[kernel], tell)


def _by_numpy(adjacency: Adjacency, dtype: str, tell: Tell) -> Solved:
    begin = time.perf_counter()
    matrix = np.empty((adjacency.n, adjacency.n), dtype=dtype)
    adjacency.fill(matrix)
    filled = time.perf_counter()
    through = np.empty_like(matrix)
    for k in range(adjacency.n):
        np.add(matrix[:, k, None], matrix[k], out=through)
        np.minimum(matrix, through, out=matrix)
        if not k % 64:
            tell(k / adjacency.n)
    return Solved(matrix, NUMPY, 0, {"prepare": filled - begin, "kernels": time.perf_counter() - filled})


def _by_kernel(adjacency: Adjacency, dtype: str, kernel: Kernel, tell: Tell) -> Solved:
    begin = time.perf_counter()
    n = adjacency.n
    tile = tile_for(n) if kernel.id == TILED else kernel.default_tile if kernel.tiles else 0
    options = {o.name: o.default for o in kernel.options}
    if "order" in options:
        options["order"] = 0  # row by row: the matrix is not copied, and may be the result
    shape = Shape(n=n, tile=tile or 1, dtype=dtype, options=tuple(sorted(options.items())))
    with compiled():
        from kernels.programs.cpu_program import CpuProgram

        program = kernel.build(shape, Target("cpu"))
        in_place = isinstance(program, CpuProgram)
        if kernel.id == TILED:
            for op in program.ops.values():  # type: ignore[attr-defined]
                op(np.zeros((tile, tile), dtype), 0, side=1)  # compiles, and has nothing to do
        built = time.perf_counter()
        matrix = np.empty((shape.padded, shape.padded), dtype=dtype)
        adjacency.fill(matrix)
        buffers: Any = [matrix] if in_place else program.allocate()
        if not in_place:
            program.load(matrix[:n, :n], buffers, None)
            program.restore(buffers, None)
        filled = time.perf_counter()
        total, done = max(1, shape.padded**3), 0
        for step in kernel.plan(shape, False):
            program.launch(step, buffers, None)
            done += step.cost.relaxations
            tell(min(1.0, done / total))
        ran = time.perf_counter()
        raw = matrix[:n, :n] if in_place else program.unload(buffers, None)
    done_at = time.perf_counter()
    seconds = {"compile": built - begin, "prepare": filled - built, "kernels": ran - filled, "copy out": done_at - ran}
    return Solved(raw, kernel.id, tile, seconds)


def floating(raw: np.ndarray, dtype: str, drift: float, predecessors: bool = False) -> np.ndarray:
    """Distances with +inf for no path, in the same memory where a cell is as wide: float32, or float64 from 2^24 on.

    Unreachable cells of whole numbers may have sunk below the sentinel by half of 2 x drift; see graphs.canonical. Raises Refused
    where there is no room for float64, and for `predecessors` that are still to be made.
    """
    n = len(raw)
    if dtype == "float32":
        result = _packed(raw, np.dtype(np.float32))
        for rows in blocks(result) if n else []:
            result[rows] += np.float32(0)  # -0 and +0 are one distance
        return result
    far = NO_EDGE[dtype] - 2 * drift
    largest = max((int(np.abs(raw[rows]).max(initial=0, where=raw[rows] < far)) for rows in blocks(raw)), default=0) if n else 0
    if largest >= EXACT_INTEGER:
        check_wide(n, predecessors)
        result = np.empty((n, n), dtype=np.float64)
    elif dtype == "int32":
        result = _packed(raw, np.dtype(np.float32))
        raw = result.view(np.int32)
    else:
        result = np.empty((n, n), dtype=np.float32)
    for rows in blocks(result) if n else []:
        cells = raw[rows]
        result[rows] = np.where(cells >= far, result.dtype.type(np.inf), cells.astype(result.dtype))
    return result


def _packed(raw: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The corner of a padded matrix without gaps between its rows, moved within its memory; bits as they are."""
    n = len(raw)
    if raw.flags.c_contiguous:
        return raw.view(dtype)
    whole = raw.base
    assert whole is not None and whole.flags.c_contiguous and whole.dtype.itemsize == dtype.itemsize
    flat = whole.reshape(-1)
    for row in range(1, n):
        flat[row * n : (row + 1) * n] = whole[row, :n]  # never beyond what has been moved
    return flat[: n * n].reshape(n, n).view(dtype)
