"""The runs of a session, in versions that share what they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from itertools import chain, islice
from typing import Any

from fwtui.stream.run import Run, first_runs

_BLOCK = 64  # runs that a new version copies


class Runs(Mapping[int, Run]):
    """Runs by their id, in the order in which they began. It never changes: followed_by() makes the next version."""

    __slots__ = ("_firsts", "_length", "_places", "blocks")

    def __init__(self, blocks: tuple[tuple[Run, ...], ...] = (), places: dict[int, int] | None = None, length: int = 0) -> None:
        self.blocks = blocks
        self._places = {} if places is None else places  # by id; shared, so those from the length on are of other versions
        self._length = length
        self._firsts: Mapping[tuple[object, ...], Run] | None = None

    @property
    def firsts(self) -> Mapping[tuple[object, ...], Run]:
        """The first verified run of each graph, by graph; found once for each version."""
        if self._firsts is None:
            self._firsts = first_runs(self.in_order())
        return self._firsts

    def followed_by(self, *runs: Run) -> Runs:
        """These and others, each in the place of the one with its id."""
        last = self
        for run in runs:
            last = last._with(run)
        return last

    def _with(self, run: Run) -> Runs:
        places, length = self._places, self._length
        place = places.get(run.id, length)
        if place >= length:
            if place > length or (len(places) > length and run.id not in places):  # another version has grown from it
                places = dict(islice(places.items(), length))
            place = places[run.id] = length
            length += 1
        block, at = divmod(place, _BLOCK)
        held = self.blocks[block] if block < len(self.blocks) else ()
        changed = (*held[:at], run, *held[at + 1 :])
        return Runs((*self.blocks[:block], changed, *self.blocks[block + 1 :]), places, length)

    def __getitem__(self, number: int) -> Run:
        place = self._places[number]
        if place >= self._length:
            raise KeyError(number)
        return self.blocks[place // _BLOCK][place % _BLOCK]

    def __iter__(self) -> Iterator[int]:
        return (run.id for run in self.in_order())  # another version may add to the places meanwhile

    def __len__(self) -> int:
        return self._length

    def values(self) -> ValuesView[Run]:
        return _Values(self)

    def in_order(self) -> Iterator[Run]:
        return chain.from_iterable(self.blocks)


class _Values(ValuesView[Run]):
    """Without looking each one up."""

    _mapping: Runs

    def __iter__(self) -> Iterator[Run]:
        return self._mapping.in_order()

    def __reversed__(self) -> Iterator[Any]:
        return reversed([*self])
