"""Graphs to solve, and what has to hold of their paths."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path


def random_matrix(n: int, seed: int, density: float = 0.3, negative: bool = False, scale: float = 1) -> np.ndarray:
    """Weights from 0 to 59 times `scale`, +inf for no edge; `negative`: lifted, so that cycles are as long as they were."""
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n, n)) < density, rng.integers(0, 60, (n, n)) * scale, np.inf)
    lift = rng.integers(0, 40, n) * negative
    matrix += lift[:, None] - lift[None, :]
    np.fill_diagonal(matrix, 0)
    return matrix


def turned_rows(n: int) -> np.ndarray:
    """n x n of int32 from 1 to 999: some rows, each many times, turned differently; random numbers alone would take minutes."""
    some = np.random.default_rng(1).integers(1, 1000, (1024, n), dtype=np.int32)
    matrix = np.empty((n, n), np.int32)
    for i in range(n):
        matrix[i] = np.roll(some[i % 1024], 7 * i)
    return matrix


def by_scipy(matrix: np.ndarray) -> np.ndarray:
    present = np.isfinite(matrix)
    graph = csr_array((matrix[present], np.nonzero(present)), shape=matrix.shape)
    return shortest_path(graph, method="FW" if (matrix[present] < 0).any() else "D")


def check_paths(matrix: np.ndarray, distances: np.ndarray, before: np.ndarray, sources: np.ndarray, near: float = 0) -> None:
    """Every path from those sources ends, there is one wherever there is a distance, and each of its parts is as long as its
    distance, or differs by no more than `near` times that.
    """
    for i in sources:
        row, found = distances[i].astype(float), np.nonzero(before[i] >= 0)[0]
        expected = np.isfinite(row)
        expected[i] = False
        assert (np.nonzero(expected)[0] == found).all() and (before[i][~expected] == -9999).all(), i
        last = before[i][found]
        assert (np.abs(row[last] + matrix[last, found] - row[found]) <= near * row[found]).all(), i
        above = np.arange(len(row))
        above[found] = last
        for _ in range(len(row).bit_length()):
            above = above[above]
        assert (above[found] == i).all(), i
