"""Graph formats: a row of `FORMATS` and a module for each."""

from __future__ import annotations

import re
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise

PACKED = (".gz", ".bz2", ".xz")
_DECIMAL_COMMA = re.compile(rb"(?<=\d),(?=\d+\s*$)")
_SEPARATORS = re.compile(rb"[,;|\t]")


class Format(NamedTuple):
    """A graph format. Its module has `read(source: GraphFile) -> GivenGraph`, `write(graph, file, suffix) -> None`, or both."""

    module: str
    title: str
    suffixes: tuple[str, ...]
    begins: bytes = b""  # a regular expression of the beginning of its files, if that identifies the format
    reads: bool = True
    writes: bool = True
    arrays: bool = False  # arrays, which may take half of the free memory; else text, with a smaller limit
    whole: bool = False  # real weights cannot be written
    max_vertices: int = 0  # most vertices that can be written; 0: any number
    written: str = ""  # the title in lists of output formats, if different

    def __str__(self) -> str:
        return f"{self.title} {' '.join(self.suffixes)}"

    def load(self) -> Any:
        """Return the module."""
        return import_module(f"{__name__}.{self.module}")


FORMATS = (
    Format("dimacs", "DIMACS", (".gr",), rb"(c[^\n]*\n|\n)*p sp\s", whole=True),
    Format("matrix_market", "Matrix Market", (".mtx",), rb"%%?MatrixMarket"),
    Format("table", "edge list", (".txt", ".edges", ".el", ".snap", ".csv", ".tsv")),
    Format("npy", "NumPy", (".npy",), rb"\x93NUMPY", arrays=True),
    Format("binary", "int32 edges", (".bin", ".in"), arrays=True, whole=True),
    Format("npz", "NumPy", (".npz",), rb"PK\x03\x04", arrays=True, written="NumPy: weights, no_edge"),
    Format("parquet", "Parquet", (".parquet",), rb"PAR1", writes=False, arrays=True),
    Format("graphml", "GraphML", (".graphml",), rb"\s*<", writes=False),
    Format("graphviz", "Graphviz", (".dot",), reads=False, max_vertices=64),  # larger pictures are unreadable
)


def read_suffixes() -> dict[str, Format]:
    return {suffix: form for form in FORMATS if form.reads for suffix in form.suffixes}


def written_suffixes() -> dict[str, Format]:
    return {suffix: form for form in FORMATS if form.writes for suffix in form.suffixes}


def read_help() -> str:
    """Return the list of readable formats, for help texts."""
    return f"{', '.join(str(form) for form in FORMATS if form.reads)}; also with {', '.join(PACKED[:-1])} or {PACKED[-1]}"


def written_help() -> str:
    """Return the list of output suffixes, for help texts."""
    *first, last = (f"{suffix} ({form.written or form.title})" for suffix, form in written_suffixes().items())
    return f"ends in {', '.join(first)} or {last}"


def suffix_of(path: str) -> str:
    """Return the suffix of the format, without that of the compression. Raises Refused for an unknown one."""
    whole = Path(path)
    suffix = (Path(whole.stem) if whole.suffix.lower() in PACKED else whole).suffix.lower()
    if suffix not in read_suffixes():
        name, suffixes = quoted(whole.name or path), ", ".join(read_suffixes())
        raise Refused(f"{name} ends in none of {suffixes} (each also with {', '.join(PACKED)}); rename or convert it")
    return suffix


def suffix_in(begin: bytes) -> str:
    """Return the suffix of the format of data with that beginning: a table or an edge list if no `begins` matches."""
    for form in FORMATS:
        if form.begins and re.match(form.begins, begin, re.IGNORECASE):
            return form.suffixes[0]
    first = next((line for line in begin.splitlines() if line.strip() and not line.startswith((b"#", b"%"))), b"")
    return ".csv" if _SEPARATORS.search(_DECIMAL_COMMA.sub(b"", first)) else ".txt"


def written_as(path: str | PathLike[str]) -> Format:
    """Return the format in which files of that name are written. Raises Refused if there is none."""
    form = written_suffixes().get(Path(path).suffix.lower())
    if form is None:
        raise Refused(f"{sanitise(Path(path).name)!r} ends in none of {', '.join(written_suffixes())}; choose one of them")
    return form
