"""Graphs as lines of text, one for each edge, as several formats write them."""

from __future__ import annotations

from typing import IO

import numpy as np

from fwtui.common.text import clean
from fwtui.graphs.graph import GraphInput, blocks


def write_arcs(graph: GraphInput, file: IO[bytes], line: str, first: int = 0) -> None:
    """A line for each edge and each self-loop below 0: its source and target, counted from `first`, and its weight."""
    for rows in blocks(graph.matrix):
        cells = graph.matrix[rows]
        there = cells != graph.no_edge
        own = np.arange(rows.start, rows.stop)
        there[own - rows.start, own] = cells[own - rows.start, own] < 0
        sources, targets = (ends + first for ends in np.nonzero(there))
        arcs = zip((sources + rows.start).tolist(), targets.tolist(), cells[there].tolist(), strict=True)
        file.write("".join([line % (u, v, number(w)) for u, v, w in arcs]).encode())


def arc_count(graph: GraphInput) -> int:
    """How many lines write_arcs writes."""
    return graph.edges + int(np.count_nonzero(graph.matrix.diagonal() < 0))


def comment(graph: GraphInput) -> str:
    """What the graph is, on one line."""
    return clean("; ".join(filter(None, (graph.name, graph.note))))


def number(weight: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(weight)) if weight == int(weight) else repr(weight)
