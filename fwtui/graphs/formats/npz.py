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

_SPARSE, _INDICES = ("csr", "csc", "coo"), {"row", "col", "coords", "indices", "indptr", "shape"}
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
                with archive.open(members[key]) as member:
                    return array_in(member, f"{name}, array {sanitise(key)[:40]}")

            if len(members) > 1 and "format" not in members and ends_among(list(members)) is not None:
                return of_table({key: array(key) for key in members}, name, source.weight, source.no_edge)
            source.weight.check_unused(name)
            if "format" in members:
                if any(array(key).dtype.kind not in "iu" for key in _INDICES & members.keys()):  # SciPy would round them
                    raise Refused(f"{name} has indices that are not integers; save it again with scipy.sparse.save_npz")
                graph = _sparse(source)
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


def _sparse(source: GraphFile) -> GivenGraph:
    """Return the graph of a matrix that SciPy saved. Raises Refused if its arrays do not fit together."""
    from scipy import sparse  # slow to import, and only for sparse matrices

    name = source.name
    source.file.seek(0)
    try:
        matrix: Any = sparse.load_npz(source.file)
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise Refused(f"{name} is not a sparse matrix: {sanitise(str(error))[:80]}; save it with scipy.sparse.save_npz") from None
    if matrix.format not in _SPARSE:
        raise Refused(f"{name} is a sparse matrix of form {quoted(matrix.format)}; save csr, csc or coo")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise Refused(f"{name} has the shape {matrix.shape}, and a graph's matrix is square; choose another file")
    source.limits.check_size(matrix.shape[0], name, "has")
    with named(name):
        if source.no_edge is not None:
            check_sparse(matrix)
            matrix = matrix.tocoo()
            there = ~source.is_no_edge(matrix.data)
            matrix = sparse.coo_array((matrix.data[there], (matrix.row[there], matrix.col[there])), matrix.shape)
        lazy = lazy_of_object(matrix)
    look = named(name)(partial(of_object, matrix) if lazy is None else lazy.look)
    return look() if lazy is None else replace(lazy, look=look)
