"""The writer of graph files for other programs, and of small graphs as text.

A graph that is written and read again in the same data type has the same matrix, including zero and negative weights and
negative self-loops.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.graphs.arc_lines import shortest
from fwtui.graphs.formats import FORMATS, written_as
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.graph_file import MAX_BYTES

NO_EDGE_SIGN = "."


def write(graph: GraphInput, path: str | os.PathLike[str], most_bytes: int = MAX_BYTES, force: bool = True) -> int:
    """Save the graph in the format of the file's suffix; return its size in bytes. An incomplete file is never left.

    Raises Refused for text files over `most_bytes`, real weights in .gr, drawings of more than 64 vertices, disk errors, and
    without `force` for an existing file.
    """
    out, form = Path(path), written_as(path)
    name, most = sanitise(out.name), form.max_vertices
    if most and graph.n > most:
        raise Refused(f"{name} would draw {graph.n:,} vertices, more than {most}; choose a smaller n, or .gr")
    check_whole(out, graph.integer)
    with atomic_write(out, force=force) as file:
        form.load().write(graph, file if form.arrays else _Limited(file, name, most_bytes), out.suffix.lower())
        return file.tell()


def check_whole(out: Path, whole: bool) -> None:
    """Raise Refused for real weights in an integer format such as DIMACS."""
    form = written_as(out)
    if form.whole and not whole:
        *others, last = (other.suffixes[0] for other in FORMATS if other.reads and other.writes and not other.whole)
        raise Refused(
            f"{sanitise(out.name)} would have real weights, but {form} stores only integers; choose {', '.join(others)} or {last}"
        )


def picture(graph: GraphInput, most: int) -> list[str]:
    """Return the aligned matrix below a line of vertices, with a dot for no edge. Raises Refused above `most` vertices."""
    check_small(graph.n, most)
    cells = [[NO_EDGE_SIGN if w == graph.no_edge else shortest(w) for w in row] for row in graph.matrix.tolist()]
    cells = [["", *map(str, range(graph.n))], *([str(i), *row] for i, row in enumerate(cells))]
    width = [max(len(row[c]) for row in cells) for c in range(graph.n + 1)]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=True)) for row in cells]


def check_small(n: int, most: int) -> None:
    """Raise Refused for a matrix that is too large to print."""
    if n > most:
        raise Refused(f"a graph of {n:,} vertices is too large to print (at most {most}); name a file with -o")


class _Limited:
    """A binary file that refuses to grow beyond the size that can be read back."""

    def __init__(self, file: IO[bytes], name: str, most: int) -> None:
        self._file, self._name = file, name
        self._most = self._remaining = most

    def write(self, data: bytes) -> None:
        self._remaining -= len(data)
        if self._remaining < 0:
            size = f"more than {self._most:,} bytes of text"
            raise Refused(f"{self._name} would have {size}; choose .npz, or a smaller or sparser graph")
        self._file.write(data)
