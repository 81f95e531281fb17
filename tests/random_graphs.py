"""Random graphs of every kind, number type and sign, of 1 to 700 vertices, and SciPy's distances of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import johnson

from fwtui.experiment.experiment import KINDS, Experiment
from fwtui.experiment.generate import generate

SIGNS: list[dict[str, Any]] = [{}, {"negative": 0.3}, {"low": 0, "high": 2}, {"high": 65536}]


def random_graph(number: int) -> tuple[csr_array, np.ndarray]:
    """The graph of that number, with an entry for each edge, and SciPy's distances. Numbers that differ by 60 differ in size."""
    rng = np.random.default_rng(number)
    asked: dict[str, Any] = {"kind": KINDS[number % 5], "real": number // 5 % 3 == 2, **SIGNS[number // 15 % 4]}
    if asked["real"] and asked.get("high") == 65536:
        del asked["high"]  # sums would be rounded
    n = int(700 ** rng.random())
    density = min(1.0, rng.choice([1.5, 4, 0.3 * n]) / n)
    g = generate(Experiment(n=n, density=density, connected=bool(rng.integers(2)), seed=number, dtype="float32", **asked))
    there = (g.matrix != g.no_edge) & ~np.eye(n, dtype=bool)
    graph = csr_array((g.matrix[there].astype(np.float64), np.nonzero(there)), shape=(n, n))
    return graph, johnson(graph)
