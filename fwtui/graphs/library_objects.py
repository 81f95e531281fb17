"""Graphs from other libraries: NumPy and SciPy matrices, NetworkX graphs, tables of edges."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import RESERVED_MEMORY
from fwtui.common.text import excerpt, quoted
from fwtui.common.units import counted, memory
from fwtui.graphs.adjacency import (
    Adjacency,
    Arcs,
    CsrRows,
    GivenGraph,
    LazyGraph,
    count_finite,
    graph_of_arcs,
    of_dense,
    of_matrix,
    of_rows,
)
from fwtui.graphs.columns import ANY_WEIGHT, WeightChoice, is_numeric, weights_note
from fwtui.graphs.file_options import AUTO
from fwtui.graphs.graph import blocks
from fwtui.graphs.no_edge import likely_no_edge

_VERTEX = 64  # bytes per vertex: the minimum of every algorithm
_ALWAYS_FITS = 1 << 20  # vertices


def graph_of(graph: Any, weight: Hashable | None = AUTO) -> GivenGraph:
    """Return the graph of an object, unchecked if its arrays can be used unchanged; see of_object.

    Warns if the greatest weight of a matrix probably means no edge.
    """
    shape = getattr(graph, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
        _check_vertices(shape[0])
    choice = ANY_WEIGHT._replace(name=weight)
    given = lazy_of_object(graph, choice) or of_object(graph, choice)
    if (likely := likely_no_edge(given)) is not None:
        message = f"the greatest weight, {likely:.17g}, is in so many cells that it may mean no edge; replace it by numpy.inf"
        warnings.warn(message, stacklevel=3)
    return given


def _check_vertices(n: int) -> None:
    """Raise Refused if not even a few numbers for each vertex fit into memory, as in a sparse matrix without edges."""
    if n <= _ALWAYS_FITS:
        return
    free = psutil.virtual_memory().available
    usable = max(0, free - RESERVED_MEMORY)
    if n * _VERTEX > usable:
        raise Refused(
            f"{n:,} vertices need {memory(n * _VERTEX)}, but only {memory(free)} is free; pass at most {usable // _VERTEX:,}"
        )


def lazy_of_object(graph: Any, choice: WeightChoice = ANY_WEIGHT) -> LazyGraph | None:
    """Return the graph of an object, or None if its arrays have to be converted first; see of_object."""
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(graph):
        if graph.format not in ("csr", "coo") or graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
            return None
        choice.check_unused("a sparse matrix")
        rows = _rows_of(graph) if graph.format == "coo" else graph
        lazy = of_rows(graph.shape[0], CsrRows(rows.indptr, rows.indices, rows.data), partial(of_object, rows))
        return None if lazy is None else replace(lazy, notes=_fewer(graph, rows))
    if type(graph) is not np.ndarray:
        return None
    choice.check_unused("an array")
    return of_matrix(graph, partial(of_object, graph))


def _fewer(matrix: Any, rows: Any) -> tuple[str, ...]:
    """Return a note if duplicate entries of a sparse matrix were added up."""
    fewer = matrix.nnz - rows.nnz
    return (f"{counted(fewer, 'duplicate entry', 'duplicate entries')}: duplicates add up",) if fewer else ()


def of_object(graph: Any, choice: WeightChoice = ANY_WEIGHT) -> Adjacency:
    """Return the graph of an object. Raises Refused if it is not a graph, TypeError if its kind is unknown.

    NumPy: w(i, j) in row i, column j; +inf, NaN or a mask for no edge. SciPy sparse: stored entries are edges, zeros
    included, and duplicate entries are added up, as SciPy does. NetworkX: see of_networkx. Tables: see edge_tables.
    """
    if isinstance(graph, Adjacency):
        return graph
    sparse, networkx = sys.modules.get("scipy.sparse"), sys.modules.get("networkx")
    if sparse is not None and sparse.issparse(graph):
        return _of_sparse(graph)
    if networkx is not None and isinstance(graph, networkx.Graph):
        return of_networkx(graph, choice)
    if isinstance(graph, np.ndarray | list | tuple):
        choice.check_unused("an array")
        return of_array(graph)
    from fwtui.graphs.edge_tables import is_table, of_table  # late import: it brings the reader of text tables

    if is_table(graph):
        return of_table(graph, choice=choice)
    kinds = "a NumPy array, a SciPy sparse matrix, a NetworkX graph nor a table of edges"
    raise TypeError(f"{type(graph).__name__} is neither {kinds}")


def of_array(array: Any) -> Adjacency:
    """Return the graph of a square matrix.

    A zero off the diagonal is an edge of weight 0, but SciPy reads it as no edge. Raises Refused for such zeros in a matrix
    without another value for no edge.
    """
    masked = isinstance(array, np.ma.MaskedArray)
    dense = np.ascontiguousarray(weights_in(array))
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
        raise Refused(f"an array of shape {dense.shape} is not a graph; pass a square matrix of n x n weights")
    if dense.dtype.kind == "f" and any((dense[rows] == -np.inf).any() for rows in blocks(dense)):
        raise Refused("-inf is not a weight; pass finite numbers, and +inf for no edge")
    finite = count_finite(dense)
    if not masked and finite == dense.size:  # no cell means no edge
        zeros, on_diagonal = (part.size - np.count_nonzero(part) for part in (dense, dense.diagonal()))
        if zeros > on_diagonal:
            raise Refused(
                "zeros off the diagonal may mean no edge or edges of weight 0; pass scipy.sparse.csr_array(matrix) for no edge, "
                "or numpy.ma.array(matrix) for edges"
            )
    return of_dense(dense, finite)


def weights_in(values: Any) -> np.ndarray:
    """Return the numbers of an array of any shape, +inf where they are masked. Raises Refused if they cannot be weights."""
    masked = isinstance(values, np.ma.MaskedArray)
    array = values if masked else np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise Refused(f"weights of type {array.dtype} are not supported; convert them to float64 or int64")
    if array.dtype == bool:
        raise Refused("True and False are not weights; pass scipy.sparse.csr_array(matrix), or weights with +inf for no edge")
    if masked or array.dtype.itemsize > 8 or array.dtype == np.float16:
        array = array.astype(np.float64)
    return np.ma.filled(array, np.inf)


def check_sparse(matrix: Any) -> None:
    """Raise Refused if SciPy would read or write beyond the arrays of this square sparse matrix."""
    n, compressed = matrix.shape[0], matrix.format in ("csr", "csc")
    if not compressed and matrix.format != "coo":
        return
    ends = (matrix.indices,) if compressed else (matrix.row, matrix.col)
    sound = all(len(part) == len(matrix.data) and (not len(part) or (part.min() >= 0 and part.max() < n)) for part in ends)
    if compressed and sound:
        pointers = matrix.indptr
        sound = len(pointers) == n + 1 and pointers[0] == 0 and pointers[-1] <= len(matrix.data)
        sound = sound and not (pointers[1:] < pointers[:-1]).any()
    if not sound:
        raise Refused("the sparse matrix has indices outside its shape: its arrays are damaged; build it again")


def _of_sparse(matrix: Any) -> Adjacency:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise Refused(f"a matrix of shape {matrix.shape} is not a graph; pass n x n weights")
    rows = _rows_of(matrix)
    entries = rows.tocoo()
    return replace(of_entries(matrix.shape[0], entries.row, entries.col, entries.data), notes=_fewer(matrix, rows))


def _rows_of(matrix: Any) -> Any:
    """Return the CSR form of a sparse matrix of real weights, checked by check_sparse; duplicate entries are added up."""
    if matrix.dtype.kind not in "fiub":
        raise Refused(f"weights of type {matrix.dtype} are not supported; convert them to float64")
    check_sparse(matrix)
    rows = matrix.tocsr()
    if rows.nnz != matrix.nnz or not rows.has_canonical_format:
        rows = matrix.astype(np.float64).tocsr()  # a sum may exceed a narrow type
        rows.sum_duplicates()
    return rows


def of_entries(n: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Adjacency:
    """Return the graph of a sparse matrix's entries; +inf and NaN mean no edge. Raises Refused for -inf."""
    present = np.isfinite(weights)
    if np.isneginf(weights[~present]).any():
        raise Refused("-inf is not a weight; pass finite numbers")
    ends = sources[present].astype(np.int64), targets[present].astype(np.int64)
    return Adjacency(n, arcs=Arcs(*ends, weights[present].astype(np.float64)))


def of_networkx(
    graph: Any,
    choice: WeightChoice = ANY_WEIGHT,
    name: str = "the graph",
    no_edge: int | float | None = None,
    complete: bool = False,
) -> Adjacency:
    """Return the arcs of a NetworkX graph, with vertices in the graph's order; of parallel edges the lightest counts.

    Weights are the attribute that `choice` names, by default "weight", or the only one with a similar name. An edge without
    it has the default that a GraphML file declares, else counts 1, as in NetworkX. Raises Refused for weights that are not
    finite numbers, and with `complete` for edges without weight.
    """
    title = _weight_attribute(graph, choice, name)
    default = None if title is None else graph.graph.get("edge_default", {}).get(title)
    labels, (sources, targets), values = edges_of_networkx(graph, title, default)
    once = sources <= targets if not graph.is_directed() else np.ones(len(values), bool)  # an undirected edge is two arcs
    lacking = [place for place, value in enumerate(values) if value is None and once[place]] if title is not None else []
    notes = [weights_note(title, "attribute")]
    if lacking:
        source, target = (excerpt(str(labels[int(ends[lacking[0]])])) for ends in (sources, targets))
        which = f"{counted(len(lacking), 'edge')} without {quoted(str(title))}, such as {source} to {target}"
        if complete:
            raise Refused(f"{name} has {which}; add a weight to each edge, or a <default>")
        notes.append(f"{which}, count 1")
    elif default is not None:
        notes.append(f"an edge without it weighs {default}, as the file declares")
    try:
        weights = np.array([1 if value is None else value for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        raise Refused(
            f"{name} has a weight that is not a number; correct the attribute {quoted(str(title))} of its edges"
        ) from None
    if np.isnan(weights).any() or np.isneginf(weights).any():
        raise Refused(f"{name} has a weight that is NaN or -inf; correct the attribute {quoted(str(title))} of its edges")
    present = np.isfinite(weights) & (weights != (np.inf if no_edge is None else no_edge))
    arcs = Arcs(sources[present], targets[present], weights[present])
    return graph_of_arcs(len(labels), labels, arcs, mirrored=not graph.is_directed(), notes=tuple(notes))


def _weight_attribute(graph: Any, choice: WeightChoice, name: str) -> Hashable | None:
    """Return the name of the edges' attribute that holds the weights; None if each edge counts 1."""
    if choice.name is None or (choice.name == AUTO and all("weight" in data for *_, data in graph.edges(data=True))):
        return None if choice.name is None or not graph.size() else "weight"
    if isinstance(choice.name, list | set | dict | np.ndarray) or callable(choice.name):
        raise Refused(f"weight={excerpt(repr(choice.name))} is not the name of an attribute; pass one, such as 'weight'")
    values: dict[Hashable, Any] = {}
    for *_, data in graph.edges(data=True):
        for key, value in data.items():
            if values.get(key) is None:
                values[key] = value
    values |= {key: value for key, value in graph.graph.get("edge_default", {}).items() if values.get(key) is None}
    titles = list(values)
    place = choice.among(titles, lambda place: is_numeric(values[titles[place]]), name, "attribute")
    return None if place is None else titles[place]


def edges_of_networkx(
    graph: Any, weight: Hashable | None, missing: Any
) -> tuple[list[Hashable], tuple[np.ndarray, np.ndarray], list[Any]]:
    """Return the nodes of a NetworkX graph, and for each arc the indices of its ends and its attribute of that name.

    An undirected edge is two arcs, which may have two weights in a view of a directed graph.
    """
    nodes: list[Hashable] = list(graph)
    at = {node: place for place, node in enumerate(nodes)}
    several = graph.is_multigraph()
    sources, targets, values = list[int](), list[int](), list[Any]()
    for node, neighbours in graph.adjacency():
        for other, data in neighbours.items():
            for attributes in data.values() if several else (data,):
                sources.append(at[node])
                targets.append(at[other])
                values.append(missing if weight is None else attributes.get(weight, missing))
    return nodes, (np.array(sources, np.int64), np.array(targets, np.int64)), values
