"""Distances of all pairs in the order and the number types of NetworkX."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np


@dataclass(frozen=True)
class DistanceView:
    """Distances between all pairs, as numbers of the types that NetworkX returns."""

    nodes: list[Hashable]
    distances: np.ndarray
    before: np.ndarray | None
    whole: bool

    @cached_property
    def connected(self) -> bool:
        return bool(np.isfinite(self.distances).all())

    def numbers(self, row: np.ndarray) -> list[Any]:
        """Finite distances as Python's numbers."""
        return (row.astype(np.int64) if self.whole else row.astype(np.float64)).tolist()

    def order(self, row: np.ndarray, source: int) -> np.ndarray:
        """The nodes with a path, nearest first like in NetworkX, and the source before all others."""
        reached = np.flatnonzero(np.isfinite(row))
        near = row[reached]
        near[reached == source] = -np.inf
        return reached[np.argsort(near, kind="stable")]

    def nearest_first(self, row: np.ndarray, source: int) -> list[Any]:
        """The distances in that order: sums of real numbers depend on it."""
        return [0, *self.numbers(row[self.order(row, source)[1:]])]

    def lengths(self, source: int) -> dict[Hashable, Any]:
        row = self.distances[source]
        order = self.order(row, source)
        return dict(zip([self.nodes[v] for v in order.tolist()], [0, *self.numbers(row[order[1:]])], strict=True))

    def paths(self, source: int) -> dict[Hashable, list[Hashable]]:
        assert self.before is not None
        nodes, before = self.nodes, self.before[source].tolist()
        order = self.order(self.distances[source], source).tolist()
        found = {source: [nodes[source]]}
        for target in order:
            behind = []
            while target not in found:  # with weights of 0 or less a path may lead through a later node
                behind.append(target)
                target = before[target]
            for v in reversed(behind):
                found[v] = [*found[before[v]], nodes[v]]
        return {nodes[v]: found[v] for v in order}

    def total(self) -> Any:
        rows = enumerate(self.distances)
        if self.whole:
            return sum(int(row.astype(np.int64).sum()) for _, row in rows)
        return sum(chain.from_iterable(self.nearest_first(row, source) for source, row in rows))
