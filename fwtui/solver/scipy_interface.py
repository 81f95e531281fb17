"""`shortest_path`: the signature and the conventions of scipy.sparse.csgraph.shortest_path."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from scipy.sparse import csgraph as scipys
from scipy.sparse import issparse

from fwtui.graphs.adjacency import Adjacency, both_ways, count_finite, of_dense
from fwtui.graphs.library_objects import check_sparse, of_entries
from fwtui.solver.solve import solve_exactly

_NEAR_0 = 1e-8  # up to it SciPy reads a weight of a dense array as 0, which is no edge, if it counts edges


@overload
def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: Literal[False] = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> np.ndarray: ...


@overload
def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    *,
    return_predecessors: Literal[True],
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> tuple[np.ndarray, np.ndarray]: ...


@overload
def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]: ...


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> np.ndarray | tuple[np.ndarray, np.ndarray | None]:
    """Return the result of scipy.sparse.csgraph.shortest_path: same arguments, conventions, data types and errors.

    The methods "auto" and "FW" run the kernels of `solve` if these round no sum. Distances then equal SciPy's to the last digit;
    among several shortest paths, predecessors may follow a different one. SciPy itself computes the methods "D", "BF" and "J",
    graphs whose sums float64 rounds, and calls with `indices` or `overwrite`.
    """
    if method in ("auto", "FW") and indices is None and not overwrite:
        graph = _of_csgraph(csgraph, directed, unweighted)
        result = solve_exactly(graph, return_predecessors) if graph is not None else None
        if result is not None:
            distances = result.distances.astype(np.float64, copy=False)
            return (distances, result.predecessors) if return_predecessors else distances
    return scipys.shortest_path(csgraph, method, directed, return_predecessors, unweighted, overwrite, indices)


def _of_csgraph(csgraph: Any, directed: bool, unweighted: bool) -> Adjacency | None:
    """Read the graph as SciPy does; None for input that is left to SciPy."""
    readable = csgraph.format in ("csr", "csc", "lil") if issparse(csgraph) else isinstance(csgraph, np.ndarray)
    if not readable or isinstance(csgraph, np.ma.MaskedArray) or csgraph.ndim != 2 or csgraph.dtype.kind not in "fiub":
        return None
    n = csgraph.shape[0]
    if n != csgraph.shape[1] or n == 0:
        return None
    if issparse(csgraph):
        check_sparse(csgraph)
        entries = csgraph.tocsr().tocoo()
        weights = entries.data.astype(np.float64)
        loops = weights[entries.row == entries.col]
        if not np.isfinite(weights).all() or (loops < 0).any():
            return None
        graph = of_entries(n, entries.row, entries.col, np.ones(len(weights)) if unweighted else weights)
        return graph if directed else both_ways(graph)
    dense = np.array(csgraph, dtype=np.float64)
    no_edge = np.abs(dense) <= _NEAR_0 if unweighted else dense == 0
    dense[no_edge | np.isnan(dense)] = np.inf
    if np.isneginf(dense).any() or (dense.diagonal() < 0).any():
        return None
    if unweighted:
        dense[np.isfinite(dense)] = 1
    np.fill_diagonal(dense, 0)
    if not directed:
        dense = np.minimum(dense, dense.T)
    return of_dense(dense, count_finite(dense))
