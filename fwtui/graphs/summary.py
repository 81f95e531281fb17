"""Summary figures of all distances in a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fwtui.graphs.canonical import NO_PATH, no_path
from fwtui.graphs.graph import blocks

BINS = 16
MAP_ROWS, MAP_COLUMNS = 16, 32


@dataclass(frozen=True)
class DistanceSummary:
    """Statistics over the ordered pairs i != j. Distances are in units of the weights; None without such a pair or vertex."""

    n: int
    pairs: int
    reachable: int  # pairs with a path
    components: int  # strongly connected
    largest: int  # vertices of the largest component
    diameter: float | None  # the longest distance
    farthest: tuple[int, int] | None  # a pair at the diameter
    radius: float | None  # the minimum eccentricity of a vertex that reaches all others
    centre: tuple[int, ...]  # vertices whose eccentricity is the radius
    mean: float | None
    edges: np.ndarray  # bounds of the histogram's bins: (len(counts) + 1,)
    counts: np.ndarray  # pairs in each bin; only the last bin includes its upper bound
    heat: np.ndarray  # (<= map rows, <= map columns) mean distance of blocks of pairs, +inf for a block without paths

    @property
    def share(self) -> float | None:
        return self.reachable / self.pairs if self.pairs else None


def summarise(distances: np.ndarray) -> DistanceSummary:
    """Summarise (n, n) distances with 0 on the diagonal: floats with +inf for no path, or int32 in canonical form."""
    n = len(distances)
    eccentricity = np.empty(n)
    low, high, total, reachable, whole = np.inf, -np.inf, 0.0, 0, True
    farthest: tuple[int, int] | None = None
    for at, block, away in _off_diagonal(distances):
        there = block.size - int(np.count_nonzero(away))
        lowest = -np.inf if block.dtype.kind == "f" else np.iinfo(block.dtype).min
        masked = np.where(away, lowest, block)
        longest = masked.max(axis=1)
        eccentricity[at] = np.where(np.count_nonzero(away, axis=1) > 1, np.inf, longest)
        if not there:
            continue
        reachable += there
        low = min(low, float(block.min()))
        if longest.max() > high:
            row = int(longest.argmax())
            high, farthest = float(longest[row]), (row + at.start, int(masked[row].argmax()))
        total += float(np.where(away, 0, block).sum(dtype=np.float64))
        whole = whole and (block.dtype.kind != "f" or bool((np.rint(block) == block).all()))
    sizes = np.array([n]) if reachable == n * (n - 1) else _components(distances)
    radius = float(eccentricity.min(initial=np.inf)) if n > 1 else np.inf
    edges = _bin_edges(low, high, whole) if reachable else np.zeros(1)
    return DistanceSummary(
        n=n,
        pairs=n * (n - 1),
        reachable=reachable,
        components=int(np.count_nonzero(sizes)),
        largest=int(sizes.max(initial=0)),
        diameter=high if reachable else None,
        farthest=farthest,
        radius=radius if np.isfinite(radius) else None,
        centre=tuple(np.flatnonzero(eccentricity == radius).tolist()) if np.isfinite(radius) else (),
        mean=total / reachable if reachable else None,
        edges=edges,
        counts=_counts(distances, edges),
        heat=_heat(distances),
    )


def _off_diagonal(distances: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of rows: the slice, the distances without the diagonal, and the mask of cells without a path."""
    for rows in blocks(distances) if len(distances) else []:
        block = distances[rows].copy()
        vertices = np.arange(rows.start, rows.stop)
        block[vertices - rows.start, vertices] = np.inf if block.dtype.kind == "f" else NO_PATH
        yield rows, block, no_path(block)


def _components(distances: np.ndarray) -> np.ndarray:
    """Return the number of vertices of each strongly connected component, padded with zeros."""
    n = len(distances)
    label = np.full(n, -1)
    for rows in blocks(distances):
        opened = np.arange(rows.start, rows.stop)[label[rows] < 0]
        if len(opened):  # the first vertex of a large component labels most vertices
            first = opened[:1]
            label[_both_ways(distances, first)[0]] = first[0]
            opened = opened[label[opened] < 0]
        if len(opened):
            label[opened] = _both_ways(distances, opened).argmax(axis=1)  # the first vertex of the component
    return np.bincount(label, minlength=n)


def _both_ways(distances: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Return a (len(vertices), n) mask of the vertices that each one reaches and is reached by, itself included."""
    mutual = ~(no_path(distances[vertices]) | no_path(distances[:, vertices]).T)
    mutual[np.arange(len(vertices)), vertices] = True
    return mutual


def _bin_edges(low: float, high: float, whole: bool) -> np.ndarray:
    """Return the bounds of at most BINS bins of equal width, an integer if all distances are integers."""
    if whole:
        width = max(1, -(-int(high - low + 1) // BINS))
        return low + np.arange(0, int(high - low) + width + 1, width, dtype=np.float64)
    return np.linspace(low, high if high > low else low + 1, BINS + 1)


def _counts(distances: np.ndarray, edges: np.ndarray) -> np.ndarray:
    bins = len(edges) - 1
    counts = np.zeros(bins + 1, dtype=np.int64)  # the last bin counts pairs without a path
    for _, block, away in _off_diagonal(distances) if bins else ():
        place = np.subtract(block, edges[0], dtype=np.float64)
        place /= edges[1] - edges[0]  # multiplying by the inverse could place a lower bound into the bin below
        np.minimum(place, bins - 1, out=place)
        np.copyto(place, bins, where=away)
        counts += np.bincount(place.astype(np.intp).reshape(-1), minlength=bins + 1)
    return counts[:bins]


def _heat(distances: np.ndarray) -> np.ndarray:
    n = len(distances)
    if not n:
        return np.zeros((0, 0))
    tops, lefts = (np.arange(min(n, most)) * n // min(n, most) for most in (MAP_ROWS, MAP_COLUMNS))
    heat = np.empty((len(tops), len(lefts)))
    for row, (top, bottom) in enumerate(zip(tops, [*tops[1:], n], strict=True)):
        sums, counts = np.zeros(n), np.zeros(n, dtype=np.int64)
        for part in blocks(distances[top:bottom]):
            block = distances[top:bottom][part]
            away = no_path(block)
            sums += np.where(away, 0, block).sum(axis=0, dtype=np.float64)
            counts += len(block) - np.count_nonzero(away, axis=0)
        of, among = np.add.reduceat(sums, lefts), np.add.reduceat(counts, lefts)
        heat[row] = np.where(among > 0, of / np.maximum(among, 1), np.inf)
    return heat
