"""DIMACS shortest-path files: "p sp n m" after comments, then m lines "a from to weight"."""

from __future__ import annotations

from typing import IO

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.graphs.adjacency import Adjacency, graph_of_arcs
from fwtui.graphs.arc_lines import arc_count, comment, write_arcs
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.text_rows import Form, GraphFile, are_counts, gather


def read(source: GraphFile) -> Adjacency:
    """Read the arcs. Raises Refused with file and line."""
    source.weight.check_unused(source.name)
    for number, fields in source.header("c"):
        if len(fields) != 4 or fields[:2] != ["p", "sp"] or not are_counts(fields[2:]):
            text = sanitise(" ".join(fields))[:40]
            raise source.wrong(number, f"{text!r} is where 'p sp vertices arcs' should be; put that line first")
        n, rows = map(int, fields[2:])
        source.check_count(number, rows, "arcs", len("a 1 1 0"))
        source.limits.check_size(n, source.name, "declares")
        arcs = gather(source, Form("uvw", comment="c", tag="a", high=n), number + 1, rows)
        return graph_of_arcs(n, range(1, n + 1), arcs.all(), merged=arcs.merged, notes=("weights from the arc lines",))
    raise Refused(f"{source.name} has no line 'p sp vertices arcs'; put it before the arcs")


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    file.write(f"c fwtui: {comment(graph)}\np sp {graph.n} {arc_count(graph)}\n".encode())
    write_arcs(graph, file, "a %s %s %s\n", range(1, graph.n + 1))
