"""The beginning of a table of edges in text: comments, separators, titles, and what they declare about the rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean, quoted
from fwtui.common.units import counted
from fwtui.graphs.columns import ends_among, has_directions, is_identifier, listed, weights_note
from fwtui.graphs.text_rows import MAX_WHOLE, Form, GraphFile, number_in

_SAMPLE, _SAMPLE_SIZE = 200, 1 << 16  # rows and characters that show the separator and the columns of numbers
_COMMENTS = ("#", "%", "//")
_UNDIRECTED = re.compile(r"\bundirected\b", re.IGNORECASE)
_KONECT = re.compile(r"^%\s*(sym|asym|bip)\s+(\w+)", re.IGNORECASE)
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*$", re.IGNORECASE)  # of spreadsheets
_MIN_MATRIX = 5  # columns of numbers without titles: fewer may also be edges
_NO_NUMBER = ("", "na", "-")  # a cell of a matrix without a number


@dataclass(frozen=True)
class Head:
    """What the beginning of a file declares about its rows."""

    form: Form
    lines: int  # before the first row
    notes: tuple[str, ...] = ()
    undirected: bool = False
    bipartite: bool = False
    matrix: int = 0  # its vertices, if the rows are those of a matrix
    labels: Sequence[str] | None = None  # of a matrix
    counts: tuple[int, int] | None = None  # vertices and edges, if they are the first line


@dataclass
class _Comments:
    """What the comments before the first row declare."""

    undirected: bool = False
    konect: tuple[str, str] | None = None  # its structure and its kind of weights
    sign: str | None = None  # of the last comment
    delimiter: str | None = None  # that a line sep= declares
    titles: list[str] = field(default_factory=list)  # the lines themselves, which may be titles
    lines: int = 0


def read_head(source: GraphFile, chunk: bytes, usual: str | None, whole: bool) -> Head:
    """Return what the first chunk of a file declares, or the whole file; `usual` is the suffix's separator, None: white space.

    Raises Refused if there is no row, or the meaning of the columns is not clear.
    """
    name = source.name
    lines = chunk.decode("utf-8", "replace").split("\n")
    comments = _comments(lines, source, usual)
    sample, ended = _sampled(lines[comments.lines :])
    if not sample:
        form = "'from to weight'" if usual is None else f"source{usual}target{usual}weight"
        raise Refused(f"{name} has no edges; put {form} on each line")
    delimiter = comments.delimiter or _delimiter(sample, usual)
    rows = [_split(re.split(rf"\s{comments.sign or '#'}", line)[0] if delimiter is None else line, delimiter) for line in sample]
    titles = _titles(rows, comments.titles, delimiter)
    titled = bool(titles) and rows[0] == titles
    rows = rows[1:] if titled else rows
    lines_before = comments.lines + int(titled)
    if not rows:
        raise Refused(f"{name} has column titles and no edges; add some")
    comma = delimiter != "," and _has_decimal_comma(rows)
    base = Form("", delimiter, comments.sign or "#", decimal_comma=comma, names=usual is not None, low=0)
    ended = ended and whole
    if matrix := _matrix(source, rows, titles if titled else [], ended, base, lines_before, comments):
        return matrix
    return _edges(source, rows, titles, titled, ended, base, lines_before, comments)


def _sampled(lines: list[str]) -> tuple[list[str], bool]:
    """Return the first lines that are neither empty nor comments, and whether these are all."""
    sample, size = list[str](), 0
    for line in lines:
        if line.strip() and not line.startswith(("# ", "% ")):
            if len(sample) == _SAMPLE or (size > _SAMPLE_SIZE and len(sample) > 2):
                return sample, False
            sample.append(line)
            size += len(line)
    return sample, True


def _comments(lines: list[str], source: GraphFile, usual: str | None) -> _Comments:
    found, idle = _Comments(), 0
    for number, line in enumerate(lines):
        text = line.strip()
        found.lines = number
        source.check_idle(idle, number)
        idle += len(line) + 1
        if match := _SEPARATOR_LINE.match(text):
            found.delimiter = match[1]
        elif text.startswith(_COMMENTS):
            _check_comment(line, lines[number + 1 :], source, number + 1, usual)
            found.sign = text[0]
            found.titles.append(text.lstrip("#%/ \t"))
            found.undirected = found.undirected or bool(_UNDIRECTED.search(text))
            if match := _KONECT.match(text):
                found.konect = match[1].lower(), match[2].lower()
        elif text:
            return found
    found.lines = len(lines)
    return found


def _check_comment(line: str, rest: list[str], source: GraphFile, number: int, usual: str | None) -> None:
    """Raises Refused for a line that may be a comment or an edge between names such as #a and #b."""
    if usual is None or line[1:2] in ("", " ", "\t", "#", "%", "/") or usual not in line:
        return
    following = [row for row in rest if row.strip()][:_SAMPLE]
    if ends_among(_split(line[1:], usual)) is None and any(row.startswith("#") and row[1:2] not in " #" for row in following):
        raise source.wrong(
            number, f"{clean(line)[:40]!r} is a comment or an edge; put a space after # for comments, or titles first"
        )


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return [cell.strip() for cell in row]


def _delimiter(sample: list[str], usual: str | None) -> str | None:
    """Return the separator by which all rows have equally many fields, and most; None for white space."""
    best, most = usual, 1
    others = {",": (";", "\t", "|"), None: (";", ",", "\t", "|")}  # names in tables may have spaces
    for delimiter in (usual, *others.get(usual, ())):
        rows = [_split(line, delimiter) for line in sample]
        counts = {len(row) for row in rows}
        dangling = delimiter is None and any(cell.endswith((",", ";")) for row in rows for cell in row[:-1])
        if len(counts) == 1 and not dangling and (fields := counts.pop()) > most:
            best, most = delimiter, fields
    return best


def _titles(rows: list[list[str]], comments: list[str], delimiter: str | None) -> list[str]:
    """Return the titles of the columns, from the first row or from a comment that names the ends; [] if there are none."""
    first, others = rows[0], rows[1:]
    if not any(map(_is_number, first)):
        text_over_numbers = any(
            all(_is_number(row[place]) for row in others)
            for place in range(len(first))
            if all(len(row) > place for row in others)
        )
        if ends_among(first) is not None or (others and text_over_numbers):
            return first
    for comment in comments:
        titles = _split(comment, delimiter)
        if len(titles) == len(first) and ends_among(titles) is not None:
            return titles
    return []


def _is_number(cell: str) -> bool:
    return number_in(cell) is not None or number_in(cell.replace(",", ".", 1)) is not None


def _has_decimal_comma(rows: list[list[str]]) -> bool:
    return any(number_in(cell) is None and number_in(cell.replace(",", ".", 1)) is not None for row in rows for cell in row)


def _matrix(
    source: GraphFile, rows: list[list[str]], titles: list[str], ended: bool, base: Form, lines: int, comments: _Comments
) -> Head | None:
    """Return the head of a square matrix of numbers, with or without names of its rows and columns; None for edges."""
    columns = len(rows[0])
    named = len(titles) == columns > 2 and [row[0] for row in rows] == titles[1:][: len(rows)]
    if (titles and ends_among(titles) and not named) or comments.konect or any(len(row) != columns for row in rows):
        return None
    size = columns - 1 if named else columns
    cells = [row[1:] if named else row for row in rows]
    numeric = all(_is_number(cell) or cell.lower() in _NO_NUMBER for row in cells for cell in row)
    if not numeric or (not named and size < _MIN_MATRIX and not (ended and not titles and _is_small_matrix(source, cells))):
        return None
    if named and ended and len(rows) != size:
        return None
    letters = ("-" if named else "") + "w" * size
    notes = (f"read as a matrix of {size:,} x {size:,} weights",)
    labels = (titles[1:] if named else titles) or None
    form = base._replace(columns=letters, names=False)
    source.weight.check_unused(source.name)
    return Head(form, lines, notes, matrix=size, labels=labels)


def _is_small_matrix(source: GraphFile, rows: list[list[str]]) -> bool:
    """Whether so few numbers are a matrix and not edges. Raises Refused if they may be both."""
    n = len(rows)
    if n < 2 or n != len(rows[0]):
        return False
    values = [[number_in(cell.replace(",", ".")) for cell in row] for row in rows]
    diagonal = {values[place][place] for place in range(n)}
    ends = [value for row in values for value in row[:2]]
    if len(diagonal) > 1 or (n < 4 and diagonal != {0}) or values == [[0, 1], [1, 0]]:
        return False
    if n > 3 or any(value is None or not value >= 0 or value != np.rint(value) for value in ends):
        return True  # edges have three columns at most, and their ends are whole numbers
    if n > 2 and all(values[i][j] == values[j][i] for i in range(n) for j in range(n)):
        return True
    raise Refused(
        f"{source.name} may be a matrix of {n} x {n} weights or a list of {n} edges; begin with the titles source, target"
        f"{' and weight' if n > 2 else ''} for edges, or save the matrix as .npy"
    )


def _edges(
    source: GraphFile,
    rows: list[list[str]],
    titles: list[str],
    titled: bool,
    ended: bool,
    base: Form,
    lines: int,
    comments: _Comments,
) -> Head:
    """Return the head of rows that are an edge each."""
    columns = len(titles or rows[0])
    places = (ends_among(titles) if titles else None) or (0, 1)
    konect = comments.konect
    if columns < 2 or (columns > 3 and not titles and konect is None):
        if base.delimiter is None:
            raise source.wrong(lines + 1, f"{clean(' '.join(rows[0]))[:40]!r} is not of the form 'from to weight'; correct it")
        what = f"has {counted(columns, 'column')} without titles; keep source, target and weight"
        raise Refused(f"{source.name}, line {lines + 1} {what}, or name the columns so in the first line")
    notes: list[str] = []
    counts = _counts(rows, ended) if not titles else None
    if counts is not None:
        rows, lines, columns = rows[1:], lines + 1, len(rows[1])
    if titles:
        if ends_among(titles) is None:
            notes.append(f"source and target are the first two columns, {quoted(titles[0])} and {quoted(titles[1])}")
        others = [place for place in range(columns) if place not in places and place < len(titles)]

        def has_numbers(place: int) -> bool:
            cells = [row[others[place]] for row in rows if len(row) == columns and row[others[place]]]
            return bool(cells) and all(map(_is_number, cells))

        chosen = source.weight.among([titles[place] for place in others], has_numbers, source.name)
        weight = None if chosen is None else others[chosen]
        notes.insert(0, weights_note(None if weight is None else titles[weight]))
    else:
        source.weight.check_unused(source.name)
        weight = 2 if columns > 2 and source.weight.name is not None else None
        notes.append("each edge counts 1" if weight is None else "weights from column 3")
    direction = _direction(rows, titles)
    letters = ["-"] * columns
    for place, letter in ((direction, "d"), (weight, "w"), (places[0], "u"), (places[1], "v")):
        if place is not None:
            letters[place] = letter
    ignored = [titles[place] if titles else f"column {place + 1}" for place in range(columns) if letters[place] == "-"]
    ignored = [title for title in ignored if title and not is_identifier(title)]
    if ignored:
        notes.append(f"ignored: {listed(ignored)}")
    if konect is not None and konect[1] in ("positive", "dynamic", "unweighted") and weight is not None:
        notes.append(f"KONECT calls column 3 {konect[1]}, so it counts edges and is hardly a distance")
    bipartite = konect is not None and konect[0] == "bip"
    names = not bipartite and (base.names or titled or not _are_small_numbers(rows, places))
    form = base._replace(
        columns="".join(letters), names=names, low=-MAX_WHOLE if base.names else 0, whole="i8" if names else "f8"
    )
    if bipartite:
        notes.append("bipartite: source 1 is the vertex 'left 1' and target 1 is 'right 1'; edges lead both ways")
    if not titles and form.names and not any(_is_number(cell) for cell in rows[0]):
        notes += _unclear_titles(rows, lines)
    undirected = comments.undirected or (konect is not None and konect[0] in ("sym", "bip"))
    return Head(form, lines, tuple(notes), undirected, bipartite, counts=counts)


def _counts(rows: list[list[str]], ended: bool) -> tuple[int, int] | None:
    """Return the first row if it may be the counts of vertices and edges, which the end of the file decides."""
    first, others = rows[0], rows[1:]
    if len(first) != 2 or not others or not all(cell.isdecimal() and len(cell) < 16 for cell in first):
        return None
    vertices, edges = map(int, first)
    widths = {len(row) for row in others}
    whole = all(cell.isdecimal() for row in others for cell in row[:2])
    fits = edges == len(others) if ended else edges > len(others)
    return (vertices, edges) if whole and fits and (widths == {2} or widths == {3}) else None


def _direction(rows: list[list[str]], titles: list[str]) -> int | None:
    """Return the place of the column that says for each edge if it is directed."""
    places = range(min(len(titles), len(rows[0])))
    return next(
        (place for place in places if has_directions(titles[place], [row[place] for row in rows if len(row) > place])), None
    )


def _are_small_numbers(rows: list[list[str]], places: tuple[int, int]) -> bool:
    """Whether all ends are whole numbers that float64 holds, so that a later one that is not is a mistake."""
    ends = [number_in(row[place]) for row in rows for place in places if len(row) > max(places)]
    return all(value is not None and value == value and abs(value) <= MAX_WHOLE for value in ends[:2])


def _unclear_titles(rows: list[list[str]], lines: int) -> list[str]:
    """Return a note if the first row may be titles: neither of its names occurs again."""
    first, others = rows[0], rows[1:]
    later = {cell for row in others for cell in row[:2]}
    if not others or set(first[:2]) & later:
        return []
    edge = f"{quoted(first[0])} to {quoted(first[1])}"
    return [f"line {lines + 1} is read as the edge from {edge}; if it has titles, call them source and target"]
