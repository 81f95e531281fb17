"""What an installed library must have that it does not promise, and the sentence for a version that has it otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from pkgutil import resolve_name
from typing import Any, NamedTuple


class Need(NamedTuple):
    """A member of a library, what would happen without it, and whether the installed version has it as it is used."""

    member: str
    otherwise: str
    there: Callable[[], bool]


def member(package: str, path: str) -> Any:
    """What a path names that begins with a module of the package. Raises ImportError or AttributeError."""
    return resolve_name(f"{package}.{path.replace('.', ':', 1)}")


def member_needed(package: str, path: str, otherwise: str) -> Need:
    """The need of what member() gives."""
    return Need(path, otherwise, lambda: member(package, path) is not None)


def takes(function: Any, *names: str) -> bool:
    """Whether the first parameters of a function have these names."""
    return tuple(signature(function).parameters)[: len(names)] == names


def lacking(library: str, needs: Iterable[Need], install: str) -> str:
    """What the library lacks first, and which version to install instead; empty if nothing."""
    for need in needs:
        try:
            there = need.there()
        except (ImportError, AttributeError, TypeError, ValueError, OSError):
            there = False
        if not there:
            return f"{library} has no {need.member} as fwtui knows it, so that {need.otherwise}; install {install}"
    return ""
