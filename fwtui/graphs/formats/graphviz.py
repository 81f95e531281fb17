"""Graphviz drawings of small graphs with edge labels for the weights."""

from __future__ import annotations

from typing import IO

from fwtui.graphs.arc_lines import comment, write_arcs
from fwtui.graphs.graph import GraphInput


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    file.write(f"// fwtui: {comment(graph)}\ndigraph {{\n".encode())
    file.write("".join(f"  {vertex};\n" for vertex in range(graph.n)).encode())
    write_arcs(graph, file, '  %s -> %s [label="%s"];\n', range(graph.n))
    file.write(b"}\n")
