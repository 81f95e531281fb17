"""Weights that mean no edge: detected in matrices, or chosen by the user."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.adjacency import Arcs, GivenGraph, LazyGraph

_CELLS = 1 << 18  # cells of the sample; a marker for no edge fills a good part of the matrix
_MIN_SHARE = 0.5  # share of cells with a common marker above which it means no edge
_MIN_SPREAD, _MIN_CELLS = 1000, 2  # minimum ratio to the next weight, and number of cells, for a rarer marker
_POWERS = {(1 << bits) - less for bits in (15, 16, 24, 30, 31, 32, 53, 62, 63, 64) for less in (0, 1)}
_DECIMAL = {10**digits - less for digits in range(4, 39) for less in (0, 1)}  # 9999, 10000, 99999 ...
_REPEATED = {0x3F3F3F3F, 0x7F7F7F7F, 0x3FFFFFFF, 0x3F3F3F3F3F3F3F3F, 0x7F7F7F7F7F7F7F7F}  # values that memset writes
_FLOATS = {float(np.finfo(kind).max) for kind in (np.float32, np.float64)}
_USUAL = {float(value) for value in _POWERS | _DECIMAL | _REPEATED} | _FLOATS


def likely_no_edge(graph: GivenGraph) -> int | float | None:
    """Return the weight that probably means no edge in a matrix, or None. A matrix with +inf or NaN marks its missing edges."""
    parts = graph.parts if isinstance(graph, LazyGraph) else graph.arcs or graph.dense
    if isinstance(parts, np.ndarray):
        step = max(1, parts.size // _CELLS)
        block = parts[::step]
        if not _is_usual(block):  # quick check
            return None
        off_diagonal = np.ones(block.shape, bool)
        off_diagonal[np.arange(len(block)), np.arange(0, len(parts), step)] = False
        return _likely(block[off_diagonal])
    if isinstance(parts, Arcs) and 2 * len(parts.weights) > graph.n**2 and _is_usual(parts.weights):
        return _likely(parts.weights[parts.sources != parts.targets])
    return None


def _is_usual(weights: np.ndarray) -> bool:
    return weights.size > 1 and float(weights.max()) in _USUAL


def _likely(weights: np.ndarray) -> int | float | None:
    if not _is_usual(weights):
        return None
    greatest = weights.max()
    others = weights[weights != greatest]
    count = len(weights) - len(others)
    if not len(others) or count < _MIN_CELLS:
        return None
    spread = float(greatest) >= _MIN_SPREAD * max(1.0, float(np.abs(others).max()))
    return greatest.item() if spread or count > _MIN_SHARE * len(weights) else None
