"""Lines of numbers: parsed in bulk, and read one by one only to say which of them is wrong."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean

CHUNK = 1 << 22  # bytes parsed at once


class Arcs(NamedTuple):
    sources: np.ndarray  # int64, from 0
    targets: np.ndarray
    weights: np.ndarray  # float64


class Layout(NamedTuple):
    """What a file's header promises."""

    n: int
    rows: int | None  # lines of numbers that follow; None: as many as there are
    first_line: int  # number of the first line after the header
    tag: str  # word that begins each line, or ""
    comment: str
    columns: str  # of each line: "uvw", "uv" or "w"
    arcs: Callable[[np.ndarray, int], Arcs]  # parsed rows and how many came before
    least: int = 1  # number of the first vertex
    head: bytes = b""  # the first of those lines, where it has been read already


class Table(NamedTuple):
    """Everything that decides whether a line is right."""

    name: str  # of the file, safe to show
    layout: Layout
    unfit: Callable[[float], str | None]  # why a weight cannot be stored


def arcs_in(file: io.BufferedReader, layout: Layout, name: str, unfit: Callable[[float], str | None]) -> Arcs:
    """The rest of the file, parsed some lines at a time. Raises Refused for lines and counts that are wrong."""
    table = Table(name, layout, unfit)
    parts = [Arcs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    read_rows = 0
    for chunk, first_line in _chunks(file, layout, name):
        rows = parse(chunk, first_line, table)
        parts.append(layout.arcs(rows, read_rows))
        read_rows += len(rows)
    if layout.rows is not None and read_rows != layout.rows:
        raise Refused(
            f"{name} declares {layout.rows:,} entries and holds {read_rows:,}; fetch the file again, or correct the count"
        )
    return Arcs(*map(np.concatenate, zip(*parts, strict=True)))


def _chunks(file: io.BufferedReader, layout: Layout, name: str) -> Iterator[tuple[bytes, int]]:
    """The rest of the file in whole lines, each piece with the number of its first line."""
    line = layout.first_line
    head = layout.head
    while chunk := head + file.read(CHUNK):
        head = b""
        chunk += file.readline(CHUNK)
        if len(chunk) >= 2 * CHUNK + len(layout.head):
            raise Refused(f"{name} has a line of more than {CHUNK:,} bytes after line {line}; break it up")
        yield chunk, line
        line += chunk.count(b"\n")


def parse(chunk: bytes, first_line: int, table: Table) -> np.ndarray:
    """The chunk's numbers: float64 (rows, columns). Raises Refused, naming the first bad line."""
    columns = len(table.layout.columns)
    text = chunk.decode("latin1")
    fields = [("tag", "S2")] if table.layout.tag else []
    fields += [(f"c{c}", "f8") for c in range(columns)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of chunks that are all comment
            loaded = np.loadtxt(io.StringIO(text), dtype=fields, comments=table.layout.comment, ndmin=1)
    except (ValueError, OverflowError):
        raise _complaint(text, first_line, table) from None
    rows = np.empty((len(loaded), columns))
    for c in range(columns):
        rows[:, c] = loaded[f"c{c}"]
    tagged = not table.layout.tag or bool((loaded["tag"] == table.layout.tag.encode()).all())
    if not (tagged and _proper(rows, table)):
        raise _complaint(text, first_line, table)
    return rows


def _proper(rows: np.ndarray, table: Table) -> bool:
    for kind, column in zip(table.layout.columns, rows.T, strict=True):
        if kind != "w":
            if not ((column >= table.layout.least) & (column <= table.layout.n) & (column == np.floor(column))).all():
                return False
        elif column.size:
            ends = (column.min(), column.max())  # NaN is both
            fractional = column[column != np.rint(column)][:1]
            if any(table.unfit(float(w)) for w in (*ends, *fractional)):
                return False
    return True


def _complaint(text: str, first_line: int, table: Table) -> Refused:
    for number, line in enumerate(text.split("\n"), first_line):
        fields = line.split(table.layout.comment)[0].split()
        wrong = _wrong(fields, table) if fields else None
        if wrong:
            return Refused(f"{table.name}, line {number}: {wrong}")
    return Refused(f"{table.name}: the lines from {first_line} on cannot be understood; check the format")


def _wrong(fields: list[str], table: Table) -> str | None:
    layout = table.layout
    meaning = {"u": "from", "v": "to", "w": "weight"}
    form = " ".join([*([layout.tag] if layout.tag else []), *(meaning[c] for c in layout.columns)])
    shown = clean(" ".join(fields))[:40]
    if len(fields) != len(form.split()) or (layout.tag and fields[0] != layout.tag):
        return f"{shown!r} is not of the form {form!r}; correct the line"
    for kind, word in zip(layout.columns, fields[1:] if layout.tag else fields, strict=True):
        try:
            value = float(word)
        except ValueError:
            return f"{clean(word)[:40]!r} is not a number; correct the line"
        if kind == "w":
            if reason := table.unfit(value):
                return f"weight {clean(word)[:40]} {reason}"
        elif not (layout.least <= value <= layout.n and value == int(value)):
            return f"vertex {clean(word)[:40]} is outside {layout.least} to {layout.n:,}; correct the line"
    return None
