"""A graph to be solved, where it is, and what is done there with the distances that a kernel left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import Facts
from fwtui.graphs.library_objects import Unseen, seen
from fwtui.solver.clock import Clock
from kernels.plan import Buffers, Program


class Found(NamedTuple):
    """What a look at a kernel's distances finds."""

    largest: float  # absolute value of those that are no "no path"
    diagonal: np.ndarray  # (n,), if one of them is below 0; else zeros


class Source(ABC):
    """`distances` are a kernel's, with sentinels and all, in the corner of an array that is where the graph is.

    From `far` on such a cell is no path.
    """

    n: int
    engine: Engine
    facts: Facts  # what bounds need to know of the weights
    origin: Adjacency | Unseen | None  # as it was given; None for an array on a GPU, whose distances stay there

    @property
    def stays(self) -> bool:
        """Whether distances are to be where the graph is, and not on the host."""
        return self.origin is None

    def whole(self) -> Adjacency:
        """The graph as the host has it."""
        assert self.origin is not None
        return seen(self.origin)

    @abstractmethod
    def reach(self, enough: float) -> tuple[float, bool]:
        """As number_type.reach_of."""

    @abstractmethod
    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        """The graph into a program."""

    @abstractmethod
    def result(self, program: Program, buffers: Buffers) -> Any:
        """The distances that the program found."""

    @abstractmethod
    def look(self, distances: Any, far: float) -> Found: ...

    @abstractmethod
    def escaped(self, distances: Any, far: float) -> bool:
        """Whether some arc leads from what a vertex reaches to what it does not: then a distance was too long for the type.

        Without such an arc, all that is beyond cannot be reached at all.
        """

    @abstractmethod
    def finished(self, distances: Any, far: float, wide: bool) -> Any:
        """(n, n) distances as Result has them: +inf for no path, 0 on the diagonal; float64 if `wide`, else float32."""
