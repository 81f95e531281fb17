"""Weights that mean no edge: detected in matrices, or chosen by the user."""

from __future__ import annotations

import numpy as np

from fwtui.graphs.adjacency import Arcs, GivenGraph, LazyGraph

_CELLS = 1 << 18  # cells of the sample; a marker for no edge fills a good part of the matrix
_MIN_SHARE = 0.5  # share of cells with a common marker above which it means no edge
_MIN_SPREAD, _MIN_CELLS = 1000, 2  # minimum ratio to the next weight, and number of cells with a marker
_POWERS = {(1 << bits) - less for bits in (7, 8, 15, 16, 24, 30, 31, 32, 53, 62, 63, 64) for less in (0, 1)}
_DECIMAL = {10**digits - less for digits in range(3, 39) for less in (0, 1)}  # 999, 1000, 9999 ...
_REPEATED = {0x3F3F3F3F, 0x7F7F7F7F, 0x3FFFFFFF, 0x3F3F3F3F3F3F3F3F, 0x7F7F7F7F7F7F7F7F}  # values that memset writes
_FLOATS = {float(np.finfo(kind).max) for kind in (np.float32, np.float64)}
_MARKERS = {float(value) for value in _POWERS | _DECIMAL | _REPEATED} | _FLOATS


def likely_no_edge(graph: GivenGraph) -> int | float | None:
    """Return the weight that probably means no edge in a matrix, or None. A matrix with +inf or NaN marks its missing edges."""
    parts = graph.parts if isinstance(graph, LazyGraph) else graph.arcs or graph.dense
    if isinstance(parts, np.ndarray):
        step = max(1, parts.size // _CELLS)
        block = parts[::step]
        if not _may_mean_none(block):  # quick check
            return None
        off_diagonal = np.ones(block.shape, bool)
        off_diagonal[np.arange(len(block)), np.arange(0, len(parts), step)] = False
        return _likely(block[off_diagonal])
    if parts is None or 2 * len(parts.weights) <= graph.n**2 or not _may_mean_none(parts.weights):
        return None
    return _likely(parts.weights[parts.sources != parts.targets] if isinstance(parts, Arcs) else parts.weights)


def _may_mean_none(weights: np.ndarray) -> bool:
    """Return whether the greatest weight is a common marker, or so large that it may be another one."""
    greatest = float(weights.max(initial=0))
    return weights.size > 1 and (greatest in _MARKERS or _MIN_SPREAD <= greatest < np.inf)


def _likely(weights: np.ndarray) -> int | float | None:
    """Return the greatest weight if it is a common marker in most cells or far above the others, or both for any number."""
    if not _may_mean_none(weights):
        return None
    greatest = weights.max()
    others = weights[weights != greatest]
    count = len(weights) - len(others)
    if not len(others) or count < _MIN_CELLS:
        return None
    signs = float(greatest) in _MARKERS
    signs += float(greatest) >= _MIN_SPREAD * max(1.0, float(np.abs(others).max()))
    return greatest.item() if signs + (count > _MIN_SHARE * len(weights)) >= 2 else None
