"""Edge lines of written graph files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np

from fwtui.common.text import sanitise
from fwtui.graphs.graph import GraphInput, blocks


def write_arcs(graph: GraphInput, file: IO[bytes], line: str, names: Sequence[object]) -> None:
    """Write a line for each edge and each negative self-loop: the names of its source and target, and its weight."""
    for sources, targets, weights in arcs_of(graph):
        arcs = zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True)
        file.write("".join([line % (names[u], names[v], shortest(w)) for u, v, w in arcs]).encode())


def arcs_of(graph: GraphInput) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield sources, targets and weights of the edges and of negative self-loops, in blocks of rows."""
    for rows in blocks(graph.matrix):
        cells = graph.matrix[rows]
        there = cells != graph.no_edge
        vertices = np.arange(rows.start, rows.stop)
        there[vertices - rows.start, vertices] = cells[vertices - rows.start, vertices] < 0
        sources, targets = np.nonzero(there)
        yield sources + rows.start, targets, cells[there]


def write_isolated_vertices(graph: GraphInput, file: IO[bytes], line: str, names: Sequence[object]) -> None:
    """Write a self-loop of weight 0 for each vertex without an edge, for formats in which only edges name vertices."""
    isolated = np.ones(graph.n, bool)
    for sources, targets, _ in arcs_of(graph):
        isolated[sources] = isolated[targets] = False
    file.write("".join(line % (names[v], names[v], 0) for v in np.flatnonzero(isolated).tolist()).encode())


def names_of(graph: GraphInput) -> list[str]:
    """Return the names of the graph's vertices, by default their numbers from 0."""
    return [graph.vertices.text(v) if graph.vertices is not None else str(v) for v in range(graph.n)]


def arc_count(graph: GraphInput) -> int:
    """Return the number of lines that write_arcs writes."""
    return graph.edges + int(np.count_nonzero(graph.matrix.diagonal() < 0))


def comment(graph: GraphInput) -> str:
    """Describe the graph in one line."""
    return sanitise("; ".join(filter(None, (graph.name, graph.note))))


def shortest(weight: float) -> str:
    """Return the shortest text that reads back as the same number."""
    return str(int(weight)) if weight == int(weight) else repr(weight)
