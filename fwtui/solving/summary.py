"""What is worth knowing about all distances of a graph at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fwtui.graphs.graph import blocks

BINS = 16
MAP_ROWS, MAP_COLUMNS = 16, 32


@dataclass(frozen=True)
class Summary:
    """Of the ordered pairs i != j. Distances are in units of the weights; None where no pair, or no vertex, has one."""

    n: int
    pairs: int
    reachable: int  # pairs with a path
    components: int  # strongly connected
    largest: int  # vertices of the largest of them
    diameter: float | None  # the longest distance that there is
    farthest: tuple[int, int] | None  # the pair that it is between
    radius: float | None  # the least distance within which some vertex reaches all others
    centre: tuple[int, ...]  # the vertices that do
    mean: float | None
    edges: np.ndarray  # of the histogram's bins: (len(counts) + 1,)
    counts: np.ndarray  # pairs in each bin, the upper edge excluded but for the last
    heat: np.ndarray  # (<= 16, <= 32) mean distance of blocks of pairs, +inf where none has a path

    @property
    def share(self) -> float | None:
        return self.reachable / self.pairs if self.pairs else None


def summarise(distances: np.ndarray) -> Summary:
    """The summary of (n, n) distances with +inf for no path and 0 on the diagonal."""
    n = len(distances)
    eccentricity = np.empty(n)
    low, high, total, reachable = np.inf, -np.inf, 0.0, 0
    farthest: tuple[int, int] | None = None
    label = np.empty(n, dtype=np.int64)
    for rows in blocks(distances):
        block, within = _apart(distances, rows)
        eccentricity[rows] = block.max(axis=1, initial=-np.inf)  # of a lone vertex: nothing to reach
        reachable += int(np.count_nonzero(within))
        total += float(block.sum(dtype=np.float64, where=within))
        low = min(low, float(block.min(initial=np.inf, where=within)))
        longest = float(block.max(initial=-np.inf, where=within))
        if longest > high:
            high = longest
            at = np.unravel_index(int(np.where(within, block, -np.inf).argmax()), block.shape)
            farthest = (int(at[0]) + rows.start, int(at[1]))
        # both ways: the first of its own component
        label[rows] = (np.isfinite(distances[rows]) & np.isfinite(distances[:, rows].T)).argmax(axis=1)
    sizes = np.bincount(label, minlength=n) if n else np.zeros(1, dtype=np.int64)
    radius = float(eccentricity.min(initial=np.inf)) if n > 1 else np.inf
    edges = _bin_edges(low, high, _whole(distances)) if reachable else np.zeros(1)
    return Summary(
        n=n,
        pairs=n * (n - 1),
        reachable=reachable,
        components=int(np.count_nonzero(sizes)),
        largest=int(sizes.max()),
        diameter=high if reachable else None,
        farthest=farthest,
        radius=radius if np.isfinite(radius) else None,
        centre=tuple(np.flatnonzero(eccentricity == radius).tolist()) if np.isfinite(radius) else (),
        mean=total / reachable if reachable else None,
        edges=edges,
        counts=_counts(distances, edges),
        heat=_heat(distances),
    )


def _apart(distances: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Some rows with -inf on the diagonal, and which of their cells are distances between different vertices."""
    block = distances[rows].copy()
    own = np.arange(rows.start, rows.stop)
    block[own - rows.start, own] = -np.inf
    return block, np.isfinite(block)


def _whole(distances: np.ndarray) -> bool:
    return all(
        bool((np.rint(distances[rows]) == distances[rows]).all(where=np.isfinite(distances[rows]))) for rows in blocks(distances)
    )


def _bin_edges(low: float, high: float, whole: bool) -> np.ndarray:
    """At most 16 bins of one width, which is a whole number if all distances are."""
    if whole:
        width = max(1, -(-int(high - low + 1) // BINS))
        return low + np.arange(0, int(high - low) + width + 1, width, dtype=np.float64)
    return np.linspace(low, high if high > low else low + 1, BINS + 1)


def _counts(distances: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for rows in blocks(distances) if len(counts) else []:
        block, within = _apart(distances, rows)
        counts += np.histogram(block[within], bins=edges)[0]
    return counts


def _heat(distances: np.ndarray) -> np.ndarray:
    n = len(distances)
    if not n:
        return np.zeros((0, 0))
    tops, lefts = (np.unique(np.linspace(0, n, min(n, most), endpoint=False).astype(int)) for most in (MAP_ROWS, MAP_COLUMNS))
    heat = np.empty((len(tops), len(lefts)))
    for row, (top, bottom) in enumerate(zip(tops, [*tops[1:], n], strict=True)):
        block = distances[top:bottom]
        within = np.isfinite(block)
        sums = np.add.reduceat(np.where(within, block, 0).sum(axis=0, dtype=np.float64), lefts)
        counts = np.add.reduceat(within.sum(axis=0), lefts)
        heat[row] = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    return heat
