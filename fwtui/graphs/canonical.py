"""The canonical form of distances, independent of the data type of the kernel, so that results and checksums are comparable."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.graph import GraphInput, each_block
from fwtui_kernels.plan import FLOATS, NO_EDGE

NO_PATH = 2**31 - 1  # +inf for real weights
NO_DISTANCE = -(2**31)  # NaN, a fraction or an overflow in an integer result: always wrong
_MODULUS = 2**32 - 1
_BLOCK = 65536  # words; the weighted sum of one block still fits 64 bits


def canonical_type(graph: GraphInput) -> np.dtype:
    """Return int32 for the distances of integer weights, except in float64 if they may exceed it; else the graph's own type."""
    fits = graph.dtype != "float64" or (graph.n - 1) * graph.largest_weight < NO_PATH
    return np.dtype(np.int32) if graph.integer and fits else graph.matrix.dtype


def canonical(raw: np.ndarray, graph: GraphInput, dtype: str) -> np.ndarray:
    """Convert a kernel's result to int32 with 2^31 - 1 for no path (integers), or to its floating type with +inf.

    With negative edges unreachable integer cells drift below the sentinel, so all values of at least
    sentinel - 2 x drift mean no path. An array with the result's item size is changed in place and returned, since a second
    copy may not fit.
    """
    form = canonical_type(graph)
    if raw.itemsize != form.itemsize:
        result = np.empty(raw.shape, form)
    else:
        raw = np.require(raw, requirements=["C", "W"])
        result = raw.view(form)

    def convert(rows: slice) -> None:
        cells = raw[rows]
        if dtype not in FLOATS:
            far = cells >= NO_EDGE[dtype] - 2 * graph.drift
            result[rows] = np.where(far, np.int32(NO_PATH), cells)
        elif form == np.int32:
            result[rows] = _whole(cells)
        else:
            cells += 0  # -0 and +0 are one distance

    each_block(raw, convert)
    return result


def no_path(distances: np.ndarray) -> np.ndarray:
    """Return the mask of cells of canonical distances that mean no path."""
    return np.isposinf(distances) if distances.dtype.kind == "f" else distances == NO_PATH


def no_distance(distances: np.ndarray) -> np.ndarray:
    """Return the mask of cells of canonical distances that are not distances."""
    return np.isnan(distances) if distances.dtype.kind == "f" else distances == NO_DISTANCE


def reachable_pairs(distances: np.ndarray) -> int:
    """Count the ordered pairs i != j with a path, in canonical distances."""
    unreachable = sum(each_block(distances, lambda rows: int(np.count_nonzero(no_path(distances[rows])))))
    diagonal = int(np.count_nonzero(~no_path(distances.diagonal())))
    return distances.size - unreachable - diagonal


def fletcher64(array: np.ndarray) -> str:
    """Return Fletcher's checksum over the array's little-endian 32-bit words, modulo 2^32 - 1: 16 hexadecimal digits."""
    cells = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1).view("<u4")
    weights = np.arange(_BLOCK, 0, -1, dtype=np.uint64)

    def sums(one: slice) -> tuple[int, int, int]:
        block = cells[one].astype(np.uint64)
        return block.size, int(block.sum()), int(block @ weights[_BLOCK - block.size :])

    first = second = 0
    for size, plain, weighted in each_block(cells.reshape(-1, 1), sums, _BLOCK):
        second = (second + size * first + weighted) % _MODULUS
        first = (first + plain) % _MODULUS
    return f"{second << 32 | first:016x}"


def _whole(cells: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # the conversion changes a value that does not fit
        whole = cells.astype(np.int32)
        proper = whole.astype(cells.dtype) == cells
    if not proper.all():
        whole[~proper] = NO_DISTANCE
        whole[np.isposinf(cells)] = NO_PATH
    return whole
