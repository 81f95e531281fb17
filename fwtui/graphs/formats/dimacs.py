"""DIMACS shortest-path files: "p sp n m" after comments, then m lines "a from to weight"."""

from __future__ import annotations

from typing import IO

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.number_lines import CHUNK, Layout
from fwtui.graphs.source import Source, numbered
from fwtui.graphs.writers import arc_count, comment, write_arcs

TITLE = "DIMACS"
SUFFIXES = (".gr",)
ORDER = 10
WHOLE = True
ARC_BYTES = 6
_SHORTEST = len("a 1 1 0")


def read(source: Source) -> Adjacency:
    """Raises Refused, naming file and line."""
    return numbered(source, _layout(source))


def write(graph: GraphInput, file: IO[bytes]) -> None:
    file.write(f"c fwtui: {comment(graph)}\np sp {graph.n} {arc_count(graph)}\n".encode())
    write_arcs(graph, file, "a %s %s %s\n", first=1)


def _layout(source: Source) -> Layout:
    """What the header promises; the file stands at the line after it."""
    name, number = source.name, 0
    while line := source.file.readline(CHUNK):
        number += 1
        fields = line.decode("latin1").split()
        if not fields or fields[0].startswith("c"):
            continue
        if len(fields) != 4 or fields[:2] != ["p", "sp"] or not all(x.isdecimal() and len(x) < 16 for x in fields[2:]):
            shown = clean(" ".join(fields))[:40]
            raise Refused(f"{name}, line {number}: {shown!r} stands where 'p sp vertices arcs' should; put that line first")
        n, rows = int(fields[2]), int(fields[3])
        if rows * _SHORTEST > source.size:
            held = f"{rows:,} arcs do not fit into {source.size:,} bytes"
            raise Refused(f"{name}, line {number}: {held}; fetch the file again, or correct the count")
        return Layout(name, source.demand.unfit, n, rows, number + 1, "a", "c", "uvw")
    raise Refused(f"{name} has no line 'p sp vertices arcs'; put it before the arcs")
