"""The head of a text table of edges: comments, separator, titles, and their declarations about the rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

from fwtui.common.errors import Refused
from fwtui.common.text import quoted
from fwtui.common.units import counted
from fwtui.graphs.columns import Roles, ends_among, matrix_note, roles_of, weights_note
from fwtui.graphs.text_rows import BLANKS, COMMENTS, MAX_WHOLE, Form, GraphFile, number_in, unclear_comment

_SAMPLE, _SAMPLE_SIZE = 200, 1 << 16  # rows and characters that show the separator and the columns of numbers
_COMMENTS = ("#", "%", "//")
_NO = r"\s*[:=]\s*(?:no|false|0)\b"
# SNAP writes "Directed graph (each unordered pair of nodes is saved once)" above directed graphs
_UNDIRECTED = re.compile(rf"(?<!not )(?<!not an )\bundirected\b(?!{_NO})|\bdirected{_NO}", re.IGNORECASE)
_KONECT = re.compile(r"%\s*(sym|asym|bip)\b\s*(\w*)", re.IGNORECASE)
_COUNTS_EDGES = ("positive", "dynamic", "unweighted")  # KONECT's kinds of weights that are not distances
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*$", re.IGNORECASE)  # written by spreadsheets
_MIN_MATRIX = 5  # columns of numbers without titles: fewer may also be edges
_NO_NUMBER = ("", "na", "-")  # a cell of a matrix without a number


class Head(NamedTuple):
    """The declarations at the beginning of a file."""

    form: Form
    lines: int  # before the first row
    notes: tuple[str, ...] = ()
    undirected: bool = False
    bipartite: bool = False
    matrix: int = 0  # vertices of a matrix; 0: the rows are edges
    labels: Sequence[str] | None = None  # vertex names of a matrix
    counts: tuple[int, ...] = ()  # the first row, if it may be the counts of vertices and edges
    direction: str = ""  # title of the column of directions


class _Beginning:
    """The first lines of a file: its comments, and a sample of its rows."""

    def __init__(self, source: GraphFile, chunk: bytes, separator: str | None, whole: bool):
        self.source, self.separator = source, separator
        self.undirected, self.structure, self.kind = False, "", ""  # declarations in comments
        self.sign, self.declared = "#", None  # the character of comments; the separator that a line sep= declares
        self.comments = list[str]()  # a comment may contain the titles
        lines = chunk.decode("utf-8", "replace").split("\n")
        self.lines = self._read_comments(lines)  # before the first row
        sample, ended = _sampled(lines[self.lines :])
        self.ended = ended and whole
        if not sample:
            if separator is not None and (unclear := next((line for line in lines if separator in line), "")):
                raise Refused(f"{source.name}: {unclear_comment(unclear)}")
            form = "'from to weight'" if separator is None else f"source{separator}target{separator}weight"
            raise Refused(f"{source.name} has no edges; put {form} on each line")
        self.delimiter = self.declared or _delimiter(sample, separator)
        inline = re.compile(rf"\s{self.sign}")
        self.rows = [_split(line if self.delimiter else inline.split(line)[0], self.delimiter) for line in sample]
        self.titles = self._titles()
        self.titled = self.titles == self.rows[0]
        if self.titled:
            self.rows, self.lines = self.rows[1:], self.lines + 1
        if not self.rows:
            raise Refused(f"{source.name} has column titles and no edges; add some")
        comma = self.delimiter != "," and any(number_in(cell) is None and _is_number(cell) for row in self.rows for cell in row)
        self.base = Form("", self.delimiter, self.sign, decimal_comma=comma, names=separator is not None)

    def _read_comments(self, lines: list[str]) -> int:
        """Return the number of lines before the first row."""
        for number, line in enumerate(lines):
            text = line.strip()
            if match := _SEPARATOR_LINE.match(text):
                self.declared = match[1]
            elif text.startswith(_COMMENTS):
                self.sign = text[0]
                self.comments.append(text.lstrip("#%/ \t"))
                self.undirected = self.undirected or bool(_UNDIRECTED.search(text))
                if match := _KONECT.match(text):
                    self.structure, self.kind = match[1].lower(), match[2].lower()
            elif text:
                return number
        return len(lines)

    def _titles(self) -> list[str]:
        """Return the titles of the columns: the first row, or a comment that names the ends; [] if there are none."""
        first, others = self.rows[0], self.rows[1:]
        if not any(map(_is_number, first)):
            width = min(map(len, self.rows))
            over_numbers = any(all(_is_number(row[place]) for row in others) for place in range(width))
            if ends_among(first) is not None or (others and over_numbers):
                return first
        found = (_split(comment, self.delimiter) for comment in self.comments)
        return next((titles for titles in found if len(titles) == len(first) and ends_among(titles)), [])

    def matrix(self) -> Head | None:
        """Return the head of a square matrix of numbers, with or without names of its rows and columns; None for edges.

        Raises Refused if the rows may be either.
        """
        first, body = (self.titles, self.rows) if self.titled else (self.rows[0], self.rows[1:])
        columns = len(first)
        named = (self.titled or not first[0]) and columns > 2 and [row[0] for row in body] == first[1 : 1 + len(body)]
        numbered = self.ended and len(body) == columns > 2 and first in [[*map(str, range(low, low + columns))] for low in (0, 1)]
        labels = first[named:] if self.titled or named or numbered else None
        cells = [row[named:] for row in (self.rows if labels is None else body)]
        size = columns - named
        if (self.titles and ends_among(self.titles) and not named) or self.structure or any(len(row) != size for row in cells):
            return None
        if not all(_is_number(cell) or cell.lower() in _NO_NUMBER for row in cells for cell in row):
            return None
        if self.ended and len(cells) != size and (named or size < _MIN_MATRIX):
            return None
        if not named and size < _MIN_MATRIX and (not self.ended or not self._is_small_matrix(cells)):
            return None
        self.source.weight.check_unused(self.source.name)
        form = self.base._replace(columns="-" * named + "w" * size, names=False)
        skipped = self.lines + (labels is not None and not self.titled)
        return Head(form, skipped, (matrix_note(size),), matrix=size, labels=labels)

    def _is_small_matrix(self, cells: list[list[str]]) -> bool:
        """Return whether a small square of numbers is a matrix, not edges. Raises Refused if it could also be edges."""
        n = len(cells)
        values = [[number_in(cell.replace(",", ".")) for cell in row] for row in cells]
        diagonal = {values[place][place] for place in range(n)}
        symmetric = all(values[i][j] == values[j][i] for i in range(n) for j in range(n))
        whole = all(value is not None and value >= 0 and value.is_integer() for row in values for value in row[:2])
        if n < 2 or len(diagonal) > 1 or (n < 4 and diagonal != {0}) or values == [[0, 1], [1, 0]]:
            return False
        if self.separator is None and (n < 3 or (n < 4 and not (whole and symmetric))):
            return False  # a .txt with two or three columns is an edge list
        if n > 3 or not whole or (n > 2 and symmetric and self.separator):
            return True  # edges have at most three columns, and integer vertices
        titles = "source, target and weight" if n > 2 else "source and target"
        way = f"begin with the titles {titles} for edges, or save the matrix as .npy"
        raise Refused(f"{self.source.name} may be a matrix of {n} x {n} weights or a list of {n} edges; {way}")

    def edges(self) -> Head:
        """Return the head of rows that are an edge each."""
        counts = () if self.titles else self._counts()
        if counts:
            self.rows, self.lines = self.rows[1:], self.lines + 1
        roles = self._roles()
        letters = ["-"] * len(self.titles or self.rows[0])
        for place, letter in zip(roles[:4], "uvwd", strict=True):
            if place is not None:
                letters[place] = letter
        notes = [*roles.notes]
        if self.kind in _COUNTS_EDGES and roles.weight is not None:
            notes.append(f"KONECT calls column 3 {self.kind}, so it is probably a count of edges, not a distance")
        bipartite = self.structure == "bip"
        if bipartite:
            notes.append("bipartite: source 1 is the vertex 'left 1' and target 1 is 'right 1'; edges lead both ways")
        begins = [number_in(cell) for place in roles[:2] for cell in self.rows[0][place : place + 1]]  # short rows: refused later
        numbered = all(value is not None and abs(value) <= MAX_WHOLE for value in begins)  # any later edge must be, too
        names = not bipartite and (self.base.names or self.titled or not numbered)
        weight = roles.weight
        weights = [row[weight] for row in self.rows if weight is not None and weight < len(row)]
        form = self.base._replace(
            columns="".join(letters),
            names=names,
            hashes=self.titled,
            low=-MAX_WHOLE if self.separator else 0,
            decimal_comma=self.base.decimal_comma and any("," in cell for cell in weights),
        )
        first, others = self.rows[0], {cell for row in self.rows[1:] for cell in row[:2]}
        if not self.titles and names and not counts and others and not any(map(_is_number, first)) and not others & {*first[:2]}:
            edge = f"{quoted(first[0])} to {quoted(first[1])}"
            notes.append(f"line {self.lines + 1} is read as the edge from {edge}; if it has titles, call them source and target")
        if any("bipartite" in comment.lower() for comment in self.comments) and not bipartite:
            notes.append("its comments mention a bipartite graph, but equal names are one vertex here")
        undirected = self.undirected or self.structure in ("sym", "bip")
        direction = self.titles[roles.direction] if roles.direction is not None else ""
        return Head(form, self.lines, tuple(notes), undirected, bipartite, counts=counts, direction=direction)

    def _roles(self) -> Roles:
        rows, titles, source = self.rows, self.titles, self.source
        columns = len(titles or rows[0])
        if columns < 2 or (columns > 3 and not titles and not self.structure):
            what = f"has {counted(columns, 'column')} without titles; keep only source, target and weight"
            raise Refused(f"{source.name}, line {self.lines + 1} {what}, or add a first line with titles")
        if not titles:
            source.weight.check_unused(source.name)
            weight = 2 if columns > 2 and source.weight.name is not None else None
            ignored = [f"ignored: column {place + 1}" for place in range(2, columns) if place != weight]
            return Roles(0, 1, weight, None, ("weights from column 3" if weight else weights_note(None), *ignored))

        def sample(place: int) -> list[str]:
            return [row[place].replace(",", ".") for row in rows if len(row) == columns and row[place]]

        ends = ends_among(titles)
        roles = roles_of(titles, ends or (0, 1), sample, source.weight, source.name)
        if ends is not None:
            return roles
        note = f"source and target are the first two columns, {quoted(titles[0])} and {quoted(titles[1])}"
        return roles._replace(notes=(*roles.notes, note))

    def _counts(self) -> tuple[int, ...]:
        """Return the first row if it may be the counts of vertices and edges, else (); the end of the file decides."""
        first, others = self.rows[0], self.rows[1:]
        if not 2 <= len(first) <= 3 or not others or not all(cell.isdecimal() and len(cell) < 16 for cell in first):
            return ()
        counts, ends, widths = tuple(map(int, first)), [cell for row in others for cell in row[:2]], {len(row) for row in others}
        whole, found, vertices, edges = all(map(str.isdecimal, ends)), len(set(ends)), *counts[:2]
        if not (whole or not any(map(_is_number, ends))) or widths not in ({2}, {3}):
            return ()
        if not self.ended:
            return counts if len(counts) == 2 and edges > len(others) else ()
        numbers = {*map(int, ends)} if whole else {found}
        most = max(numbers) + (0 in numbers)  # the least number of vertices
        if len(counts) == 2 and edges == len(others) and (vertices == found or vertices >= most):
            return counts
        # other orders: edges, vertices; vertices, edges, start; rows, columns, entries
        likely = {(vertices, edges), (edges, vertices) if len(counts) == 2 else (min(vertices, edges), counts[2])}
        fits = any(size >= most and number == len(others) for size, number in likely)
        return counts if whole and widths == {len(counts)} and fits else ()


def read_head(source: GraphFile, chunk: bytes, separator: str | None, whole: bool) -> Head:
    """Return the declarations of a file's first chunk, or of the whole file.

    `separator` is that of the suffix, None for white space. Raises Refused if there is no row, or the meaning of
    the columns is not clear.
    """
    beginning = _Beginning(source, chunk, separator, whole)
    return beginning.matrix() or beginning.edges()


def _sampled(lines: list[str]) -> tuple[list[str], bool]:
    """Return the first lines that are neither empty nor comments, and whether the file has no others."""
    sample, size = list[str](), 0
    for line in lines:
        if line.strip() and not line.startswith(COMMENTS):
            if len(sample) == _SAMPLE or (size > _SAMPLE_SIZE and len(sample) > 2):
                return sample, False
            sample.append(line)
            size += len(line)
    return sample, True


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    try:
        row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # a carriage return inside the line
        row = [line]
    return [cell.strip(BLANKS) for cell in row]


def _delimiter(sample: list[str], separator: str | None) -> str | None:
    """Return the separator that splits all rows into the same, largest number of fields; None for white space."""
    best, most = separator, 1
    others = {",": (";", "\t", "|"), None: (";", ",", "\t", "|")}  # names in tables may have spaces
    for delimiter in (separator, *others.get(separator, ())):
        rows = [_split(line, delimiter) for line in sample]
        counts = {len(row) for row in rows}
        dangling = delimiter is None and any(cell.endswith((",", ";")) for row in rows for cell in row[:-1])
        if len(counts) == 1 and not dangling and (fields := counts.pop()) > most:
            best, most = delimiter, fields
    return best


def _is_number(cell: str) -> bool:
    return number_in(cell) is not None or number_in(cell.replace(",", ".", 1)) is not None
