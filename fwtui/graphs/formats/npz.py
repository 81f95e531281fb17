"""NumPy's .npz: the weights of `fwtui graph`, one matrix, a sparse matrix saved by SciPy, or the columns of a table of edges."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from dataclasses import replace
from functools import partial
from typing import IO, Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.common.units import memory
from fwtui.graphs.adjacency import Adjacency, GivenGraph, count_finite, of_dense
from fwtui.graphs.columns import ENTRIES_NOTE, ends_among, matrix_note
from fwtui.graphs.edge_tables import of_table
from fwtui.graphs.formats.npy import array_in, weights_in
from fwtui.graphs.graph import GraphInput, blocks
from fwtui.graphs.graph_file import MAX_BYTES, MAX_EXPANSION
from fwtui.graphs.graph_limits import named
from fwtui.graphs.library_objects import check_sparse, lazy_of_object, of_object
from fwtui.graphs.text_rows import GraphFile

TITLE = "NumPy"
WRITTEN = "NumPy: weights, no_edge"
SUFFIXES = (".npz",)
ORDER = 60
BEGINS = rb"PK\x03\x04"
ARRAYS = True
_WORD = 64  # bytes of the longest name of a form
_SPARSE = ("csr", "csc", "coo")
_MEMBERS = 64
_COPIES = 2  # copies of a matrix in several arrays during conversion
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
_DAMAGED += (NotImplementedError, RuntimeError, UnicodeDecodeError, KeyError)


def read(source: GraphFile) -> GivenGraph:
    """Read a graph. Raises Refused if it is not one or its arrays need too much memory."""
    name, most = source.name, source.most
    try:
        with zipfile.ZipFile(source.file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            total = sum(info.file_size for info in members.values())
            if len(members) > 1:
                most //= _COPIES
            if len(members) > _MEMBERS or total > most:
                room = f"{len(members):,} arrays of {memory(total)}, but only {memory(most)} can be used"
                raise Refused(f"{name} holds {room}; choose a smaller graph")
            if total > max(MAX_BYTES, MAX_EXPANSION * source.size):
                bomb = f"{memory(total)}, more than {MAX_EXPANSION} times its {memory(source.size)}"
                raise Refused(f"{name} unpacks to {bomb}; save it uncompressed (numpy.savez), or as a sparse matrix")

            def array(key: str) -> np.ndarray:
                if key not in members:
                    raise Refused(f"{name} has no array {key!r}; save the graph again")
                with archive.open(members[key]) as member:
                    return array_in(member, f"{name}, array {sanitise(key)[:40]}", members[key].file_size)

            if len(members) > 1 and "format" not in members and ends_among(list(members)) is not None:
                return of_table({key: array(key) for key in members}, name, source.weight, source.no_edge)
            source.weight.check_unused(name)
            if "format" in members:
                graph = _sparse(array, source)
                return replace(graph, notes=(ENTRIES_NOTE, *graph.notes))
            if {"weights", "no_edge"} <= members.keys():
                return _own(array("weights"), array("no_edge"), name)
            if len(members) != 1:
                arrays = f"the arrays {sanitise(', '.join(sorted(members)))[:80]}" if members else "no array"
                raise Refused(f"{name} holds {arrays}; save one square matrix, or scipy.sparse.save_npz")
            return weights_in(array(next(iter(members))), source)
    except _DAMAGED as error:
        raise Refused(f"{name} cannot be unpacked: {sanitise(str(error))[:80].lower()}; save it again") from None


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Write `weights` (n, n) as the kernels read them, and `no_edge`, the value for no edge."""
    np.savez(file, weights=graph.matrix, no_edge=np.array(graph.no_edge, dtype=graph.matrix.dtype))


def _own(weights: np.ndarray, no_edge: np.ndarray, name: str) -> Adjacency:
    """Read the arrays that `fwtui graph` writes."""
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or weights.dtype.kind not in "fi" or no_edge.size != 1:
        raise Refused(f"{name} has no square matrix 'weights' with one 'no_edge'; save the graph again")
    if no_edge.dtype.kind not in "fi":
        raise Refused(f"{name}: 'no_edge' is not a number; save the graph again")
    dense = np.empty(weights.shape, np.result_type(weights, np.float32))  # this type represents every weight
    for rows in blocks(weights):
        dense[rows] = np.where(weights[rows] == no_edge.reshape(-1)[0], np.inf, weights[rows])
    return replace(of_dense(dense, count_finite(dense)), notes=(matrix_note(len(dense)),))


def _sparse(array: Any, source: GraphFile) -> GivenGraph:
    name = source.name
    stored = array("format")
    form = str(stored.reshape(-1)[0]) if stored.size == 1 and stored.dtype.itemsize <= _WORD else "unknown"
    if form.startswith("b'"):
        form = form[2:-1]
    if form not in _SPARSE:
        raise Refused(f"{name} is a sparse matrix of form {quoted(form)}; save csr, csc or coo (scipy.sparse.save_npz)")
    keys = ("row", "col") if form == "coo" else ("indptr", "indices")
    first, second, weights, shape = (array(key) for key in (*keys, "data", "shape"))
    if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (first, second, shape)) or len(shape) != 2:
        raise Refused(f"{name} has indices that are not a row of integers; save it again with scipy.sparse.save_npz")
    if shape[0] != shape[1] or shape[0] < 0:
        raise Refused(f"{name} is {shape[0]} x {shape[1]}, and a graph's matrix is square; choose another file")
    n = int(shape[0])
    source.limits.check_size(n, name, "has")
    if weights.ndim != 1 or weights.dtype.kind not in "fiu" or len(weights) != len(second):
        raise Refused(f"{name} does not have one number for each index; save it again with scipy.sparse.save_npz")

    from scipy import sparse  # slow to import, and only for sparse matrices

    parts = (weights, (first, second)) if form == "coo" else (weights, second, first)
    try:
        matrix: Any = getattr(sparse, f"{form}_array")(parts, (n, n))
    except ValueError as error:
        raise Refused(f"{name} is not a sparse matrix: {sanitise(str(error))[:80]}; save it again") from None

    with named(name):
        if source.no_edge is not None:
            check_sparse(matrix)
            matrix = matrix.tocoo()
            there = ~source.is_no_edge(matrix.data)
            matrix = sparse.coo_array((matrix.data[there], (matrix.row[there], matrix.col[there])), (n, n))
        lazy = lazy_of_object(matrix)
    look = named(name)(partial(of_object, matrix) if lazy is None else lazy.look)
    return look() if lazy is None else replace(lazy, look=look)
