"""NumPy's .npy: one square matrix of weights."""

from __future__ import annotations

import lzma
import warnings
import zipfile
import zlib
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

_FLOAT32_WHOLE = 1 << 24  # float32 is exact for integers up to this


def read(source: GraphFile) -> GivenGraph:
    """Read a matrix. Raises Refused if it is not a square matrix of numbers."""
    source.weight.check_unused(source.name)
    return weights_in(array_in(source.file, source.name), source)


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


def array_in(file: IO[bytes], name: str) -> np.ndarray:
    """Read an array in the format of numpy.save. Raises Refused if it is damaged, or holds no numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of headers from Python 2, which users cannot change
            array = np.lib.format.read_array(file, allow_pickle=False)
    except (MemoryError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError):
        raise  # the caller reports short memory, unpacks the file and reports the damage
    except Exception as error:  # the header is a Python literal, for which NumPy's parser raises errors of any kind
        reason = sanitise(str(error))[:80] or type(error).__name__
        raise Refused(f"{name} is not a NumPy array of numbers ({reason}); save it again with numpy.save") from None
    if array.dtype.kind not in "fiubUS" or not array.dtype.itemsize:
        raise Refused(f"{name} holds {sanitise(str(array.dtype))[:40]}, not numbers; save float64 or int64")
    if file.read(1):  # at the end of an archive's member its checksum is compared
        raise Refused(f"{name} has data after its array of shape {quoted(str(array.shape))}; save it again")
    return array


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
