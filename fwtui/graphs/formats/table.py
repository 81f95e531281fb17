"""Tables of edges: source, target and optionally weight; vertices by any name.

The first line may name the columns, in any order and among others.
"""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency, Arcs
from fwtui.graphs.number_lines import CHUNK, Source
from fwtui.graphs.vertices import Vertices

TITLE = "table"
SUFFIXES = (".csv", ".tsv")
ORDER = 40
DELIMITERS = {".csv": ",", ".tsv": "\t"}
_NAMES = (
    {"source", "src", "from", "start", "tail", "u"},
    {"target", "dst", "to", "end", "head", "v", "destination"},
    {"weight", "w", "distance", "cost", "length"},
)
_ROWS = 1 << 16  # at once


class Columns(NamedTuple):
    source: int
    target: int
    weight: int | None
    fields: int  # of a row


def read(source: Source) -> Adjacency:
    """Vertices are numbered in order of first appearance. Raises Refused, naming file and line."""
    name, delimiter = source.name, DELIMITERS[source.suffix]
    rows = _rows(source, delimiter)
    first = next(rows, None)
    if first is None:
        raise Refused(f"{name} has no edges; put source{delimiter}target{delimiter}weight on each line")
    columns = named_columns(first[1])
    if columns is None:
        columns = _unnamed(first, name)
        rows = itertools.chain([first], rows)
    number: dict[str, int] = {}
    parts: list[Arcs] = []
    while chunk := list(itertools.islice(rows, _ROWS)):
        parts.append(_arcs(chunk, columns, number, name))
    if not parts:
        raise Refused(f"{name} has column titles and no edges; add some")
    arcs, names = Arcs(*map(np.concatenate, zip(*parts, strict=True))), list(number)
    wrong = np.flatnonzero(~np.isfinite(arcs.weights))
    if len(wrong):
        arc = int(wrong[0])
        ends = " to ".join(clean(names[v])[:40] for v in (arcs.sources[arc], arcs.targets[arc]))
        raise Refused(f"{name}: the weight from {ends} is {arcs.weights[arc]}; remove the line, or give a finite number")
    return Adjacency(len(names), Vertices(names), arcs=arcs)


def _rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of their last line."""
    reader = csv.reader(_lines(source), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row and any(row):
                yield reader.line_num, [field.strip() for field in row]
    except csv.Error as error:
        raise source.wrong(reader.line_num, f"{clean(str(error))}; correct the quotes") from None


def _lines(source: Source) -> Iterator[str]:
    for number, line in source.lines():
        if len(line) >= CHUNK:
            raise Refused(f"{source.name}, line {number} has more than {CHUNK:,} bytes; break it up")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(f"{source.name}, line {number} is not UTF-8; convert the file") from None


def named_columns(titles: Sequence[str]) -> Columns | None:
    """The positions of the columns, if this line names them."""
    lower = [title.lower() for title in titles]
    found = [next((i for i, title in enumerate(lower) if title in names), None) for names in _NAMES]
    source, target, weight = found
    return None if source is None or target is None else Columns(source, target, weight, len(titles))


def _unnamed(first: tuple[int, list[str]], name: str) -> Columns:
    line, row = first
    if len(row) not in (2, 3):
        what = "column" if len(row) == 1 else "columns"
        raise Refused(
            f"{name}, line {line} has {len(row)} {what} without titles; keep source, target and weight, "
            "or name the columns so in the first line"
        )
    return Columns(0, 1, 2 if len(row) == 3 else None, len(row))


def _arcs(rows: list[tuple[int, list[str]]], columns: Columns, number: dict[str, int], name: str) -> Arcs:
    for line, row in rows:
        if len(row) != columns.fields:
            raise Refused(f"{name}, line {line} has {len(row)} fields and the first line {columns.fields}; correct it")
        if not row[columns.source] or not row[columns.target]:
            raise Refused(f"{name}, line {line} names no {'source' if not row[columns.source] else 'target'}; fill it in")
    names = (row[column] for _, row in rows for column in (columns.source, columns.target))
    ends = np.fromiter((number.setdefault(vertex, len(number)) for vertex in names), np.int64, 2 * len(rows)).reshape(-1, 2)
    return Arcs(ends[:, 0], ends[:, 1], _weights(rows, columns.weight, name))


def _weights(rows: list[tuple[int, list[str]]], column: int | None, name: str) -> np.ndarray:
    if column is None:
        return np.ones(len(rows))
    words = [row[column] for _, row in rows]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an overflow is an error like a word
            return np.array(words, dtype=np.float64)
    except (ValueError, OverflowError, Warning):
        pass
    for (line, _), word in zip(rows, words, strict=True):
        try:
            float(word)
        except ValueError:
            raise Refused(f"{name}, line {line}: weight {clean(word)[:40]!r} is not a number; correct it") from None
    return np.array([float(word) for word in words])
