"""Graphs to solve, their distances by plain NumPy and by SciPy, and a check of their paths."""

from collections.abc import Iterable
from typing import Any

import numpy as np


def random_matrix(n: int, seed: int, density: float = 0.3, negative: bool = False, scale: float = 1, low: int = 0) -> np.ndarray:
    """Return weights from `low` to 59 times `scale`, +inf for no edge; `negative` shifts them without changing any cycle."""
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((n, n)) < density, rng.integers(low, 60, (n, n)) * scale, np.inf)
    lift = rng.integers(0, 40, n) * negative
    matrix += lift[:, None] - lift[None, :]
    np.fill_diagonal(matrix, 0)
    return matrix


def floyd_warshall(matrix: np.ndarray) -> np.ndarray:
    """Return distances in the matrix' data type; with integer sentinels unreachable cells drift, as on a GPU."""
    d = matrix.copy()
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


def sparse(matrix: np.ndarray) -> Any:
    from scipy.sparse import csr_array

    present = np.isfinite(matrix)
    return csr_array((matrix[present], np.nonzero(present)), shape=matrix.shape)


def by_scipy(matrix: np.ndarray) -> np.ndarray:
    from scipy.sparse.csgraph import shortest_path

    return shortest_path(sparse(matrix), method="FW" if (matrix < 0).any() else "D")


def check_paths(
    matrix: np.ndarray,
    distances: np.ndarray,
    before: np.ndarray,
    sources: Iterable[int] | None = None,
    near: float = 0,
    apart: float = 0,
) -> None:
    """Every path from those sources (all) ends, there is one wherever there is a distance, and each of its parts is as long as
    its distance, or differs by no more than `near` times that and `apart`.
    """
    for i in range(len(matrix)) if sources is None else sources:
        row, found = distances[i].astype(float), np.nonzero(before[i] >= 0)[0]
        expected = np.isfinite(row)
        expected[i] = False
        assert np.array_equal(np.nonzero(expected)[0], found) and (before[i][~expected] == -9999).all(), i
        last = before[i][found]
        assert (np.abs(row[last] + matrix[last, found] - row[found]) <= near * np.abs(row[found]) + apart).all(), i
        above = np.arange(len(row))
        above[found] = last
        for _ in range(len(row).bit_length()):
            above = above[above]
        assert (above[found] == i).all(), i
