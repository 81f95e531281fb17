"""Edges as text: "from to" or "from to weight" on each line, separated by white space, commas or tabs; or a square matrix.

Vertices are integers or names; a missing weight is 1. The first line may name the columns, in any order and among others.
Comments begin with # or %; "Undirected" in a comment (SNAP) or "sym" (KONECT) adds every edge in both directions.
"""

from __future__ import annotations

import csv
import io
from itertools import chain
from typing import IO

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.arc_lines import comment, names_of, write_arcs, write_isolated_vertices
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.text_edges import read_edges, read_matrix
from fwtui.graphs.text_heads import read_head
from fwtui.graphs.text_rows import GraphFile

DELIMITERS = {".csv": ",", ".tsv": "\t"}  # files with other suffixes use white space


def read(source: GraphFile) -> Adjacency:
    """Read the edges or the matrix. Raises Refused with file and line.

    Integer vertices are in ascending order, if no vertex has another name; else all are in order of first appearance.
    """
    separator = DELIMITERS.get(source.suffix)
    chunks = source.chunks(quotes=separator is not None)
    number, chunk = next(chunks, (1, b""))
    head = read_head(source, chunk, separator, whole=not source.file.peek(1))
    rest = chunk.split(b"\n", head.lines)[-1]
    return (read_matrix if head.matrix else read_edges)(source, head, chain([(number + head.lines, rest)], chunks))


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Write vertices by their names in tables; in edge lists by their integer names, if they have any, else numbers from 0."""
    between = DELIMITERS.get(suffix, " ")
    line = between.join(("%s", "%s", "%s\n"))
    if suffix in DELIMITERS:
        names = [_quoted(name, between) for name in names_of(graph)]
        file.write(between.join(("source", "target", "weight\n")).encode())
    else:
        labels = graph.vertices.labels if graph.vertices is not None else ()
        names = labels if labels and all(isinstance(label, int) and label >= 0 for label in labels) else range(graph.n)
        file.write(f"# fwtui: {comment(graph)}\n".encode())
    write_arcs(graph, file, line, names)
    write_isolated_vertices(graph, file, line, names)


def _quoted(name: str, delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow([name])
    return text.getvalue()
