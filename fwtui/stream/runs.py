"""The runs of a session, in versions that share what they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from itertools import chain, islice
from operator import is_not

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
        places, length, blocks = self._places, self._length, [*self.blocks]
        changed: dict[int, list[Run]] = {}  # blocks
        for run in runs:
            place = places.get(run.id, length)
            if place >= length:
                if place > length or (len(places) > length and run.id not in places):  # another version has grown from it
                    places = dict(islice(places.items(), length))
                place = places[run.id] = length
                length += 1
            block, at = divmod(place, _BLOCK)
            if block not in changed:
                changed[block] = [*blocks[block]] if block < len(blocks) else []
            changed[block][at : at + 1] = [run]
        for block, held in changed.items():
            blocks[block : block + 1] = [tuple(held)]
        return Runs(tuple(blocks), places, length)

    def apart(self, other: Runs) -> int:
        """About how many of their runs a version holds for itself beside another one."""
        return _BLOCK * sum(map(is_not, self.blocks, other.blocks))

    def __getitem__(self, number: int) -> Run:
        place = self._places[number]
        if place >= self._length:
            raise KeyError(number)
        return self.blocks[place // _BLOCK][place % _BLOCK]

    def __iter__(self) -> Iterator[int]:
        return (run.id for run in self.in_order())  # another version may add to the places meanwhile

    def __len__(self) -> int:
        return self._length

    def values(self) -> _Values:
        return _Values(self)

    def in_order(self) -> Iterator[Run]:
        return chain.from_iterable(self.blocks)


class _Values(ValuesView[Run]):
    """Without looking each one up."""

    _mapping: Runs

    def __iter__(self) -> Iterator[Run]:
        return self._mapping.in_order()

    def __reversed__(self) -> Iterator[Run]:
        return (run for block in reversed(self._mapping.blocks) for run in reversed(block))
