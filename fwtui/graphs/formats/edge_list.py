"""Edge lists as in the SNAP and KONECT collections: "from to" or "from to weight" on each line, # or % for comments.

Vertices are integers, not necessarily consecutive, or names without spaces; a missing weight is 1. "Undirected" in a comment
(SNAP) or "sym" (KONECT) adds every edge in both directions.
"""

from __future__ import annotations

from typing import IO

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.arc_lines import comment, write_arcs, write_isolated_vertices
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.text_rows import GraphFile
from fwtui.graphs.text_tables import read_table

TITLE = "edge list"
SUFFIXES = (".txt", ".edges", ".el", ".snap")
ORDER = 30


def read(source: GraphFile) -> Adjacency:
    """Read the edges; integer vertices are in ascending order. Raises Refused with file and line."""
    return read_table(source, None, by_appearance=False)


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Write vertices by their integer names in the input file if they have any, else as numbers from 0."""
    labels = graph.vertices.labels if graph.vertices is not None else ()
    numbers = labels if labels and all(isinstance(label, int) and label >= 0 for label in labels) else range(graph.n)
    file.write(f"# fwtui: {comment(graph)}\n".encode())
    write_arcs(graph, file, "%s %s %s\n", numbers)
    write_isolated_vertices(graph, file, "%s %s %s\n", numbers)
