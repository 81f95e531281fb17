"""The mapping of vertex names in a file or table to numbers 0 .. n - 1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

_DECIMAL = re.compile(r"-?\d{1,15}\.\d*(?:[eE][+-]?\d\d?)?|-?\d{1,15},(?:0|\d*[1-9]\d*)")  # columns of floats; not 1,000


def number_whole(ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each end among the distinct values, and these values in ascending order."""
    low, high = int(ends.min()), int(ends.max())
    if high - low < 2 * ends.size:  # a table over the range takes less time and memory than sorting
        occurs = np.zeros(high - low + 1, bool)
        occurs[ends - low] = True
        return (np.cumsum(occurs) - 1)[ends - low], np.flatnonzero(occurs) + low
    values, places = np.unique(ends, return_inverse=True)
    return places.reshape(ends.shape), values


class NamedVertices:
    """Vertices by their names, numbered in order of first appearance."""

    def __init__(self, names: Iterable[str] = ()):
        self._number: dict[str, int] = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._number)

    def add(self, sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
        """Return the numbers of these ends: (edges, 2)."""
        number, both = self._number, [""] * (2 * len(sources))
        both[::2], both[1::2] = sources, targets
        return np.fromiter((number.setdefault(name, len(number)) for name in both), np.int64, len(both)).reshape(-1, 2)

    def merged(self) -> tuple[np.ndarray, list[str]]:
        """Return a new number for each vertex, and the names: 1.0 is 1, unless some name is a number with a fraction."""
        names = list(self._number)
        decimals = {name: float(name.replace(",", ".")) for name in names if _DECIMAL.fullmatch(name)}
        if not decimals or not all(value.is_integer() for value in decimals.values()):
            return np.arange(len(names)), names
        number: dict[str, int] = {}
        plain = {name: f"{value:.0f}" for name, value in decimals.items()}
        places = [number.setdefault(plain.get(name, name), len(number)) for name in names]
        return np.array(places, np.int64), list(number)
