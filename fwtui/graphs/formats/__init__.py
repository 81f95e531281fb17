"""Graph formats: one module each, and nothing else has to know of it.

A module says in constants of one line, read without importing it:
    TITLE       what the format is called
    WRITTEN     the same in lists of what is written, where more is to be said
    SUFFIXES    how its files end
    ORDER       its place in lists
    ARRAYS      True: arrays, which may take half of the free memory; else it is text, which is limited
    WHOLE       True: real weights cannot be written
    ARC_BYTES   what an arc takes at least when written, beside its two vertices; 0: nothing is said before it is written
    MOST_DRAWN  vertices that can be written; 0: any number
and offers `read(source: Source) -> Adjacency | Unseen`, `write(graph: GraphInput, file) -> None`, or both.
"""

from __future__ import annotations

from ast import literal_eval
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from fwtui.common.errors import Refused
from fwtui.common.outline import outlines
from fwtui.common.text import clean, shown

PACKED = (".gz", ".bz2", ".xz")


class Format(NamedTuple):
    """What a module of this folder says; see there."""

    name: str
    title: str
    written: str
    suffixes: tuple[str, ...]
    reads: bool
    writes: bool
    arrays: bool
    whole: bool
    arc_bytes: int
    most_drawn: int

    def load(self) -> Any:
        """The module."""
        return import_module(f"{__name__}.{self.name}")

    def __str__(self) -> str:
        return f"{self.title} {' '.join(self.suffixes)}"


@cache
def formats() -> tuple[Format, ...]:
    """Every format, in the order of lists."""
    return tuple(
        Format(
            o.name,
            literal_eval(o.constant("TITLE")),
            literal_eval(o.constant("WRITTEN") or o.constant("TITLE")),
            literal_eval(o.constant("SUFFIXES")),
            o.defines("read"),
            o.defines("write"),
            o.constant("ARRAYS") == "True",
            o.constant("WHOLE") == "True",
            int(o.constant("ARC_BYTES") or 0),
            int(o.constant("MOST_DRAWN") or 0),
        )
        for o in outlines(__path__)
    )


def read_suffixes() -> dict[str, Format]:
    return {suffix: form for form in formats() if form.reads for suffix in form.suffixes}


def written_suffixes() -> dict[str, Format]:
    return {suffix: form for form in formats() if form.writes for suffix in form.suffixes}


def read_help() -> str:
    """Which files are read, for help texts."""
    return f"{', '.join(str(form) for form in formats() if form.reads)}; also with {', '.join(PACKED[:-1])} or {PACKED[-1]}"


def written_help() -> str:
    """How the name of a file that is written ends, for help texts."""
    *first, last = (f"{suffix} ({form.written})" for suffix, form in written_suffixes().items())
    return f"ends in {', '.join(first)} or {last}"


def suffix_of(path: str) -> str:
    """The suffix that says what is in the file, without the one that says how it is packed. Raises Refused for an unknown one."""
    whole = Path(path)
    suffix = (Path(whole.stem) if whole.suffix.lower() in PACKED else whole).suffix.lower()
    if suffix not in read_suffixes():
        name, known = shown(whole.name), ", ".join(read_suffixes())
        raise Refused(f"{name} ends in none of {known} (or those with {', '.join(PACKED)}); rename or convert it")
    return suffix


def written_as(path: str | PathLike[str]) -> Format:
    """The format in which files of that name are written. Raises Refused where there is none."""
    form = written_suffixes().get(Path(path).suffix.lower())
    if form is None:
        raise Refused(f"{clean(Path(path).name)!r} ends in none of {', '.join(written_suffixes())}; choose one of them")
    return form
