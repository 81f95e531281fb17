"""Undocumented members of libraries that the program needs, and the error for a version without them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from pkgutil import resolve_name
from typing import Any, NamedTuple


class Need(NamedTuple):
    """A member of a library, the consequence if it is missing, and the test for it in the installed version."""

    member: str
    otherwise: str
    there: Callable[[], bool]


def member(package: str, path: str) -> Any:
    """Return the object at a path that begins with a module of the package. Raises ImportError or AttributeError."""
    return resolve_name(f"{package}.{path.replace('.', ':', 1)}")


def member_needed(package: str, path: str, otherwise: str) -> Need:
    """Return the need for a member that member() returns."""
    return Need(path, otherwise, lambda: member(package, path) is not None)


def takes(function: Any, *names: str) -> bool:
    """Return True if the first parameters of a function have these names."""
    return tuple(signature(function).parameters)[: len(names)] == names


def lacking(library: str, needs: Iterable[Need], install: str) -> str:
    """Return the first missing member and the version to install; empty if there is none."""
    for need in needs:
        try:
            there = need.there()
        except (ImportError, AttributeError, TypeError, ValueError, OSError):
            there = False
        if not there:
            return f"{library} has no {need.member} as fwtui knows it, so that {need.otherwise}; install {install}"
    return ""
