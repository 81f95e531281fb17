"""Tables of edges: source, target and optionally weight; vertices by any name.

The first line may name the columns, in any order and among others.
"""

from __future__ import annotations

import csv
import io
import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.common.units import counted
from fwtui.graphs.adjacency import Adjacency, ArcCollector, Arcs
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.number_lines import GraphFile, names_of, write_arcs, write_lonely

TITLE = "table"
SUFFIXES = (".csv", ".tsv")
ORDER = 40
ARC_BYTES = 2  # vertices are written from 0, which may take a digit less
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


def read(source: GraphFile) -> Adjacency:
    """Vertices are numbered in order of first appearance. Raises Refused, naming file and line."""
    name, delimiter = source.name, DELIMITERS[source.suffix]
    rows = rows_in(source, delimiter)
    first = next(rows, None)
    if first is None:
        raise Refused(f"{name} has no edges; put source{delimiter}target{delimiter}weight on each line")
    columns = named_columns(first[1])
    if columns is None:
        columns = _unnamed(first, name)
        rows = itertools.chain([first], rows)
    gathered, number = ArcCollector(source.limits.apart), dict[str, int]()
    edges = _edges(rows, columns, name)
    while chunk := list(itertools.islice(edges, _ROWS)):
        if number:  # before all of them are there
            source.limits.check_size(len(number), name, "has at least")
        gathered.add(_arcs(chunk, columns.weight is not None, number, name))
    if not number:
        raise Refused(f"{name} has column titles and no edges; add some")
    return Adjacency(len(number), list(number), arcs=gathered.all(), merged=gathered.merged)


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    between = DELIMITERS[suffix]
    line, names = between.join(("%s", "%s", "%s\n")), [_quoted(name, between) for name in names_of(graph)]
    file.write(between.join(("source", "target", "weight\n")).encode())
    write_arcs(graph, file, line, names)
    write_lonely(graph, file, line, names)


def _quoted(name: str, delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow([name])
    return text.getvalue()


def rows_in(source: GraphFile, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of their last line. Raises Refused, naming file and line."""
    idle = 0

    def lines() -> Iterator[str]:
        nonlocal idle
        for number, line in source.lines():
            idle += len(line)
            if len(line) >= (most := source.limits.chunk):
                raise Refused(f"{source.name}, line {number} has more than {most:,} bytes; break it up")
            source.check_idle(idle - len(line), number - 1)
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                raise Refused(f"{source.name}, line {number} is not UTF-8; convert the file") from None

    reader = csv.reader(lines(), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row and any(row):
                idle = 0
                yield reader.line_num, [field.strip() for field in row]
    except csv.Error as error:
        raise source.wrong(reader.line_num, f"{clean(str(error))}; correct the quotes") from None


def named_columns(titles: Sequence[str]) -> Columns | None:
    """The positions of the columns, if this line names them."""
    lower = [title.lower() for title in titles]
    places = [next((i for i, title in enumerate(lower) if title in names), None) for names in _NAMES]
    source, target, weight = places
    return None if source is None or target is None else Columns(source, target, weight, len(titles))


def _unnamed(first: tuple[int, list[str]], name: str) -> Columns:
    line, row = first
    if len(row) not in (2, 3):
        raise Refused(
            f"{name}, line {line} has {counted(len(row), 'column')} without titles; keep source, target and weight, "
            "or name the columns so in the first line"
        )
    return Columns(0, 1, 2 if len(row) == 3 else None, len(row))


def _edges(rows: Iterable[tuple[int, list[str]]], columns: Columns, name: str) -> Iterator[tuple[int, str, str, str]]:
    """The line, source, target and weight of each row; of its other columns nothing is kept."""
    for line, row in rows:
        if len(row) != columns.fields:
            raise Refused(f"{name}, line {line} has {counted(len(row), 'field')} and the first line {columns.fields}; correct it")
        if not row[columns.source] or not row[columns.target]:
            raise Refused(f"{name}, line {line} names no {'source' if not row[columns.source] else 'target'}; fill it in")
        yield line, row[columns.source], row[columns.target], "" if columns.weight is None else row[columns.weight]


def _arcs(edges: list[tuple[int, str, str, str]], weighted: bool, number: dict[str, int], name: str) -> Arcs:
    names = (vertex for _, *both, _ in edges for vertex in both)
    ends = np.fromiter((number.setdefault(vertex, len(number)) for vertex in names), np.int64, 2 * len(edges)).reshape(-1, 2)
    weights = _weights(edges, name) if weighted else np.ones(len(edges))
    wrong = np.flatnonzero(~np.isfinite(weights))
    if len(wrong):
        _, source, target, _ = edges[int(wrong[0])]
        between = f"from {clean(source)[:40]} to {clean(target)[:40]}"
        raise Refused(f"{name}: the weight {between} is {weights[wrong[0]]}; remove the line, or give a finite number")
    return Arcs(ends[:, 0], ends[:, 1], weights)


def _weights(edges: list[tuple[int, str, str, str]], name: str) -> np.ndarray:
    words = [word for *_, word in edges]
    if _plain("".join(words)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # an overflow is an error like a word
                return np.array(words, dtype=np.float64)
        except (ValueError, OverflowError, Warning):
            pass
    for line, _, _, word in edges:
        try:
            if not _plain(word):
                raise ValueError
            float(word)
        except ValueError:
            raise Refused(f"{name}, line {line}: weight {clean(word)[:40]!r} is not a number; correct it") from None
    return np.array([float(word) for word in words])


def _plain(text: str) -> bool:
    """Python also reads 1_000 and the digits of other scripts as numbers, and no other format here does."""
    return text.isascii() and "_" not in text
