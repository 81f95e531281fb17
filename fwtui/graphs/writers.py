"""Graphs as files that others read: DIMACS .gr, Matrix Market .mtx, NumPy .npz, Graphviz .dot; and small ones as text.

What is written as .gr or .mtx and read again in the same number type is the same matrix, zero and negative weights and
negative self-loops included.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.graph import GraphInput, blocks
from fwtui.graphs.opening import MAX_BYTES

MOST_DRAWN = 64  # vertices in a .dot file: beyond it nothing can be seen in the picture
NO_EDGE_SIGN = "."


def write(graph: GraphInput, path: str | os.PathLike[str]) -> int:
    """Save the graph in the format that the file's suffix names; returns its bytes. The file is whole or not there at all.

    Raises Refused for text files over 256 MiB, real weights in .gr, drawings of more than 64 vertices, and what the disk refuses.
    """
    out = Path(path)
    form = check_suffix(path)
    name = clean(out.name)
    if form is _dot and graph.n > MOST_DRAWN:
        raise Refused(f"{name} would draw {graph.n:,} vertices, more than {MOST_DRAWN}; choose a smaller n, or .gr")
    check_whole(out, graph.integer)
    if form in (_gr, _mtx) and _least_bytes(graph) > MAX_BYTES:
        raise _too_large(name)
    with whole_file(path) as file:
        form(graph, _Limited(file, name) if form is not _npz else file)
        size = file.tell()
    return size


def check_suffix(path: str | os.PathLike[str]) -> Callable[[GraphInput, IO[bytes] | _Limited], None]:
    """What writes files of that suffix. Raises Refused for others."""
    form = _FORMS.get(Path(path).suffix.lower())
    if form is None:
        raise Refused(f"{clean(Path(path).name)!r} ends in none of {', '.join(_FORMS)}; choose one of them")
    return form


def check_whole(out: Path, whole: bool) -> None:
    """Raises Refused where DIMACS, which knows whole weights alone, would be given others."""
    if out.suffix.lower() == ".gr" and not whole:
        raise Refused(f"{clean(out.name)} would have real weights, and DIMACS .gr knows whole ones alone; choose .mtx or .npz")


def picture(graph: GraphInput, most: int) -> list[str]:
    """A line of vertices, then the matrix in aligned numbers, a dot for no edge. Raises Refused above `most` vertices."""
    check_small(graph.n, most)
    cells = [[NO_EDGE_SIGN if w == graph.no_edge else _number(w) for w in row] for row in graph.matrix.tolist()]
    cells = [["", *map(str, range(graph.n))], *([str(i), *row] for i, row in enumerate(cells))]
    width = [max(len(row[c]) for row in cells) for c in range(graph.n + 1)]
    return ["  ".join(cell.rjust(w) for cell, w in zip(row, width, strict=True)) for row in cells]


def check_small(n: int, most: int) -> None:
    """Raises Refused for a matrix that nobody could read."""
    if n > most:
        raise Refused(f"a graph of {n:,} vertices is too large to print, which takes at most {most}; name a file with -o")


class _Limited:
    """A binary file that refuses to grow beyond what can be read back."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._left = MAX_BYTES

    def write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._name)
        self._file.write(data)


def _too_large(name: str) -> Refused:
    return Refused(f"{name} would have more than {MAX_BYTES:,} bytes of text; choose .npz, or a smaller or sparser graph")


def _gr(graph: GraphInput, file: IO[bytes] | _Limited) -> None:
    file.write(f"c fwtui: {_comment(graph)}\np sp {graph.n} {_arcs(graph)}\n".encode())
    for sources, targets, weights in _edges(graph):
        lines = [f"a {u + 1} {v + 1} {_number(w)}\n" for u, v, w in zip(sources, targets, weights, strict=True)]
        file.write("".join(lines).encode())


def _mtx(graph: GraphInput, file: IO[bytes] | _Limited) -> None:
    field = "integer" if graph.integer else "real"
    size = f"{graph.n} {graph.n} {_arcs(graph)}"
    file.write(f"%%MatrixMarket matrix coordinate {field} general\n% fwtui: {_comment(graph)}\n{size}\n".encode())
    for sources, targets, weights in _edges(graph):
        lines = [f"{u + 1} {v + 1} {_number(w)}\n" for u, v, w in zip(sources, targets, weights, strict=True)]
        file.write("".join(lines).encode())


def _dot(graph: GraphInput, file: IO[bytes] | _Limited) -> None:
    file.write(f"// fwtui: {_comment(graph)}\ndigraph {{\n".encode())
    file.write("".join(f"  {vertex};\n" for vertex in range(graph.n)).encode())
    for sources, targets, weights in _edges(graph):
        lines = [f'  {u} -> {v} [label="{_number(w)}"];\n' for u, v, w in zip(sources, targets, weights, strict=True)]
        file.write("".join(lines).encode())
    file.write(b"}\n")


def _npz(graph: GraphInput, file: IO[bytes] | _Limited) -> None:
    """weights (n, n) as the kernels get them, and no_edge: the value that means none (weights may be negative, so -1 cannot)."""
    assert not isinstance(file, _Limited)
    np.savez(file, weights=graph.matrix, no_edge=np.array(graph.no_edge, dtype=graph.matrix.dtype))


_FORMS: dict[str, Callable[[GraphInput, IO[bytes] | _Limited], None]] = {".gr": _gr, ".mtx": _mtx, ".npz": _npz, ".dot": _dot}


def _edges(graph: GraphInput) -> Iterator[tuple[list[int], list[int], list[float]]]:
    """(sources, targets, weights) of a few rows at a time: all edges, and self-loops below 0."""
    for rows in blocks(graph.matrix):
        cells = graph.matrix[rows]
        there = cells != graph.no_edge
        own = np.arange(rows.start, rows.stop)
        there[own - rows.start, own] = cells[own - rows.start, own] < 0
        sources, targets = np.nonzero(there)
        yield (sources + rows.start).tolist(), targets.tolist(), cells[there].tolist()


def _arcs(graph: GraphInput) -> int:
    return graph.edges + int(np.count_nonzero(graph.matrix.diagonal() < 0))


def _number(weight: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(weight)) if weight == int(weight) else repr(weight)


def _comment(graph: GraphInput) -> str:
    return clean("; ".join(filter(None, (graph.name, graph.note))))


def _least_bytes(graph: GraphInput) -> int:
    """What the arcs take as text at the very least: two vertices, a weight of one digit, two blanks, an end of line."""
    digits = np.char.str_len(np.arange(1, graph.n + 1).astype(str))
    total = 0
    for rows in blocks(graph.matrix):
        there = graph.matrix[rows] != graph.no_edge
        total += int(there.sum(axis=1) @ digits[rows]) + int(there.sum(axis=0) @ digits) + 4 * int(np.count_nonzero(there))
    return total - int(2 * digits.sum()) - 4 * graph.n  # the diagonal, which is rarely written
