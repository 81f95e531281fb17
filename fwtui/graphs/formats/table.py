"""Tables of edges: source, target and optionally weight; vertices may have any name.

The first line may name the columns, in any order and among others.
"""

from __future__ import annotations

import csv
import io
from typing import IO

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.arc_lines import names_of, write_arcs, write_isolated_vertices
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.text_rows import GraphFile
from fwtui.graphs.text_tables import read_table

TITLE = "table"
SUFFIXES = (".csv", ".tsv")
ORDER = 40
DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read(source: GraphFile) -> Adjacency:
    """Read the edges; vertices are numbered in order of first appearance. Raises Refused with file and line."""
    return read_table(source, DELIMITERS[source.suffix], by_appearance=True)


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    between = DELIMITERS[suffix]
    line, names = between.join(("%s", "%s", "%s\n")), [_quoted(name, between) for name in names_of(graph)]
    file.write(between.join(("source", "target", "weight\n")).encode())
    write_arcs(graph, file, line, names)
    write_isolated_vertices(graph, file, line, names)


def _quoted(name: str, delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow([name])
    return text.getvalue()
