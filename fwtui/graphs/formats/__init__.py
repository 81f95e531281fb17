"""Graph formats: one module each, found by its constants.

A module declares literal constants, read without importing it:
    TITLE       name of the format
    WRITTEN     the title in lists of output formats, if different
    SUFFIXES    its file suffixes
    ORDER       its place in lists
    BEGINS      a regular expression of the beginning of its files, if that identifies the format
    ARRAYS      True: arrays, which may take half of the free memory; else text, with a smaller limit
    WHOLE       True: real weights cannot be written
    MAX_DRAWN  most vertices that can be written; 0: any number
and offers `read(source: Source) -> GivenGraph`, `write(graph: GraphInput, file, suffix: str) -> None`, or both.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from fwtui.common.errors import Refused
from fwtui.common.module_header import Outline, outlines
from fwtui.common.text import quoted, sanitise

PACKED = (".gz", ".bz2", ".xz")
_DECIMAL_COMMA = re.compile(rb"(?<=\d),(?=\d+\s*$)")
_SEPARATORS = re.compile(rb"[,;|\t]")


class Format(Outline):
    """The constants of a module of this folder."""

    def __init__(self, name: str, path: str):
        super().__init__(name, path)
        self.title, self.suffixes = self.constant("TITLE", str), self.constant("SUFFIXES", tuple)
        self.reads, self.writes = self.defines("read"), self.defines("write")

    def __str__(self) -> str:
        return f"{self.title} {' '.join(self.suffixes)}"

    def number(self, constant: str) -> int:
        """Return a constant as a number; 0 if it is not set."""
        return self.constant(constant, int, 0)

    def load(self) -> Any:
        """Return the module."""
        return import_module(f"{__name__}.{self.name}")


@cache
def formats() -> list[Format]:
    """Return all formats in list order."""
    return outlines(__path__, Format)


def read_suffixes() -> dict[str, Format]:
    return {suffix: form for form in formats() if form.reads for suffix in form.suffixes}


def written_suffixes() -> dict[str, Format]:
    return {suffix: form for form in formats() if form.writes for suffix in form.suffixes}


def read_help() -> str:
    """Return the list of readable formats, for help texts."""
    return f"{', '.join(str(form) for form in formats() if form.reads)}; also with {', '.join(PACKED[:-1])} or {PACKED[-1]}"


def written_help() -> str:
    """Return the list of output suffixes, for help texts."""
    *first, last = (f"{suffix} ({form.constant('WRITTEN', str, form.title)})" for suffix, form in written_suffixes().items())
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
    """Return the suffix of the format of data with that beginning: a table or an edge list if no BEGINS matches."""
    for form in formats():
        pattern = form.constant("BEGINS", bytes, b"")
        if pattern and re.match(pattern, begin, re.IGNORECASE):
            return form.suffixes[0]
    first = next((line for line in begin.splitlines() if line.strip() and not line.startswith((b"#", b"%"))), b"")
    return ".csv" if _SEPARATORS.search(_DECIMAL_COMMA.sub(b"", first)) else ".txt"


def written_as(path: str | PathLike[str]) -> Format:
    """Return the format in which files of that name are written. Raises Refused if there is none."""
    form = written_suffixes().get(Path(path).suffix.lower())
    if form is None:
        raise Refused(f"{sanitise(Path(path).name)!r} ends in none of {', '.join(written_suffixes())}; choose one of them")
    return form
