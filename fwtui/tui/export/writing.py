"""A film in the form that a file's name asks for, and no larger than such a file may be."""

from __future__ import annotations

from importlib import import_module

from fwtui.tui.export import KINDS
from fwtui.tui.export.film import Film


def written(film: Film, suffix: str) -> tuple[bytes, Film]:
    """The file's content and the film that is in it: frames are left out until it is small enough, or nothing more can be."""
    kind = KINDS[suffix]
    writer = getattr(import_module(f"fwtui.tui.export.{kind.module}"), kind.module)
    while True:
        content = writer(film).encode()
        if len(content) <= kind.most or len(film.frames) <= 2:
            return content, film
        film = film.thinned()
