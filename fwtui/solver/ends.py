"""The sources and targets of a call, and the memory for the distances between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import psutil

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import RESERVED_MEMORY
from fwtui.graphs.adjacency import Adjacency
from fwtui.solver.paths import Paths
from fwtui.solver.result import Result, Stats


@dataclass(frozen=True)
class Ends:
    """The first and last vertices of paths, None for all. Methods search backwards from the targets if these are fewer."""

    n: int
    sources: np.ndarray | None
    targets: np.ndarray | None

    @cached_property
    def backward(self) -> bool:
        """Return whether the method begins at the targets."""
        return self.targets is not None and (self.sources is None or len(self.targets) < len(self.sources))

    @cached_property
    def begins(self) -> np.ndarray:
        """The vertices from which the method runs."""
        begins = self.targets if self.backward else self.sources
        return np.arange(self.n) if begins is None else begins

    @cached_property
    def columns(self) -> np.ndarray | None:
        """The vertices at the other end; None for all."""
        return self.sources if self.backward else self.targets

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array that a method fills: a row for each vertex from which it runs."""
        return len(self.begins), self.n if self.columns is None else len(self.columns)

    def result(self, distances: np.ndarray, predecessors: np.ndarray | None, stats: Stats, graph: Adjacency) -> Result:
        """Return the result of a call from its arrays, which have that shape."""
        answered = distances.T if self.backward else distances
        whole = self.sources is None and self.targets is None
        paths = Paths(graph, answered, stats.exact) if whole else None
        return Result(answered, predecessors, stats, graph.vertices, paths, self.sources, self.targets)


def check_rows_fit(shape: tuple[int, int], cell_bytes: int, other: int = 0) -> None:
    """Raise Refused if an array of that shape does not fit in memory next to `other` bytes."""
    needed, usable = shape[0] * shape[1] * cell_bytes, max(0, psutil.virtual_memory().available - RESERVED_MEMORY - other)
    if needed > usable:
        raise Refused(
            f"{shape[0]:,} x {shape[1]:,} distances need {units.memory(needed)}, but only {units.memory(usable)} is free; "
            f"choose up to {usable // cell_bytes // shape[1]:,} vertices"
        )
