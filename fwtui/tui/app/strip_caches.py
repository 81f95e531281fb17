"""Halves the memory of Textual's strips: each has seven caches, and those that stay empty have no dict of their own here."""

from __future__ import annotations

from typing import Any

from textual import strip
from textual.cache import FIFOCache

_NOTHING: dict[Any, Any] = {}  # of all empty caches


class LateCache(FIFOCache[Any, Any]):
    """Has its own dict from the first value on."""

    __slots__ = ()

    def __init__(self, maxsize: int) -> None:
        self._maxsize = maxsize
        self._cache = _NOTHING
        self.hits = self.misses = 0

    def set(self, key: Any, value: Any) -> None:
        if self._cache is _NOTHING:
            self._cache = {}
        super().set(key, value)

    __setitem__ = set


def make_light() -> None:
    """For all strips from now on."""
    strip.FIFOCache = LateCache  # type: ignore[misc]
