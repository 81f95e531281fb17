"""Lines of numbers in graph files: written, parsed in bulk, and read one by one only to find the wrong one."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO, NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency, ArcCollector, Arcs
from fwtui.graphs.graph import GraphInput, blocks
from fwtui.graphs.graph_limits import GraphLimits


class GraphFile(NamedTuple):
    """The input of a format's reader."""

    file: io.BufferedReader
    name: str  # safe to show
    size: int  # in bytes; an upper bound if packed
    most: int  # bytes that it may have when unpacked
    suffix: str
    limits: GraphLimits

    def lines(self, first: int = 1) -> Iterator[tuple[int, bytes]]:
        """The remaining lines and their numbers; a very long line comes in pieces."""
        return enumerate(iter(partial(self.file.readline, self.limits.chunk), b""), first)

    def header(self, comment: str, first: int = 1) -> Iterator[tuple[int, list[str]]]:
        """The words of each line that is neither empty nor a comment, and its number."""
        idle = 0
        for number, line in self.lines(first):
            words = line.decode("latin1").split()
            if words and not words[0].startswith(comment):
                idle = 0
                yield number, words
            else:
                idle += len(line)
                self.check_idle(idle, number)

    def check_idle(self, idle: int, line: int) -> None:
        """Raises Refused if that many bytes before the end of a line, holding no number, are more than any graph has."""
        if idle > self.limits.idle:
            what = f"more than {self.limits.idle:,} bytes of blank lines and comments"
            raise Refused(f"{self.name} has {what} before line {line + 1}; remove them")

    def wrong(self, line: int, why: str) -> Refused:
        return Refused(f"{self.name}, line {line}: {why}")

    def check_count(self, line: int, rows: int, what: str, least_bytes: int) -> None:
        """Raises Refused if the file is too short for that many rows of at least that many bytes."""
        if rows * least_bytes > self.size:
            words = f"{rows:,} {what} do not fit into {self.size:,} bytes"
            raise self.wrong(line, f"{words}; fetch the file again, or correct the count")


def are_counts(words: list[str]) -> bool:
    return all(word.isdecimal() and len(word) < 16 for word in words)


class Layout(NamedTuple):
    """What a file's header declares: everything that decides whether a line is right."""

    source: GraphFile
    n: int
    rows: int | None  # lines of numbers that follow; None: up to the end of the file
    first_line: int  # number of the first line after the header
    tag: str  # word that begins each line, or ""
    comment: str
    columns: str  # of each line: "uvw", "uv" or "w"
    ends: str = "i8"  # how vertices are written: "f8" also takes 1e0, as numpy.savetxt writes it
    least: int = 1  # number of the first vertex
    arcs: Callable[[np.ndarray, int], Arcs] | None = None  # of parsed rows and the number before them; None: one entry per row
    head: bytes = b""  # the first of those lines, if it has been read already
    check: Callable[[Arcs], None] = lambda arcs: None  # now and then, of all arcs so far: raises Refused


def numbered(layout: Layout) -> Adjacency:
    """The graph of the remaining lines, with vertices counted from 1. Raises Refused for wrong lines."""
    layout.source.limits.check_size(layout.n, layout.source.name, "declares")
    gathered = arcs_in(layout)
    return Adjacency(layout.n, range(1, layout.n + 1), arcs=gathered.all(), merged=gathered.merged)


def arcs_in(layout: Layout) -> ArcCollector:
    """The rest of the file, parsed in batches of lines. Raises Refused for wrong lines and counts, and what check raises."""
    gathered, read_rows = ArcCollector(layout.source.limits.apart, layout.check), 0
    for chunk, first_line in _chunks(layout):
        rows = _parse(chunk, first_line, layout)
        if not len(rows):
            layout.source.check_idle(len(chunk), first_line + chunk.count(b"\n") - 1)
        gathered.add(layout.arcs(rows, read_rows) if layout.arcs is not None else arc_of_each(rows, layout.least))
        read_rows += len(rows)
    if layout.rows is not None and read_rows != layout.rows:
        words = f"declares {layout.rows:,} entries and holds {read_rows:,}"
        raise Refused(f"{layout.source.name} {words}; fetch the file again, or correct the count")
    return gathered


def arc_of_each(rows: np.ndarray, least: int = 1) -> Arcs:
    """Rows are "from to weight", or "from to", which weighs 1."""
    weights = rows[:, 2] if rows.shape[1] == 3 else np.ones(len(rows))
    return Arcs(rows[:, 0].astype(np.int64) - least, rows[:, 1].astype(np.int64) - least, weights)


def _chunks(layout: Layout) -> Iterator[tuple[bytes, int]]:
    """The rest of the file in whole lines, each piece with the number of its first line."""
    file, line, head, size = layout.source.file, layout.first_line, layout.head, layout.source.limits.chunk
    while chunk := head + file.read(size):
        head = b""
        chunk += file.readline(size)
        if len(chunk) >= 2 * size + len(layout.head):
            raise Refused(f"{layout.source.name} has a line of more than {size:,} bytes after line {line}; break it up")
        yield chunk, line
        line += chunk.count(b"\n")


def _parse(chunk: bytes, first_line: int, layout: Layout) -> np.ndarray:
    """The chunk's numbers: float64 (rows, columns). Raises Refused, naming the first bad line."""
    text = chunk.decode("latin1")
    tag = [("tag", "S2")] if layout.tag else []
    ends = layout.columns.count("u") + layout.columns.count("v")
    numbers = [("ends", layout.ends, (ends,)), ("weights", "f8", (len(layout.columns) - ends,))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of chunks with only comments
            warnings.simplefilter("error", DeprecationWarning)  # and of 1e0 as a whole number
            loaded = np.loadtxt(io.StringIO(text), dtype=[*tag, *numbers], comments=layout.comment, ndmin=1)
        rows = np.concatenate([loaded["ends"], loaded["weights"]], axis=1, dtype=np.float64)
        if (not layout.tag or (loaded["tag"] == layout.tag.encode()).all()) and _proper(rows, layout):
            return rows
    except (ValueError, OverflowError, DeprecationWarning):
        pass
    raise _complaint(text, first_line, layout)


def _proper(rows: np.ndarray, layout: Layout) -> bool:
    for kind, column in zip(layout.columns, rows.T, strict=True):
        if kind != "w":
            if not ((column >= layout.least) & (column <= layout.n) & (column == np.floor(column))).all():
                return False
        elif column.size:
            ends = (column.min(), column.max())  # NaN is both
            fractional = column[column != np.rint(column)][:1]
            if any(layout.source.limits.unfit(float(w)) for w in (*ends, *fractional)):
                return False
    return True


def _complaint(text: str, first_line: int, layout: Layout) -> Refused:
    for number, line in enumerate(text.split("\n"), first_line):
        fields = line.split(layout.comment)[0].split()
        if fields and (why := _wrong(fields, layout)):
            return layout.source.wrong(number, why)
    return Refused(f"{layout.source.name}: the lines from {first_line} on cannot be understood; check the format")


def _wrong(fields: list[str], layout: Layout) -> str | None:
    meaning = {"u": "from", "v": "to", "w": "weight"}
    form = " ".join([*([layout.tag] if layout.tag else []), *(meaning[c] for c in layout.columns)])
    text = clean(" ".join(fields))[:40]
    if len(fields) != len(form.split()) or (layout.tag and fields[0] != layout.tag):
        return f"{text!r} is not of the form {form!r}; correct the line"
    for kind, word in zip(layout.columns, fields[1:] if layout.tag else fields, strict=True):
        try:
            value = float(word)
        except ValueError:
            return f"{clean(word)[:40]!r} is not a number; correct the line"
        if kind == "w":
            if reason := layout.source.limits.unfit(value):
                return f"weight {clean(word)[:40]} {reason}"
        elif layout.ends == "i8" and not word.lstrip("+-").isdecimal() and np.isfinite(value):
            return f"vertex {clean(word)[:40]} is not a whole number; correct the line"
        elif not (layout.least <= value <= layout.n and value == int(value)):
            return f"vertex {clean(word)[:40]} is outside {layout.least} to {layout.n:,}; correct the line"
    return None


def write_arcs(graph: GraphInput, file: IO[bytes], line: str, names: Sequence[object]) -> None:
    """A line for each edge and each self-loop below 0: the names of its source and target, and its weight."""
    for sources, targets, weights in arcs_of(graph):
        arcs = zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True)
        file.write("".join([line % (names[u], names[v], shortest(w)) for u, v, w in arcs]).encode())


def arcs_of(graph: GraphInput) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sources, targets and weights of the edges and of the self-loops below 0, some rows at a time."""
    for rows in blocks(graph.matrix):
        cells = graph.matrix[rows]
        there = cells != graph.no_edge
        vertices = np.arange(rows.start, rows.stop)
        there[vertices - rows.start, vertices] = cells[vertices - rows.start, vertices] < 0
        sources, targets = np.nonzero(there)
        yield sources + rows.start, targets, cells[there]


def write_lonely(graph: GraphInput, file: IO[bytes], line: str, names: Sequence[object]) -> None:
    """A self-loop of weight 0 for each vertex without an edge, where only edges name vertices."""
    file.write("".join(line % (names[v], names[v], 0) for v in lonely(graph)).encode())


def lonely(graph: GraphInput) -> list[int]:
    """The vertices that no edge and no self-loop below 0 leads from or to."""
    alone = np.ones(graph.n, bool)
    for sources, targets, _ in arcs_of(graph):
        alone[sources] = alone[targets] = False
    return np.flatnonzero(alone).tolist()


def names_of(graph: GraphInput) -> list[str]:
    """The names of its vertices, by default their numbers from 0."""
    return [graph.vertices.name(v) if graph.vertices is not None else str(v) for v in range(graph.n)]


def arc_count(graph: GraphInput) -> int:
    """How many lines write_arcs writes."""
    return graph.edges + int(np.count_nonzero(graph.matrix.diagonal() < 0))


def comment(graph: GraphInput) -> str:
    """What the graph is, on one line."""
    return clean("; ".join(filter(None, (graph.name, graph.note))))


def shortest(weight: float) -> str:
    """The shortest text that reads back as the same number."""
    return str(int(weight)) if weight == int(weight) else repr(weight)
