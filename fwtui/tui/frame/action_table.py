"""The actions of a screen in its present state: their keys, and which ones are available."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from textual.actions import parse

from fwtui.tui.actions import READ_ONLY, Action, is_read_only, shown_keys, table
from fwtui.tui.frame import bindings
from fwtui.tui.frame.base_screens import PlaceScreen
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.places import Place
from fwtui.tui.frame.view import View


class ActionTable:
    def __init__(self, screen: PlaceScreen, view: View):
        self._screen, self._view = screen, view

    def all(self) -> list[Action]:
        """Return the rows of this screen, then the common ones."""
        return [row for row in (*type(self._screen).BINDINGS, *bindings.COMMON) if isinstance(row, Action)]

    def offered(self) -> list[Action]:
        """Return the rows for the help: all that this screen has for its view."""
        read_only = self._read_only
        rows = [row for row in self.all() if row.belongs(self._view) and (row.shows or not read_only)]
        if not self._view.presenting:
            return rows
        return [replace(row, tooltip=bindings.ON_CARDS[row.id] or row.tooltip) for row in rows if row.id in bindings.ON_CARDS]

    def places(self) -> list[Action]:
        """Return the rows that lead to the screens of the view."""
        here = {f"place.{place.name}" for place in self._view.places}
        return [row for row in bindings.TO_PLACES if row.id in here]

    def tabs(self) -> tuple[Place, ...]:
        """Return the screens of the view, without keys while digits begin a guess."""
        keys = ("" if self._screen.takes_digits() else shown_keys(self._screen.app, row)[0] for row in self.places())
        return tuple(place._replace(key=key) for place, key in zip(self._view.places, keys, strict=True))

    def commands(self) -> Iterator[Command]:
        """Yield the available rows as commands of the palette."""
        for row in self.offered():
            if self.can(row):
                # runs after the palette has closed
                run = partial(self._screen.call_later, self._screen.run_action, row.action)
                yield Command(f"{row.description}: {row.tooltip}", run, looks=True)

    def keys(self, name: str) -> Sequence[str]:
        """Return Textual's names of all keys of an action; empty if this screen does not have it."""
        return next((row.key.split(",") for row in self.all() if row.id == name), ())

    def can(self, row: Action) -> bool:
        return self._screen.check_action(*parse(row.action)[1:]) is True

    def unavailable(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Return why an action is unavailable: None if available, "" if its key has another action or the reason is shown."""
        if self._read_only and not is_read_only(type(self._screen), action, parameters):
            return READ_ONLY
        row = table(type(self._screen)).get((action, parameters))
        if row is None:
            return None
        if self._view.presenting and row.id not in bindings.ON_CARDS:
            return bindings.is_presented(self._screen)
        return row.unavailable(self._screen) if row.belongs(self._view) else ""

    @property
    def _read_only(self) -> bool:
        return getattr(self._screen.app, "read_only", False)
