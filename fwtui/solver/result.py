"""The result of `solve`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fwtui.common.errors import Refused
from fwtui.graphs.vertices import Vertices

if TYPE_CHECKING:
    from fwtui.solver.paths import Paths

_INTEGERS = (int, np.integer)


@dataclass(frozen=True)
class Stats:
    """Statistics of a result. Times are wall-clock seconds."""

    n: int
    edges: int  # number of input edges without self-loops
    dtype: str  # data type of the computation
    proof: str  # the proof that they fit it, or the sentence that sums were rounded
    exact: bool  # no sum of weights was rounded
    kernel: str
    # wall-clock seconds of the stages that ran, without gaps. Once per process: "set-up" (imports, the GPU's context) and
    # "compile" (or loading). Then "copy in", "prepare", "allocate", "kernels", "copy out" (with page faults), "paths"
    seconds: Mapping[str, float]
    tile: int = 0  # 0: no tiles
    device: str = "cpu"  # or "cuda"
    devices: tuple[str, ...] = ()  # names of the ranks that shared the matrix: "rank 0 (GPU 0)", ...; empty for one device
    relaxations: int = 0  # relaxations of a sparse graph; 0 means n^3
    notes: tuple[str, ...] = ()  # on reading the graph: the weight column, and parallel edges
    reason: str = ""  # for the choice of the method; empty if there was no choice

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def rate(self) -> float | None:
        """Relaxations per second in the kernels."""
        spent = self.seconds.get("kernels", 0.0)
        return (self.relaxations or self.n**3) / spent if spent else None


@dataclass(frozen=True, eq=False)
class Result:
    """All shortest paths of a graph. Two results are equal only if they are the same object; compare their distances.

    `distances[i, j]` is the length of the shortest path from vertex i to vertex j: float32 if it holds every one exactly
    (or was the requested dtype), else float64; +inf for no path. `predecessors[i, j]` is the vertex before j on that
    path, int32, -9999 for none; the whole array is None unless requested. Both are device arrays if the input was one.
    """

    distances: Any
    predecessors: Any | None
    stats: Stats
    vertices: Vertices
    paths: Paths | None = None  # for single paths without predecessors; not for device arrays
    rows: np.ndarray | None = None  # vertex of each row, for `sources` or a rank without rows; None for all rows
    columns: np.ndarray | None = None  # vertex of each column, for `targets`; None for all columns

    @overload
    def path(self, source: int, target: int) -> list[int]: ...

    @overload
    def path(self, source: Hashable, target: Hashable) -> list[Any]: ...

    def path(self, source: Hashable, target: Hashable) -> list[Any]:
        """Return the vertices of one shortest path, both ends included; [] if there is none. Works without predecessors.

        Two integers are rows of `distances`, and so are the vertices of the path. Otherwise all are labels of `vertices`, whose
        `row` gives the row of a label that is an integer. Raises IndexError for a row that does not exist, Refused for a label.
        """
        if isinstance(source, _INTEGERS) and isinstance(target, _INTEGERS):
            return self._rows_between(int(source), int(target))
        rows = self._rows_between(self.vertices.row(source), self.vertices.row(target))
        return [self.vertices.labels[row] for row in rows]

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame with a row for each pair that has a path, in order of the rows of `distances`.

        Its columns are source, target (labels of `vertices`, which differ) and distance. Raises Refused without pandas.
        """
        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise Refused("to_dataframe needs pandas; run `python -m pip install pandas`") from None
        distances = self.distances.copy_to_host() if hasattr(self.distances, "copy_to_host") else self.distances
        every = np.arange(len(self.vertices))
        rows, columns = (every if part is None else part for part in (self.rows, self.columns))
        places, reached = np.nonzero(np.isfinite(distances) & (rows[:, None] != columns))
        labels = pandas.Index(list(self.vertices.labels), tupleize_cols=False)
        data = {"source": labels[rows[places]], "target": labels[columns[reached]], "distance": distances[places, reached]}
        return pandas.DataFrame(data)

    def _rows_between(self, source: int, target: int) -> list[int]:
        from fwtui.solver.paths import follow

        _check_vertices(self.stats.n, source, target)
        place = source
        if self.rows is not None:
            places = np.flatnonzero(self.rows == source)
            if not len(places):
                raise IndexError(f"the row of vertex {source} is not in this result; add it to sources, or read it on rank 0")
            place = int(places[0])
        if self.predecessors is not None:
            row = self.predecessors[place]
            return follow(row.copy_to_host() if hasattr(row, "copy_to_host") else row, source, target)
        if self.paths is None:
            raise ValueError(
                "a path needs all distances in host memory; copy or gather them, omit targets, or request predecessors"
            )
        return self.paths.path(source, target)


def _check_vertices(n: int, source: int, target: int) -> None:
    if not (0 <= source < n and 0 <= target < n):
        raise IndexError(f"vertices {source} and {target} are not both in 0 to {n - 1}")
