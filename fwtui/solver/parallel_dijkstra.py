"""SciPy's Dijkstra searches in one process per core, because they hold Python's global lock.

`python -P -m fwtui.solver.parallel_dijkstra` is one of k processes, which searches from every k-th block of the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import monotonic
from typing import Any

import numpy as np
from msgspec import Struct

from fwtui.common.child_process import ModuleProcess, request_line
from fwtui.common.child_protocol import Parent, serve
from fwtui.common.errors import Failed, os_error_reason

AT_ONCE, CELLS = 64, 1 << 23  # sources, and distances, of a block at most
Block = tuple[slice, np.ndarray, np.ndarray | None]


class Searches(Struct):
    """The request to a search process; the arrays follow on its stdin: row starts, columns, weights, sources."""

    n: int
    arcs: int
    sources: int
    predecessors: bool


def block_rows(n: int) -> int:
    """Return the number of sources of a block: few enough that its distances need little memory."""
    return max(1, min(AT_ONCE, CELLS // n))


def run_searches(matrix: Any, sources: np.ndarray, predecessors: bool, shares: int, patience: float = 600.0) -> Iterator[Block]:
    """Yield float64 distances and, on request, predecessors from these sources, block by block in their order.

    `matrix` is a CSR array whose entries are not negative. Raises Failed if one of `shares` processes ends, or
    gives no block in `patience` seconds.
    """
    step = block_rows(matrix.shape[0])
    blocks = [slice(start, start + step) for start in range(0, len(sources), step)]
    if shares == 1:
        for block in blocks:
            yield block, *_rows(matrix, sources[block], predecessors)
        return
    n, width = matrix.shape[0], 12 if predecessors else 8
    children = list[_Child]()
    try:
        for _ in range(min(shares, len(blocks))):
            children.append(_Child())
        graph = [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float64)]
        for k, child in enumerate(children):
            sources_of_child = np.concatenate([sources[block] for block in blocks[k :: len(children)]])
            order = Searches(n, matrix.nnz, len(sources_of_child), predecessors)
            child.send(request_line(order) + b"".join(part.tobytes() for part in (*graph, sources_of_child.astype(np.int64))))
        for block, k in zip(blocks, count()):
            rows = len(sources[block])
            data = children[k % len(children)].take(rows * n * width, patience)
            before = np.frombuffer(data, np.int32, rows * n, 8 * rows * n).reshape(rows, n) if predecessors else None
            yield block, np.frombuffer(data, np.float64, rows * n).reshape(rows, n), before
    except OSError as error:
        raise Failed(
            f"a process that searches for shortest paths cannot be started: {os_error_reason(error)}; try again"
        ) from None
    finally:
        for child in children:
            child.reap()


class _Child(ModuleProcess):
    """A search process, and its unread output."""

    def __init__(self) -> None:
        super().__init__("fwtui.solver.parallel_dijkstra")
        self._stdout = bytearray()

    def take(self, size: int, patience: float) -> bytearray:
        until = monotonic() + patience
        while len(self._stdout) < size:
            output = self.read(max(0.0, until - monotonic()))
            if monotonic() > until:
                raise Failed(f"a Dijkstra search process returned nothing for {patience:g} s; choose fewer vertices")
            if output is None:
                lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
                raise Failed(f"a Dijkstra search process ended ({lines[-1] if lines else 'killed'}); try again")
            self._stdout += output
        data, self._stdout = self._stdout[:size], self._stdout[size:]
        return data


def _rows(matrix: Any, sources: np.ndarray, predecessors: bool) -> tuple[np.ndarray, np.ndarray | None]:
    from scipy.sparse.csgraph import dijkstra

    distances: Any = dijkstra(matrix, indices=sources, return_predecessors=predecessors)
    return distances if predecessors else (distances, None)


def main() -> None:
    def search(order: Searches, parent: Parent) -> None:
        from scipy.sparse import csr_array

        begins, columns, weights, sources = (
            np.frombuffer(parent.requests.read(8 * length), kind)
            for length, kind in (
                (order.n + 1, np.int64),
                (order.arcs, np.int64),
                (order.arcs, np.float64),
                (order.sources, np.int64),
            )
        )
        matrix = csr_array((weights, columns, begins), shape=(order.n, order.n))
        for _, distances, before in run_searches(matrix, sources, order.predecessors, 1):
            parent.write(distances.data.cast("B"))
            if before is not None:
                parent.write(before.data.cast("B"))

    serve(Searches, search)


if __name__ == "__main__":
    main()
