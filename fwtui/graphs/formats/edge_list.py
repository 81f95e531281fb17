"""Edge lists as in the SNAP and KONECT collections: "from to" or "from to weight" on each line, # or % for comments.

Vertices are whole numbers, not necessarily consecutive; a missing weight is 1. "Undirected graph" in a comment (SNAP) or
"sym" (KONECT) adds every edge in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency, Arcs, both_ways
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.number_lines import GraphFile, Layout, arcs_in, comment, write_arcs, write_lonely

TITLE = "edge list"
SUFFIXES = (".txt", ".edges", ".el", ".snap")
ORDER = 30
ARC_BYTES = 2  # vertices are written from 0, which may take a digit less
MOST_NUMBER = 2**53 - 1  # above it float64 skips whole numbers
_UNDIRECTED = re.compile(r"^[#%]\s*(undirected graph\b|sym\b)", re.IGNORECASE)


def read(source: GraphFile) -> Adjacency:
    """Raises Refused, naming file and line."""
    layout, undirected = _layout(source)
    gathered = arcs_in(layout)
    arcs = gathered.all()
    first = min(int(ends.min()) for ends in arcs[:2])
    last = max(int(ends.max()) for ends in arcs[:2])
    if last - first < len(arcs.weights):  # sorting takes more time and room than a table of all numbers
        place = np.zeros(last - first + 1, np.int64)
        for ends in arcs[:2]:
            place[ends - first] = 1
        numbers = np.flatnonzero(place) + first
        place[numbers - first] = np.arange(len(numbers))
        sources, targets = (place[ends - first] for ends in arcs[:2])
    else:
        numbers, places = np.unique(np.concatenate(arcs[:2]), return_inverse=True)
        sources, targets = np.split(places, 2)
    labels: Sequence[int] = range(first, last + 1) if last - first == len(numbers) - 1 else numbers.tolist()
    graph = Adjacency(len(numbers), labels, arcs=Arcs(sources, targets, arcs.weights), merged=gathered.merged)
    return both_ways(graph) if undirected else graph


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Vertices by their numbers in the file that they were read from, where these are whole numbers, else from 0."""
    labels = graph.vertices.labels if graph.vertices is not None else ()
    numbers = labels if labels and all(isinstance(label, int) and label >= 0 for label in labels) else range(graph.n)
    file.write(f"# fwtui: {comment(graph)}\n".encode())
    write_arcs(graph, file, "%s %s %s\n", numbers)
    write_lonely(graph, file, "%s %s %s\n", numbers)


def _layout(source: GraphFile) -> tuple[Layout, bool]:
    """The layout from the first lines, and whether edges go both ways; leaves the file after the first edge."""
    undirected, comment, idle = False, "#", 0

    def check(arcs: Arcs) -> None:
        if len(arcs.weights) > source.limits.most // 2:  # fewer arcs cannot have too many ends
            ends = np.sort(np.concatenate([arcs.sources, arcs.targets]))  # np.unique is ten times as slow with few equal ones
            source.limits.check_size(1 + int(np.count_nonzero(ends[1:] != ends[:-1])), source.name, "has at least")

    for number, line in source.lines():
        text = line.decode("latin1")
        if text[0] in "#%":
            comment = text[0]
            undirected = undirected or bool(_UNDIRECTED.match(text))
        fields = len(text.split(comment)[0].split())
        if fields in (2, 3):
            columns = "uvw"[:fields]
            layout = Layout(source, MOST_NUMBER, None, number, "", comment, columns, "f8", least=0, head=line, check=check)
            return layout, undirected
        if fields:
            raise source.wrong(number, f"{clean(text.strip())[:40]!r} is not of the form 'from to weight'; correct it")
        idle += len(line)
        source.check_idle(idle, number)
    raise Refused(f"{source.name} has no edges; put 'from to weight' on each line")
