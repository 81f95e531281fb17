"""Small matrices, and the distances in them by the textbook's three loops: what everything else is held against."""

import numpy as np


def random_matrix(n: int, seed: int, density: float = 0.4) -> np.ndarray:
    """(n, n) float64: whole weights from 1 to 49, infinity where there is no edge, a diagonal of zeros."""
    random = np.random.default_rng(seed)
    matrix = np.where(random.random((n, n)) < density, random.integers(1, 50, (n, n)), np.inf)
    np.fill_diagonal(matrix, 0)
    return matrix


def floyd_warshall(matrix: np.ndarray) -> np.ndarray:
    """The distances in the matrix' own type: with sentinels in whole numbers unreachable cells drift, as on a GPU."""
    d = matrix.copy()
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d
