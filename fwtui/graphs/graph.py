"""An input graph: its dense matrix, and what is known about its weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fwtui.graphs.vertices import Vertices
from kernels.plan import NO_EDGE

CELLS_AT_ONCE = 1 << 18  # temporaries of one block of rows stay in the cache


@dataclass(frozen=True)
class GraphInput:
    """What a kernel is given.

    With potentials, w(i, j) + potentials[j] - potentials[i] >= 0 for every edge. `drift` is how far below the sentinel
    half of an unreachable cell may sink: the range of the potentials, or (n - 1) times the least weight's magnitude.
    """

    matrix: np.ndarray  # (n, n), kernels.plan.NO_EDGE where there is no edge, diagonal 0 (below 0: a negative self-loop)
    integer: bool  # every weight is a whole number, whatever the matrix' type
    edges: int  # off the diagonal
    low: float | None  # least and greatest weight present; None without edges
    high: float | None
    negative_share: float | None  # of the edges
    drift: int | float = 0  # in units of the weights
    potentials: np.ndarray | None = None  # (n,), int64 or float64, in units of the weights
    exact_sums: bool = True  # float32 sums lose nothing: whole numbers, or multiples of 1/256 on short paths
    name: str = ""
    note: str = ""
    vertices: Vertices | None = None  # how a file calls them; None: 0 .. n - 1

    @property
    def n(self) -> int:
        return self.matrix.shape[0]

    @property
    def dtype(self) -> str:
        return self.matrix.dtype.name

    @property
    def no_edge(self) -> int | float:
        return NO_EDGE[self.dtype]

    @property
    def may_have_negative_cycles(self) -> bool:
        return self.potentials is None and self.low is not None and self.low < 0


def drift_of(n: int, low: float | None, integer: bool) -> int | float:
    """The `drift` of a graph on n vertices without potentials, from its least weight."""
    if low is None or low >= 0:
        return 0
    return (n - 1) * -(int(low) if integer else low)


def graph_of(matrix: np.ndarray, integer: bool, name: str = "") -> GraphInput:
    """The graph of a kernel's matrix, looked through."""
    edges, negative, low, high = survey(matrix)
    share = negative / edges if edges else None
    return GraphInput(matrix, integer, edges, low, high, share, drift_of(len(matrix), low, integer), name=name)


def blocks(matrix: np.ndarray) -> list[slice]:
    """The rows of a matrix in blocks that are small enough for temporaries."""
    height, width = matrix.shape
    rows = max(1, CELLS_AT_ONCE // max(1, width))
    return [slice(top, min(top + rows, height)) for top in range(0, height, rows)]


def survey(matrix: np.ndarray) -> tuple[int, int, float | None, float | None]:
    """Edges, negative edges, least and greatest weight off the diagonal; a negative diagonal counts for the least weight."""
    no_edge = matrix.dtype.type(NO_EDGE[matrix.dtype.name])
    lowest = -np.inf if matrix.dtype.kind == "f" else np.iinfo(matrix.dtype).min
    diagonal = matrix.diagonal().copy()
    np.fill_diagonal(matrix, no_edge)  # the zeros would hide the least weight
    edges = negative = 0
    lows: list[float] = [float(x) for x in diagonal if x < 0]
    highs: list[float] = []
    for rows in blocks(matrix):
        block = matrix[rows]
        present = block != no_edge
        count = int(np.count_nonzero(present))
        if count:
            edges += count
            negative += int(np.count_nonzero(block < 0))
            lows.append(float(block.min()))
            highs.append(float(np.where(present, block, matrix.dtype.type(lowest)).max()))
    np.fill_diagonal(matrix, diagonal)
    return edges, negative, min(lows, default=None), max(highs, default=None)
