"""NumPy's .npy: one square matrix of weights."""

from __future__ import annotations

import io
import lzma
import math
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import IO

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.graphs.adjacency import Adjacency, GivenGraph, of_matrix
from fwtui.graphs.columns import matrix_note
from fwtui.graphs.graph import GraphInput, blocks
from fwtui.graphs.graph_limits import named
from fwtui.graphs.library_objects import of_array
from fwtui.graphs.text_rows import GraphFile

TITLE = "NumPy"
SUFFIXES = (".npy",)
ORDER = 50
BEGINS = rb"\x93NUMPY"
ARRAYS = True
_FLOAT32_WHOLE = 1 << 24  # float32 is exact for integers up to this
_AXES = 32  # the limit of every NumPy version
_HEADER = 10_000  # bytes that NumPy accepts of a header
_LONGEST_SIDE = 1 << 40  # limit also for an array without elements


def read(source: GraphFile) -> GivenGraph:
    """Read a matrix. Raises Refused if it is not a square matrix of numbers."""
    name = source.name
    source.weight.check_unused(name)
    return weights_in(array_in(source.file, name, source.size, lambda n: source.limits.check_size(n, name, "declares")), source)


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Write the weights in the narrowest float type that holds them, with +inf for no edge and 0 on the diagonal.

    Raises Refused if a weight of 0 would be read as no edge.
    """
    narrowest = np.dtype(np.float32 if graph.largest_weight <= _FLOAT32_WHOLE else np.float64)
    dtype = graph.matrix.dtype if graph.matrix.dtype.kind == "f" else narrowest
    # if every cell is finite, the reader rejects zeros as ambiguous: +inf on the diagonal marks missing edges
    diagonal_value = np.inf if (graph.low or 0) <= 0 and graph.edges == graph.n * (graph.n - 1) else 0.0
    if diagonal_value and np.count_nonzero(graph.matrix) < graph.matrix.size and (graph.matrix.diagonal() < 0).all():
        raise Refused("in .npy this graph's weights of 0 would be read as no edge; choose .mtx")
    header = {"descr": dtype.str, "fortran_order": False, "shape": (graph.n, graph.n)}
    np.lib.format.write_array_header_1_0(file, header)
    for rows in blocks(graph.matrix):
        cells = np.where(graph.matrix[rows] == graph.no_edge, np.inf, graph.matrix[rows]).astype(dtype)
        at = np.arange(rows.start, rows.stop)
        loops = cells[at - rows.start, at]
        cells[at - rows.start, at] = np.where(loops < 0, loops, diagonal_value)
        file.write(cells.tobytes())


def array_in(file: IO[bytes], name: str, size: int, check: Callable[[int], None] = lambda side: None) -> np.ndarray:
    """Read an array in the format of numpy.save.

    Its declared size is trusted only if the file is that long. `check` is called with the side of a matrix.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of headers from Python 2, which users cannot change
            version = np.lib.format.read_magic(file)
            size_bytes = file.read(2 if version == (1, 0) else 4)
            length = int.from_bytes(size_bytes, "little")
            if length > _HEADER:
                raise ValueError  # NumPy would read all of it first
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = header(io.BytesIO(size_bytes + file.read(length)))
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError):
        raise  # the caller unpacks the file and reports the damage
    except Exception:  # the header is a Python literal, for which NumPy's parser raises errors of any kind
        raise Refused(f"{name} does not have the header of a NumPy array; save it again with numpy.save") from None
    if dtype.kind not in "fiubUS" or not dtype.itemsize:
        raise Refused(f"{name} holds {sanitise(str(dtype))[:40]}, not numbers; save float64 or int64")
    if any(type(side) is not int or not 0 <= side <= _LONGEST_SIDE for side in shape) or len(shape) > _AXES:
        raise Refused(f"{name} declares shape {quoted(str(shape))}, which no array can have; save it again")
    count = math.prod(shape)
    if count * dtype.itemsize > size:
        raise Refused(f"{name} declares shape {quoted(str(shape))}, more than its {size:,} bytes hold; save it again")
    if len(shape) == 2 and shape[0] == shape[1]:
        check(shape[0])
    data = file.read(count * dtype.itemsize)
    if file.read(1):  # at the end of an archive's member its checksum is compared
        raise Refused(f"{name} has data after its array of shape {quoted(str(shape))}; save it again")
    if len(data) != count * dtype.itemsize:
        raise Refused(f"{name} ends after {len(data):,} bytes of an array of {count * dtype.itemsize:,}; fetch it again")
    array = np.frombuffer(data, dtype=dtype, count=count) if data else np.empty(0, dtype=dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


def weights_in(array: np.ndarray, source: GraphFile) -> GivenGraph:
    """Return the graph of a matrix of weights."""
    if source.no_edge is not None and array.ndim == 2 and array.dtype.kind in "fiu":
        absent = source.is_no_edge(array)
        array = np.where(absent, np.inf, array)

    def look() -> Adjacency:
        with named(source.name):
            return of_array(array)

    graph = of_matrix(array, look) or look()
    return replace(graph, notes=(matrix_note(graph.n),))
