"""Weights that usually mean no edge: found in matrices, and replaced where the user names one."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.adjacency import Adjacency, GivenGraph

_CELLS = 1 << 18  # that are looked at: enough, since a weight for no edge fills a good part of the matrix
_MIN_SHARE = 0.5  # of the cells, above which the greatest weight means no edge if it is one that programs use for that
_MIN_SPREAD, _MIN_CELLS = 1000, 2  # so many times the next weight, in so many cells
_POWERS = {(1 << bits) - less for bits in (15, 16, 24, 30, 31, 32, 53, 62, 63, 64) for less in (0, 1)}
_DECIMAL = {10**digits - less for digits in range(4, 39) for less in (0, 1)}  # 9999, 10000, 99999 ...
_REPEATED = {0x3F3F3F3F, 0x7F7F7F7F, 0x3FFFFFFF, 0x3F3F3F3F3F3F3F3F, 0x7F7F7F7F7F7F7F7F}  # what memset leaves
_FLOATS = {float(np.finfo(kind).max) for kind in (np.float32, np.float64)}
_USUAL = {float(value) for value in _POWERS | _DECIMAL | _REPEATED} | _FLOATS


def likely_no_edge(graph: GivenGraph) -> int | float | None:
    """Return the weight that probably means no edge in a dense matrix, or None."""
    if isinstance(graph, Adjacency):
        dense, arcs = graph.dense, graph.arcs
        if dense is None and arcs is not None and 2 * len(arcs.weights) > graph.n**2:
            weights = arcs.weights[arcs.sources != arcs.targets]
            return _likely(weights[:: max(1, len(weights) // _CELLS)])
    else:
        dense = graph.parts if isinstance(graph.parts, np.ndarray) else None
    if dense is None or len(dense) < 2:
        return None
    step = max(1, dense.size // _CELLS)
    rows, block = np.arange(0, len(dense), step), dense[::step]
    greatest = block.max()
    if not np.isfinite(greatest):
        greatest = block.max(where=np.isfinite(block), initial=0)
    if float(greatest) not in _USUAL:  # a quick answer for most matrices; a diagonal is seldom above the other weights
        return None
    apart = np.ones(block.shape, bool)
    apart[np.arange(len(rows)), rows] = False
    return _likely(block[apart])


def _likely(weights: np.ndarray) -> int | float | None:
    weights = weights[np.isfinite(weights)] if weights.dtype.kind == "f" else weights
    if not len(weights) or float(greatest := weights.max()) not in _USUAL:
        return None
    others = weights[weights != greatest]
    count = len(weights) - len(others)
    if not len(others):
        return None
    spread = float(greatest) >= _MIN_SPREAD * max(1.0, float(np.abs(others).max()))
    return greatest.item() if count >= _MIN_CELLS and (spread or count > _MIN_SHARE * len(weights)) else None
