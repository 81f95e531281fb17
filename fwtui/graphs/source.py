"""A graph file that is open, and the arcs in lines of numbers."""

from __future__ import annotations

import io
from typing import NamedTuple

from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.limits import Demand
from fwtui.graphs.number_lines import Layout, arcs_in
from fwtui.graphs.vertices import Vertices


class Source(NamedTuple):
    """What a format's reader is given."""

    file: io.BufferedReader
    name: str  # safe to show
    size: int  # bytes that it has, or at most has unpacked
    most: int  # bytes that it may have unpacked
    suffix: str
    demand: Demand


def numbered(source: Source, layout: Layout) -> Adjacency:
    """The graph of the lines that follow, whose vertices are counted from 1. Raises Refused for lines that are wrong."""
    source.demand.check_size(layout.n, source.name, "declares")
    arcs = arcs_in(source.file, layout)
    return Adjacency(layout.n, Vertices(range(1, layout.n + 1)), arcs=arcs)
