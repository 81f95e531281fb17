"""A replay as a film: its screens one after the other, in files that play without fwtui."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fwtui.tui.export.film import Film


class ExportKind(NamedTuple):
    """A kind of file that holds a film; its writer is the function of that name in the module of that name."""

    module: str
    title: str
    rate: float  # frames a second, where nothing else is asked for
    most: int  # bytes: of a larger one frames are left out


MEGABYTE = 10**6
KINDS = {
    ".html": ExportKind("page", "a web page", 5, 2 * MEGABYTE),
    ".cast": ExportKind("cast", "a recording for asciinema", 5, 16 * MEGABYTE),
    ".svg": ExportKind("animation", "an animated picture", 4, 2 * MEGABYTE),
}


def encode(film: Film, suffix: str) -> tuple[bytes, Film]:
    """The file's content and the film that is in it: frames are left out until it is small enough, or nothing more can be."""
    kind = KINDS[suffix]
    writer = getattr(import_module(f"{__name__}.{kind.module}"), kind.module)
    while len(content := writer(film).encode()) > kind.most and len(film.frames) > 2:
        film = film.thinned()
    return content, film
