"""The summary of all distances in a graph, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from fwtui.graphs.canonical import NO_PATH
from fwtui.graphs.summary import BINS, MAP_COLUMNS, MAP_ROWS, summarise


def closed(n: int, seed: int, density: float, low: int = 1) -> np.ndarray:
    """Return integer distances of a random graph, +inf for no path."""
    rng = np.random.default_rng(seed)
    d = np.where(rng.random((n, n)) < density, rng.integers(low, 9, (n, n)).astype(float), np.inf)
    np.fill_diagonal(d, 0)
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(0, 10**6), st.sampled_from([0.0, 0.03, 0.1, 0.6]))
def test_every_number_is_what_brute_force_finds(n: int, seed: int, density: float) -> None:
    assert_summarised(closed(n, seed, density, low=0))


def test_distances_are_summarised_in_several_blocks_of_rows() -> None:
    lines = np.abs(np.subtract.outer(np.arange(1200.0), np.arange(1200)))
    lines[:500, 500:] = lines[500:, :500] = np.inf
    assert_summarised(lines)


def assert_summarised(d: np.ndarray) -> None:
    n = len(d)
    s = summarise(d.astype(np.float32))
    again = summarise(np.where(np.isinf(d), NO_PATH, d).astype(np.int32))
    for name in ("n", "pairs", "reachable", "components", "largest", "diameter", "farthest", "radius", "centre", "mean"):
        assert getattr(s, name) == getattr(again, name), name
    assert s.edges.tolist() == again.edges.tolist() and s.counts.tolist() == again.counts.tolist()
    assert np.array_equal(s.heat, again.heat)

    apart = d[~np.eye(n, dtype=bool)]
    known = apart[np.isfinite(apart)]
    assert s.reachable == len(known) and s.pairs == n * (n - 1)
    count, labels = connected_components(np.isfinite(d), directed=True, connection="strong")
    assert (s.components, s.largest) == (count, np.bincount(labels).max())
    eccentricity = [max((d[v, u] for u in range(n) if u != v), default=np.inf) for v in range(n)]
    assert s.radius == (min(eccentricity) if np.isfinite(min(eccentricity)) else None)
    assert s.centre == (tuple(v for v in range(n) if eccentricity[v] == s.radius) if s.radius is not None else ())
    if len(known):
        assert s.farthest is not None
        assert s.diameter == known.max() == d[s.farthest] and s.mean == pytest.approx(known.mean())
        expected = [((low <= known) & (known < high)).sum() for low, high in zip(s.edges[:-1], s.edges[1:], strict=True)]
        assert s.counts.tolist() == expected and sum(expected) == len(known) and len(expected) <= BINS
    else:
        assert (s.diameter, s.farthest, s.mean, len(s.counts)) == (None, None, None, 0)
    tops = [row * n // min(n, MAP_ROWS) for row in range(min(n, MAP_ROWS) + 1)]
    lefts = [column * n // min(n, MAP_COLUMNS) for column in range(min(n, MAP_COLUMNS) + 1)]
    for row, column in np.ndindex(s.heat.shape):
        block = d[tops[row] : tops[row + 1], lefts[column] : lefts[column + 1]]
        there = block[np.isfinite(block)]
        assert s.heat[row, column] == pytest.approx(there.mean() if len(there) else np.inf)


def test_real_and_negative_distances() -> None:
    d = np.array([[0.0, -2.5, 1.0], [3.5, 0.0, 3.25], [np.inf, np.inf, 0.0]], dtype=np.float32)
    s = summarise(d)
    assert (s.diameter, s.farthest, s.radius, s.centre) == (3.5, (1, 0), 1.0, (0,))
    assert s.edges.tolist() == np.linspace(-2.5, 3.5, 17).tolist() and s.counts.nonzero()[0].tolist() == [0, 9, 15]
    assert s.counts[-1] == 2, "the last bin includes its upper edge"
