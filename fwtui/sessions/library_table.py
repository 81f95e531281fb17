"""The library as a table: its columns, order and filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.sessions.library import LibraryEntry, some

COLUMNS = ("name", "from", "date", "machine", "GPU", "runs", "kernels", "n", "best", "length", "size", "state")
RIGHT = frozenset({"runs", "best", "length", "size"})  # right-aligned
MACHINE_CELLS = 32

# by column: the sort key, and whether the greatest comes first
ORDERS: dict[str, tuple[Callable[[LibraryEntry], Any], bool]] = {
    "date": (lambda entry: (entry.created, entry.name), True),
    "name": (lambda entry: entry.name.lower(), False),
    "kernels": (lambda entry: (not entry.kernels, entry.kernels), False),
    "n": (lambda entry: max(entry.sizes, default=0), True),
    "best": (lambda entry: entry.best_rate or 0.0, True),
    "length": (lambda entry: entry.condition.duration, True),
    "state": (lambda entry: (entry.complete, entry.state), False),
}


def cells(entry: LibraryEntry) -> dict[str, str]:
    """A session's row, safe to show; empty cells for what is not known."""
    played = bool(entry.header and entry.runs)
    return {
        "name": entry.name,
        "from": entry.origin,
        "date": entry.created[:10],
        "machine": shortened(entry.machine, MACHINE_CELLS),
        "GPU": entry.gpu,
        "runs": str(entry.runs) if entry.runs else "",
        "kernels": some(entry.kernels, 3),
        "n": _sizes(entry.sizes),
        "best": units.rate(entry.best_rate) if entry.best_rate else "",
        "length": units.clock(entry.condition.duration) if played else "",
        "size": units.memory(entry.size),
        "state": entry.state,
    }


def ordered(entries: Iterable[LibraryEntry], by: str) -> list[LibraryEntry]:
    """Sorted by one of ORDERS; equal entries stay newest first."""
    key, greatest_first = ORDERS[by]
    newest_first = sorted(entries, key=ORDERS["date"][0], reverse=True)
    return sorted(newest_first, key=key, reverse=greatest_first)


def matching(entries: Iterable[LibraryEntry], words: str) -> list[LibraryEntry]:
    """The entries that contain all of the words, in name, title, machine, GPU, kernels, sizes, date or state."""
    wanted = words.lower().split()
    return [entry for entry in entries if all(word in _all_words(entry) for word in wanted)]


def _all_words(entry: LibraryEntry) -> str:
    sizes = " ".join(map(str, entry.sizes))
    known = (entry.name, entry.title, entry.origin, entry.created, entry.machine, entry.gpu, *entry.kernels, sizes, entry.state)
    return " ".join(known).lower()


def _sizes(sizes: Sequence[int]) -> str:
    """One size, or the least and the greatest in the syntax of a sweep: 512..32768."""
    least, most = min(sizes, default=0), max(sizes, default=0)
    return (str(most) if least == most else f"{least}..{most}") if most else ""
