"""A sequence that grows by one at a time and never changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

T = TypeVar("T")


class History(Sequence[T]):
    """Immutable; what it grew from and what it grows into share one list, so that growing costs nothing."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T] | None = None, length: int = 0) -> None:
        self._items = [] if items is None else items
        self._length = length

    def followed_by(self, item: T) -> History[T]:
        """This and one more."""
        items = self._items
        if self._length < len(items) and items[self._length] is not item:
            items = items[: self._length]  # it has grown in another way before
        if self._length == len(items):
            items.append(item)
        return History(items, self._length + 1)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        places = range(self._length)[place]
        return self._items[places] if isinstance(places, int) else [self._items[i] for i in places]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and list(self) == list(other)
