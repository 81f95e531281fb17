"""Many small graphs as given, before a number type is chosen: one array with all matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency


@dataclass(frozen=True)
class Stack:
    """Graphs whose matrices lie one after the other, in one array of weights."""

    weights: np.ndarray  # of one dimension; a value that is not finite means no edge
    sizes: np.ndarray  # vertices of each graph
    numbers: np.ndarray  # what the graphs are called
    clear: np.ndarray  # for each graph whether a zero is known to be an edge of weight 0
    even: bool  # an array was given, and an array is wanted

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def first(self) -> np.ndarray:
        """The first cell of each graph."""
        return np.cumsum(self.sizes**2) - self.sizes**2

    @property
    def n(self) -> int:
        """The most vertices of a graph."""
        return int(self.sizes.max(initial=0))

    @property
    def relaxations(self) -> int:
        return sum(n**3 for n in self.sizes.tolist())

    def of(self, flat: np.ndarray, number: int) -> np.ndarray:
        """One graph's matrix in an array like `weights`."""
        n, at = int(self.sizes[number]), int(self.first[number])
        return flat[at : at + n * n].reshape(n, n)

    def apart(self, flat: np.ndarray) -> Any:
        """An array like `weights` in the form in which the stack was given."""
        return flat.reshape(len(self), self.n, self.n) if self.even else [self.of(flat, number) for number in range(len(self))]

    def graph(self, number: int) -> Adjacency:
        n = int(self.sizes[number])
        return Adjacency(n, dense=self.of(self.weights, number))

    def part(self, mask: np.ndarray) -> Stack:
        """Some of its graphs, as a list."""
        numbers = np.flatnonzero(mask)
        cells = [self.of(self.weights, number).reshape(-1) for number in numbers.tolist()]
        return Stack(np.concatenate(cells), self.sizes[numbers], self.numbers[numbers], self.clear[numbers], False)

    def check(self) -> None:
        """Raises Refused if one is not a graph. By NumPy, where there is no compiled code, or it has a doubt."""
        matrices = [self.of(self.weights, number) for number in range(len(self))]
        for number, matrix in zip(self.numbers, matrices, strict=True):
            if (matrix == -np.inf).any():
                raise Refused(f"-inf is not a weight, and graph {number} has it; give finite numbers, and +inf for no edge")
        missing = np.array([not np.isfinite(matrix).all() for matrix in matrices])
        zeros = np.array([np.count_nonzero(matrix == 0) > np.count_nonzero(matrix.diagonal() == 0) for matrix in matrices])
        unclear = self.unclear_zeros(missing, zeros)
        if unclear.any():
            raise Refused(
                f"zeros off the diagonal of graph {self.numbers[unclear.argmax()]} may mean no edge or edges of weight 0, and "
                "nothing says which; put +inf where there is no edge, or give numpy.ma.array(weights) for edges"
            )

    def unclear_zeros(self, missing: np.ndarray, zeros: np.ndarray) -> np.ndarray:
        """For each graph whether nothing says what its zeros mean, from whether it has no edge somewhere, and zeros."""
        marked = self.clear | missing
        return zeros & ~(marked.any() if self.even else marked)


def naming(number: int, work: Callable[..., Any], *arguments: Any) -> Any:
    """The work for one graph; what it refuses names the graph."""
    try:
        return work(*arguments)
    except Refused as refusal:
        raise Refused(f"graph {number}: {refusal}") from None
    except Exception as error:
        if type(error).__name__ != "NegativeCycleError":  # SciPy's class, checked without importing SciPy
            raise
        raise type(error)(str(error).replace("the graph", f"graph {number}", 1)) from None
