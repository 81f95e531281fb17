"""The open views: the live session and a replay over it. Each of their screens is a mode of the application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.screen import Screen
from textual.widget import AwaitMount

from fwtui.tui.frame.frame import FAILED, Frame
from fwtui.tui.frame.places import Place, load, places
from fwtui.tui.frame.view import View
from fwtui.tui.textual_internals import drop_lines


class ViewStack:
    def __init__(self, app: App[Any], place: str, read_only: bool):
        """Show `place` first; later views start with their first screen."""
        self._app = app
        self._place = place
        self._read_only = read_only
        self._opened = 0  # views opened so far
        self.views: list[View] = []  # the last one is visible
        self._themes: dict[str, str] = {}  # the theme in which each mode was last visible
        self.styled = False  # True during a switch to a screen whose styles are up to date

    @property
    def shown(self) -> View | None:
        return self.views[-1] if self.views else None

    def enter(self, view: View) -> None:
        """Show a view at the requested screen, or at its first one. A replay replaces a replay."""
        previous = self.views.pop() if self.views and self.views[-1].playback is not None else None
        there = view.places = self._places(view.playback is not None)
        view.close = self.close if self.views else None
        view.number, self._opened = self._opened, self._opened + 1
        for place in there:
            self._app.add_mode(self._mode(view, place), self._screen_of(view, place))
        self.views.append(view)
        self.go(view, next((place for place in there if place.name == self._place), there[0]))
        self._place = there[0].name
        if previous is not None:
            self._forget(previous)

    def _places(self, replayed: bool) -> tuple[Place, ...]:
        if not self._read_only or replayed:
            return places(replayed)
        from fwtui.tui.frame.read_only import PLACES

        return tuple(place for place in places(replayed) if place.name in PLACES)

    def close(self) -> None:
        """Return from a replay to the dashboard."""
        closed = self.views.pop()
        self.to(self.views[-1].place)
        self._forget(closed)

    def to(self, name: str) -> None:
        """Switch to a screen of the visible view."""
        if (view := self.shown) is not None and (place := view.place_named(name)) is not None:
            self.go(view, place)

    def go(self, view: View, place: Place) -> AwaitMount:
        for left in (screen for screen in self._app.screen_stack if isinstance(screen, Frame)):
            left.leaving()
        view.place, view.visits = place.name, view.visits + 1
        if any(screen.has_class(FAILED) for screen in self._screens(self._mode(view, place))):
            self.renew(view, place)
        return self._switch(self._mode(view, place))

    def _switch(self, mode: str) -> AwaitMount:
        theme = self._app.theme
        self.styled = self._themes.setdefault(mode, theme) == theme
        self._themes[mode] = theme
        try:
            return self._app.switch_mode(mode)
        finally:
            self.styled = False

    def found(self, screen: Screen[Any]) -> tuple[View, Place] | None:
        """Return the view and the place of a screen, or of the screen that it is open over."""
        of = ((view, place) for view in self.views for place in view.places)
        return next((one for one in of if screen in self._screens(self._mode(*one))), None)

    def renew(self, view: View, place: Place, make_screen: Callable[[], Screen[Any]] | None = None) -> None:
        """Replace the screen of a place, and close the dialogs over it."""
        old = self._mode(view, place)
        view.drawn[place.name] = view.drawn.get(place.name, 0) + 1
        new = self._mode(view, place)
        self._app.add_mode(new, make_screen or self._screen_of(view, place))
        if old == self._app.current_mode:
            self._switch(new)
        self._remove(old)

    def _screens(self, mode: str) -> list[Screen[Any]]:
        try:
            return self._app.get_screen_stack(mode)
        except KeyError:  # never shown
            return []

    @staticmethod
    def _screen_of(view: View, place: Place) -> Callable[[], Screen[Any]]:
        return lambda: load(place.where(view.playback is not None))(view)  # imported when first shown

    @staticmethod
    def _mode(view: View, place: Place) -> str:
        return f"{view.number}:{place.name}:{view.drawn.get(place.name, 0)}"

    def _forget(self, view: View) -> None:
        for place in view.places:
            self._remove(self._mode(view, place))

    def _remove(self, mode: str) -> AwaitComplete:
        for screen in self._screens(mode):
            if isinstance(screen, Frame):
                screen.leave()
            drop_lines(screen)
        self._themes.pop(mode, None)
        return self._app.remove_mode(mode)
