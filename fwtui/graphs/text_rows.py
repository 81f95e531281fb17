"""The tokenizer of all text formats: the rows of a file by the format's description, in bulk.

NumPy parses rows of numbers, the csv module rows with names. Only a chunk with a mistake is read line by line, to find the line.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.common.units import counted
from fwtui.graphs.adjacency import ArcCollector, Arcs
from fwtui.graphs.columns import WeightChoice
from fwtui.graphs.graph_limits import GraphLimits

MAX_WHOLE = 2**53 - 1  # float64 is exact for integers up to this
BLANKS = " \t\r"  # around a field; other spaces are part of a name
COMMENTS = ("# ", "% ", "##", "%%", "// ")  # beginnings of comments between the rows of a table
_END_OF_FILE = b"\x1a"  # DOS ends text files with it
_NEITHER = re.compile(r"[+0]\d")  # prefixes of numbers that may be names: 007 and 7 may be two vertices
_FORTRAN = str.maketrans("dD", "ee")  # exponents such as 1.5D+03


class GraphFile(NamedTuple):
    """The input of a format's reader."""

    file: io.BufferedReader
    name: str  # safe to show
    size: int  # bytes; an upper bound if compressed
    most: int  # bytes that it may have when unpacked
    suffix: str
    limits: GraphLimits
    weight: WeightChoice = WeightChoice()
    no_edge: int | float | None = None  # a weight that means no edge in this file, in addition to +inf and NaN

    def header(self, comment: str, first: int = 1) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the fields of each line that is neither empty nor a comment."""
        # a very long line comes in pieces
        for number, line in enumerate(iter(partial(self.file.readline, self.limits.chunk), b""), first):
            fields = line.decode("latin1").split()
            if fields and not fields[0].startswith(comment):
                yield number, fields

    def chunks(self, line: int = 1, quotes: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the rest of the file in whole lines, each piece with the number of its first line.

        With `quotes` a line break between quotes does not end a line. Raises Refused for a line that is too long.
        """
        size = self.limits.chunk
        while chunk := self.file.read(size):
            chunk += (rest := self.file.readline(size))
            while quotes and chunk.count(b'"') % 2 and len(chunk) < 3 * size and (more := self.file.readline(size)):
                chunk += more
            if len(rest) >= size:
                raise Refused(f"{self.name} has a line of more than {size:,} bytes after line {line}; break it up")
            if _END_OF_FILE in chunk[-3:]:
                chunk = chunk.rstrip(_END_OF_FILE + b"\r\n") + b"\n"
            yield line, chunk
            line += chunk.count(b"\n")

    def wrong(self, line: int, why: str) -> Refused:
        return Refused(f"{self.name}, line {line}: {why}")

    def check_count(self, line: int, rows: int, what: str, least_bytes: int) -> None:
        """Raise Refused if the file is too short for that many rows of at least that many bytes."""
        if rows * least_bytes > self.size:
            message = f"{rows:,} {what} do not fit into {self.size:,} bytes"
            raise self.wrong(line, f"{message}; fetch the file again, or correct the count")

    def is_no_edge(self, weights: np.ndarray) -> np.ndarray:
        """Return the mask of weights that mean no edge in this file."""
        return np.zeros(weights.shape, bool) if self.no_edge is None else weights == self.no_edge


class Rows(NamedTuple):
    """Rows of a chunk. Vertices are integers in `ends`, or names in `sources` and `targets`."""

    weights: np.ndarray  # float64: (rows, columns of weights)
    ends: np.ndarray  # int64: (rows, columns of vertices)
    sources: Sequence[str] = ()
    targets: Sequence[str] = ()
    directions: Sequence[str] = ()


class Form(NamedTuple):
    """The description of a file's rows: their columns, separators and accepted values."""

    columns: str  # a letter for each: u source, v target, w weight or cell of a matrix, d direction, - ignored
    delimiter: str | None = None  # None: white space
    comment: str | None = None  # the first character of a comment
    tag: str = ""  # the first field of each line
    low: int = 1  # the least number of a vertex
    high: int = MAX_WHOLE
    decimal_comma: bool = False
    names: bool = False  # vertices may be names
    hashes: bool = False  # names may begin with #, which else is a comment or a mistake

    @property
    def ends(self) -> int:
        """Return the number of vertex columns."""
        return self.columns.count("u") + self.columns.count("v")

    def rows(self, chunk: bytes, line: int, source: GraphFile) -> Rows:
        """Parse a chunk of complete lines; `line` is the number of the first. Raises Refused with the first invalid line."""
        rows = self._numbers(chunk.decode("latin1"))
        if rows is not None and self._is_proper(rows, source):
            return rows
        if self.names:
            return self._named(chunk, line, source)
        raise self._complaint(fields_in(chunk, line, self, source), line, source)

    def _numbers(self, text: str) -> Rows | None:
        """Return the rows if all used columns are numeric and vertices are integers, else None."""
        if "d" in self.columns or (not self.delimiter and self.ends and not self.columns.startswith("uv")):
            return None
        if (self.names and _unlike_numbers(text, self.delimiter)) or (self.decimal_comma and "." in text):
            return None
        if self.decimal_comma:
            text = text.replace(",", ".")
        attempts = [(text, "i8")]  # integers are faster to parse
        if not self.names:  # vertices such as 1e0 and 1.0, as numpy.savetxt writes them; then exponents of Fortran
            attempts += [(text, "f8"), *([(text.translate(_FORTRAN), "f8")] if "d" in text or "D" in text else [])]
        places = [place for letter in "uvw" for place, column in enumerate(self.columns) if column == letter]
        others = len(self.columns) - self.ends if not self.delimiter else len(places) - self.ends
        tag = [("tag", "S2")] if self.tag else []
        for attempt, whole in attempts:
            with suppress(ValueError, OverflowError, DeprecationWarning), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy warns of chunks with only comments
                warnings.simplefilter("error", DeprecationWarning)  # and of 1e0 as an integer
                table = np.loadtxt(
                    io.StringIO(attempt),
                    dtype=[*tag, ("ends", whole, (self.ends,)), ("weights", "f8", (others,))],
                    comments=None if self.names and self.delimiter else self.comment,
                    delimiter=self.delimiter,
                    usecols=places if (self.delimiter and len(places) < len(self.columns)) or places != sorted(places) else None,
                    ndmin=1,
                )
                break
        else:
            return None
        if self.tag and not (table["tag"] == self.tag.encode()).all():
            return None
        if self.delimiter and text.count(self.delimiter) != len(table) * (len(self.columns) - 1):
            return None
        with np.errstate(invalid="ignore"):  # conversion changes values outside int64; the comparison detects them
            ends = table["ends"].astype(np.int64)
        if not (ends == table["ends"]).all():
            return None
        weights = table["weights"]
        if not self.delimiter and "-" in self.columns:
            weights = weights[:, [place - self.ends for place, letter in enumerate(self.columns) if letter == "w"]]
        return Rows(weights, ends)

    def _is_proper(self, rows: Rows, source: GraphFile) -> bool:
        if rows.ends.size and (rows.ends.min() < self.low or rows.ends.max() > self.high):
            return False
        weights = rows.weights[~source.is_no_edge(rows.weights)] if source.no_edge is not None else rows.weights
        if not self.ends or not weights.size:
            return True  # cells of a matrix, where infinity means no edge, are checked as a matrix
        fractional = weights[weights != np.rint(weights)][:1]
        extremes = (weights.min(), weights.max(), *fractional)  # NaN is both
        return not any(source.limits.unfit(float(weight)) for weight in extremes)

    def _named(self, chunk: bytes, line: int, source: GraphFile) -> Rows:
        """Return the rows with names as vertices. Raises Refused with the first invalid line."""
        numbered = fields_in(chunk, line, self, source)
        rows = [row for _, row in numbered]
        columns = dict[str, list[str]]()
        if {len(row) for row in rows} <= {len(self.columns)}:
            columns = {letter: [*fields] for letter, fields in zip(self.columns, zip(*rows, strict=True), strict=False)}
        sources, targets, weights, directions = (columns.get(letter, []) for letter in "uvwd")
        values = self._parsed(weights)
        if values is None or len(sources) != len(rows) or not all(sources) or not all(targets):
            raise self._complaint(numbered, line, source)
        values = values.reshape(len(rows), self.columns.count("w"))
        return Rows(values, np.empty((len(rows), 0), np.int64), sources, targets, directions)

    def _parsed(self, fields: list[str]) -> np.ndarray | None:
        """Return the fields as float64; None if one is not a number, or has a point in a file with decimal commas."""
        together = "".join(fields)
        if not together.isascii() or "_" in together or (self.decimal_comma and "." in together):
            return None
        if self.decimal_comma:
            fields = [field.replace(",", ".") for field in fields]
        try:
            return np.array(list(map(float, fields)))
        except ValueError:
            values = [number_in(field) for field in fields]
            return None if None in values else np.array(values, np.float64)

    def _complaint(self, rows: list[tuple[int, list[str]]], line: int, source: GraphFile) -> Refused:
        for number, fields in rows:
            if why := self._mistake(fields, source):
                return source.wrong(number, why)
        return Refused(f"{source.name}: the lines from {line} on are not valid; check the format")

    def _mistake(self, fields: list[str], source: GraphFile) -> str | None:
        if self.names and len(fields) != len(self.columns):
            return f"{counted(len(fields), 'field')}, but the first line has {len(self.columns)}; correct it"
        meaning = {"u": "from", "v": "to", "w": "weight", "d": "direction", "-": "ignored"}
        form = " ".join([*([self.tag] if self.tag else []), *(meaning[letter] for letter in self.columns)])
        if len(fields) != len(form.split()) or (self.tag and fields[0] != self.tag):
            form = form if len(form) < 80 else f"{len(self.columns)} numbers"
            return f"{sanitise(' '.join(fields))[:40]!r} is not of the form {form!r}; correct the line"
        for letter, field in zip(self.columns, fields[1:] if self.tag else fields, strict=True):
            if self.names and letter != "w":
                if letter in "uv" and not field:
                    return f"no {'source' if letter == 'u' else 'target'}; add it"
                continue
            if (values := self._parsed([field])) is None:
                how = " with a decimal comma, as others in the file" if self.decimal_comma else ""
                return f"{sanitise(field)[:40]!r} is not a number{how}; correct the line"
            value = float(values[0])
            if letter == "w" and self.ends and value != source.no_edge:
                if reason := source.limits.unfit(value):
                    return f"weight {sanitise(field)[:40]} {reason}"
            elif letter in "uv":
                hint = ", or name the file .csv, where vertices are names" if MAX_WHOLE == self.high < value < np.inf else ""
                if not (self.low <= value <= self.high and value == int(value)):
                    return f"vertex {sanitise(field)[:40]} is not an integer from {self.low} to {self.high:,}; correct it{hint}"
        return None


def _unlike_numbers(text: str, delimiter: str | None) -> bool:
    """Return whether some numbers may be names that parsing as numbers would change, such as 007."""
    begins = f"(?:^|{re.escape(delimiter)}|\\s)" if delimiter else r"(?:^|\s)"
    return '"' in text or re.search(begins + _NEITHER.pattern, text, re.MULTILINE) is not None


def fields_in(chunk: bytes, line: int, form: Form, source: GraphFile) -> list[tuple[int, list[str]]]:
    """Return the fields of the rows that are neither empty nor comments, and the number of each row's last line.

    Raises Refused for text that is not UTF-8, and for wrong quotes.
    """
    try:
        text = chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = line + chunk[: error.start].count(b"\n")
        raise Refused(f"{source.name}, line {bad} is not UTF-8; convert the file") from None
    if form.delimiter is None:
        lines = text.split("\n")
        if form.comment is not None and form.comment in text:
            comment = re.compile(rf"(?:^|\s){re.escape(form.comment)}")
            lines = [comment.split(text)[0] for text in lines]
        return [(number, row) for number, text in enumerate(lines, line) if (row := text.split())]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=form.delimiter, skipinitialspace=True, strict=True)
    rows = list[tuple[int, list[str]]]()
    try:
        for row in reader:
            if not any(row) or (form.comment is not None and row[0].startswith(COMMENTS)):
                continue
            if form.comment is not None and not form.hashes and row[0].startswith(("#", "%")):
                raise source.wrong(line + reader.line_num - 1, unclear_comment(",".join(row)))
            rows.append((line + reader.line_num - 1, [cell.strip(BLANKS) for cell in row]))
        return rows
    except csv.Error as error:
        raise source.wrong(line + reader.line_num - 1, f"{sanitise(str(error))}; correct the quotes") from None


def unclear_comment(text: str) -> str:
    """Explain why a line that begins with # cannot be read."""
    return f"{sanitise(text)[:40]!r} is a comment or an edge; put a space after # for comments, or titles first"


def number_in(field: str) -> float | None:
    """Parse a number; None if the field is not one. Rejects 1_000 and other digits than ASCII, which float() accepts."""
    try:
        return float(field.translate(_FORTRAN)) if field.isascii() and "_" not in field else None
    except ValueError:
        return None


def gather(
    source: GraphFile,
    form: Form,
    line: int,
    rows: int | None = None,
    arcs: Callable[[Rows, int], Arcs] | None = None,
    merge: np.ufunc = np.minimum,
) -> ArcCollector:
    """Read the arcs in the rest of the file, which declares `rows` rows. Raises Refused for invalid lines and wrong counts.

    `arcs` is called with parsed rows and the number of rows before them; by default each row is an arc. `merge` combines
    the weights of parallel arcs.
    """
    gathered, read_rows = ArcCollector(source.limits.max_unmerged, merge=merge), 0
    for at, chunk in source.chunks(line):
        parsed = form.rows(chunk, at, source)
        gathered.add(present(source, arcs(parsed, read_rows) if arcs is not None else arc_of_each(parsed, form.low)))
        read_rows += len(parsed.weights)
    if rows is not None and read_rows != rows:
        message = f"declares {rows:,} entries and holds {read_rows:,}"
        raise Refused(f"{source.name} {message}; fetch the file again, or correct the count")
    return gathered


def arc_of_each(rows: Rows, first: int = 1) -> Arcs:
    """Return an arc for each row, of weight 1 if the row has no weight."""
    weights = rows.weights[:, 0] if rows.weights.shape[1] else np.ones(len(rows.ends))
    return Arcs(rows.ends[:, 0] - first, rows.ends[:, 1] - first, weights)


def present(source: GraphFile, arcs: Arcs) -> Arcs:
    """Return the arcs without those whose weight means no edge in this file."""
    if source.no_edge is None:
        return arcs
    there = ~source.is_no_edge(arcs.weights)
    return Arcs(*(part[there] for part in arcs))


def are_counts(fields: list[str]) -> bool:
    """Return whether the fields are counts, as in a header."""
    return all(field.isdecimal() and len(field) < 16 for field in fields)
