"""The rows of the table of actions that a screen has, as they are now: their keys, and what can be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from textual.actions import parse
from textual.binding import Binding
from textual.screen import Screen

from fwtui.tui.actions import READ_ONLY, Action, Successor, only_shows, rebound, table
from fwtui.tui.frame import bindings
from fwtui.tui.frame.look import USUAL
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.places import PLACES, Place
from fwtui.tui.frame.view import View


class ActionRows:
    def __init__(self, screen: Screen[Any], view: View):
        self._screen, self._view = screen, view

    def all(self) -> list[Action]:
        """In the order of the footer, with the keys that they have now."""
        return rebound((row for row in type(self._screen).BINDINGS if isinstance(row, Action)), self._keymap)

    def offered(self) -> list[Action]:
        """Those that the help shows: all that this place has for such a view."""
        read_only = self._read_only
        return [row for row in self.all() if row.belongs(self._view) and (row.shows or not read_only)]

    def places(self) -> list[Action]:
        """Those that go to the places of the view."""
        here = {f"place.{place.name}" for place in self._view.places}
        return [row for row in rebound(bindings.TO_PLACES, self._keymap) if row.id in here]

    def commands(self) -> Iterator[Command]:
        """What the palette offers of them."""
        for row in self.offered():
            if self.can(row):
                # not before the palette is closed
                run = partial(self._screen.call_later, self._screen.run_action, row.action)
                yield Command(f"{row.description}: {row.tooltip}", run, looks=True)

    def key_of(self, name: str) -> str:
        """The key that does what the row with that id does now; one that a field would take comes after Esc."""
        shared = rebound((row for row in vars(bindings).values() if isinstance(row, Action)), self._keymap)
        row = next(row for row in (*self.all(), *shared) if row.id == name)
        if row.successor is not None:
            place, key = self._successor(row.successor)
            return f"{place.key} then {key}" if place is not None else key
        names = [self._screen.app.get_key_display(Binding(key, "")) for key in row.key.split(",")]
        names[0] = row.key_display or names[0]
        free = [name for name in names if not self._typed(name)]
        return free[0] if free else f"esc {names[0]}"

    def keys(self, name: str) -> Sequence[str]:
        """All keys of the row with that id, as Textual calls them; none if there is no such row."""
        return next((row.key.split(",") for row in self.all() if row.id == name), ())

    def moved(self, name: str) -> str:
        """Where the key of that row is now, in a sentence."""
        row = next(row for row in self.all() if row.id == name)
        assert row.successor is not None
        was, (place, key) = self._shown(row.key), self._successor(row.successor)
        return f"{was} is now in {place.title}: press {place.key} then {key}" if place is not None else f"{was} is now {key}"

    def _successor(self, now: Successor) -> tuple[Place | None, str]:
        place = next((place for place in PLACES if place.name == now.place), None)
        return place, self._shown(self._keymap.get(now.id, now.key))

    def _shown(self, keys: str) -> str:
        return self._screen.app.get_key_display(Binding(keys.partition(",")[0], ""))

    def _typed(self, key: str) -> bool:
        """Whether the field that has the focus takes it as a letter."""
        field = self._screen.focused
        return field is not None and len(key) == 1 and field.check_consume_key(key, key)

    def can(self, row: Action) -> bool:
        return self._screen.check_action(*parse(row.action)[1:]) is True

    def unavailable(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Why an action can do nothing now; None if it can, "" where another row has its key or that is seen."""
        if self._read_only and not only_shows(type(self._screen), action, parameters):
            return READ_ONLY
        row = table(type(self._screen)).get((action, parameters))
        if row is None or row.successor is not None:
            return None
        words = row.unavailable(self._screen)
        return "" if words is None and not row.belongs(self._view) else words

    @property
    def _keymap(self) -> Mapping[str, str]:
        return getattr(self._screen.app, "look", USUAL).keymap

    @property
    def _read_only(self) -> bool:
        return getattr(self._screen.app, "read_only", False)
