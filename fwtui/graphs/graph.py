"""An input graph: its dense matrix, and the facts about its weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fwtui.common.cores import usable_cores
from fwtui.graphs.vertices import Vertices
from fwtui_kernels.plan import NO_EDGE

CELLS_AT_ONCE = 1 << 15  # temporaries of one block of rows stay in the cache
CELLS_ON_ALL_CORES = 1 << 26  # threads cost more than they save in smaller matrices
MAX_THREADS = 16  # more threads exceed the memory bandwidth
T = TypeVar("T")


@dataclass(frozen=True)
class EdgeFacts:
    """Statistics of a graph's edges. Only the minimum weight includes negative self-loops."""

    n: int
    edges: int  # including parallel edges, before a data type is chosen
    low: float | None  # least and greatest weight present; None without edges
    high: float | None
    integer: bool  # every weight is an integer, in any data type
    exact_sums: bool  # integers or multiples of 1/256: sums along short paths are exact in a floating type
    vanishing: bool = field(default=False, kw_only=True)  # a nonzero weight becomes 0 in float32

    @property
    def nonnegative(self) -> bool:
        """Return whether all weights are non-negative."""
        return self.low is None or self.low >= 0

    @property
    def largest_weight(self) -> int | float:
        """Return the greatest absolute weight."""
        return max(-(self.low or 0), self.high or 0)

    @property
    def drift(self) -> int | float:
        """Return the largest amount by which an unreachable cell may sink below the sentinel: (n - 1) x |minimum weight|."""
        if self.low is None or self.low >= 0:
            return 0
        return (self.n - 1) * -(int(self.low) if self.integer else self.low)


@dataclass(frozen=True)
class GraphInput(EdgeFacts):
    """The input of a kernel. With potentials, w(i, j) + potentials[j] - potentials[i] >= 0 for every edge."""

    matrix: np.ndarray  # (n, n), fwtui_kernels.plan.NO_EDGE for no edge, diagonal 0, or the weight of a negative self-loop
    negative_share: float | None = None  # share of negative edges, 0 to 1
    potentials: np.ndarray | None = None  # (n,), int64 or float64, in units of the weights
    potential_range: int | float = 0  # maximum - minimum of the potentials
    name: str = ""
    note: str = ""
    vertices: Vertices | None = None  # names from a file; None: 0 .. n - 1

    @property
    def drift(self) -> int | float:
        """Return EdgeFacts.drift, or with potentials their range."""
        return self.potential_range or super().drift

    @property
    def dtype(self) -> str:
        return self.matrix.dtype.name

    @property
    def no_edge(self) -> int | float:
        return NO_EDGE[self.dtype]

    @property
    def may_have_negative_cycles(self) -> bool:
        return self.potentials is None and self.low is not None and self.low < 0


def blocks(matrix: np.ndarray, cells: int | None = None) -> list[slice]:
    """Split the rows of a matrix into blocks whose temporaries fit the cache."""
    height, width = matrix.shape
    rows = max(1, (cells or CELLS_AT_ONCE) // max(1, width))
    return [slice(top, min(top + rows, height)) for top in range(0, height, rows)]


def each_block(matrix: np.ndarray, work: Callable[[slice], T], cells: int | None = None) -> list[T]:
    """Apply `work` to blocks of rows on all cores and return the results in order."""
    parts = blocks(matrix, cells)
    threads = min(MAX_THREADS, len(usable_cores()))
    if matrix.size < CELLS_ON_ALL_CORES or threads < 2:
        return [work(rows) for rows in parts]
    from concurrent.futures import ThreadPoolExecutor

    size = -(-len(parts) // (8 * threads))
    shares = [parts[first : first + size] for first in range(0, len(parts), size)]
    with ThreadPoolExecutor(threads) as pool:
        return [result for share in pool.map(lambda share: [work(rows) for rows in share], shares) for result in share]


def graph_of(matrix: np.ndarray, integer: bool, name: str = "") -> GraphInput:
    """Return the graph of a kernel's (n, n) matrix, scanned for its facts; sums of weights are assumed to be exact."""
    no_edge = matrix.dtype.type(NO_EDGE[matrix.dtype.name])
    lowest = -np.inf if matrix.dtype.kind == "f" else np.iinfo(matrix.dtype).min
    diagonal = matrix.diagonal().copy()
    np.fill_diagonal(matrix, no_edge)  # zeros would hide the minimum weight

    def scan(rows: slice) -> tuple[int, int, float, float]:
        block = matrix[rows]
        present = block != no_edge
        highest = np.where(present, block, matrix.dtype.type(lowest)).max()
        return int(np.count_nonzero(present)), int(np.count_nonzero(block < 0)), float(block.min()), float(highest)

    counts = [one for one in each_block(matrix, scan) if one[0]]
    np.fill_diagonal(matrix, diagonal)
    edges, negative = sum(one[0] for one in counts), sum(one[1] for one in counts)
    low = min([*(float(x) for x in diagonal if x < 0), *(one[2] for one in counts)], default=None)
    high, share = max((one[3] for one in counts), default=None), negative / edges if edges else None
    return GraphInput(len(matrix), edges, low, high, integer, True, matrix, share, name=name)
