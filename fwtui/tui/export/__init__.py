"""A replay as a film: its screens in sequence, in files that play without fwtui."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fwtui.tui.export.film import Film


class ExportKind(NamedTuple):
    """A file format of films; the function that writes it has the name of its module."""

    module: str
    title: str
    rate: float  # default frames per second
    most: int  # maximum bytes; a larger film loses frames


MEGABYTE = 10**6
KINDS = {
    ".html": ExportKind("page", "a web page", 5, 2 * MEGABYTE),
    ".cast": ExportKind("cast", "a recording for asciinema", 5, 16 * MEGABYTE),
    ".svg": ExportKind("animation", "an animated picture", 4, 2 * MEGABYTE),
}


def encode(film: Film, suffix: str) -> tuple[bytes, Film]:
    """Return the content of the file and its film, thinned until the content is small enough or only two frames are left."""
    kind = KINDS[suffix]
    writer = getattr(import_module(f"{__name__}.{kind.module}"), kind.module)
    while len(content := writer(film).encode()) > kind.most and len(film.frames) > 2:
        film = film.thinned()
    return content, film
