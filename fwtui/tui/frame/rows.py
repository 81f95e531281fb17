"""The rows of the table of actions that a screen has, as they are now: their keys, what can be done, and the footer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from textual import events as ui
from textual.actions import parse
from textual.binding import ActiveBinding, Binding
from textual.content import Content

from fwtui.tui.actions import READ_ONLY, Action, only_shows, rebound, shown_keys, table
from fwtui.tui.frame import bindings
from fwtui.tui.frame.base_screens import PlaceScreen
from fwtui.tui.frame.bindings import ANY_PLACE, NEXT_FIELD, PALETTE
from fwtui.tui.frame.dialogs import Command
from fwtui.tui.frame.places import Place
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.drawn import Drawn, line

ROOM_FOR_PALETTE = 80  # columns from which the footer names it
FIXED = ("help", "quit", "quit.now", "close", PALETTE.id)  # ids of the rows at the right, whatever else there is
KEY, TITLE = "bold $footer-key-foreground", "$footer-description-foreground"
WHILE_TYPING = ("back", "quit.now")  # ids of the rows that the footer has besides then, if these can do something


class ActionRows:
    def __init__(self, screen: PlaceScreen, view: View):
        self._screen, self._view = screen, view

    def all(self) -> list[Action]:
        """In the order of the footer, with the keys that they have now."""
        return rebound((row for row in type(self._screen).BINDINGS if isinstance(row, Action)), self._screen.look.keymap)

    def offered(self) -> list[Action]:
        """Those that the help shows: all that this place has for such a view."""
        read_only = self._read_only
        return [row for row in self.all() if row.belongs(self._view) and (row.shows or not read_only)]

    def places(self) -> list[Action]:
        """Those that go to the places of the view."""
        here = {f"place.{place.name}" for place in self._view.places}
        return [row for row in rebound(bindings.TO_PLACES, self._screen.look.keymap) if row.id in here]

    def tabs(self) -> tuple[Place, ...]:
        """The places of the view, with the keys that they have now."""
        keys = (shown_keys(self._screen.app, row)[0] for row in self.places())
        return tuple(place._replace(key=key) for place, key in zip(self._view.places, keys, strict=True))

    def commands(self) -> Iterator[Command]:
        """What the palette offers of them."""
        for row in self.offered():
            if self.can(row):
                # not before the palette is closed
                run = partial(self._screen.call_later, self._screen.run_action, row.action)
                yield Command(f"{row.description}: {row.tooltip}", run, looks=True)

    def keys(self, name: str) -> Sequence[str]:
        """All keys of the row with that id, as Textual calls them; none if there is no such row."""
        return next((row.key.split(",") for row in self.all() if row.id == name), ())

    def can(self, row: Action) -> bool:
        return self._screen.check_action(*parse(row.action)[1:]) is True

    def unavailable(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Why an action can do nothing now; None if it can, "" where another row has its key or that is seen."""
        if self._read_only and not only_shows(type(self._screen), action, parameters):
            return READ_ONLY
        row = table(type(self._screen)).get((action, parameters))
        if row is None or row.successor:
            return None
        words = row.unavailable(self._screen)
        return "" if words is None and not row.belongs(self._view) else words

    @property
    def _read_only(self) -> bool:
        return getattr(self._screen.app, "read_only", False)


class FooterKey(NamedTuple):
    key: str
    shown: str  # as users call it
    title: str
    tooltip: str = ""
    fixed: bool = False


class KeyLine(Drawn[tuple[FooterKey, ...]]):
    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyLine { dock: bottom; height: 1; background: $footer-background; }"

    def __init__(self) -> None:
        super().__init__(())
        self._places: list[tuple[int, int, FooterKey]] = []  # columns of each key, half-open

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.read())

    def read(self) -> None:
        """Show the keys of this moment."""
        if self.is_attached:
            self.show(tuple(self._now()))

    def _now(self) -> Iterator[FooterKey]:
        active, focused, actions = self.screen.active_bindings, self.screen.focused, set[tuple[object, str]]()
        typing = focused is not None and focused.check_consume_key("a", "a")
        if typing and "enter" in active and active["enter"].binding.action == "submit":
            submits = getattr(self.screen, "submits", active["enter"].binding.description)
            same = {row.action for row in table(type(self.screen)).values() if row.description == submits}
            if submits and (not same or any(one.enabled and one.binding.action in same for one in active.values())):
                yield FooterKey("enter", "enter", submits)
            actions.update((self.screen, action) for action in same)
        for key, one in active.items():
            visible = one.binding.show or (typing and one.binding.id in WHILE_TYPING)
            named = self._key(key, one)
            typed = typing and len(named.shown) == 1
            if visible and one.enabled and not typed and (one.node, one.binding.action) not in actions:
                actions.add((one.node, one.binding.action))
                yield named._replace(title="Leave field") if typing and one.binding.id == "back" else named
        if typing:
            yield FooterKey(NEXT_FIELD.key, NEXT_FIELD.key, NEXT_FIELD.description, NEXT_FIELD.tooltip)
            yield FooterKey("", ANY_PLACE.key_display or "", ANY_PLACE.description, ANY_PLACE.tooltip)
        if PALETTE.key in active:
            yield self._key(PALETTE.key, active[PALETTE.key])

    def _key(self, key: str, one: ActiveBinding) -> FooterKey:
        named = one.binding.key_display if "+" not in key else None  # which is for the first of its keys
        key_name = named or self.app.get_key_display(Binding(key, ""))
        return FooterKey(key, key_name, one.binding.description, one.binding.tooltip, one.binding.id in FIXED)

    def draw(self, subject: tuple[FooterKey, ...], width: int) -> Sequence[Content]:
        """As many keys as there is room for; at the right what every place has."""
        named = [key for key in subject if key.fixed and (key.key != PALETTE.key or width >= ROOM_FOR_PALETTE)]
        right, places = _names(named, width)
        room = width - right.cell_length
        left, self._places = _names([key for key in subject if not key.fixed], room)
        self._places += [(begin + room, end + room, key) for begin, end, key in places]
        return [line(left, " " * (room - left.cell_length), right)]

    def _at(self, event: ui.MouseEvent) -> FooterKey | None:
        offset = event.get_content_offset(self)
        return next((key for a, b, key in self._places if offset is not None and a <= offset.x < b), None)

    def on_click(self, event: ui.Click) -> None:
        key = self._at(event)
        if key is not None and key.key:
            event.stop()
            self.app.simulate_key(key.key)

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        key = self._at(event)
        self.tooltip = Content(key.tooltip) if key is not None and key.tooltip else None


def _names(keys: Sequence[FooterKey], room: int) -> tuple[Content, list[tuple[int, int, FooterKey]]]:
    """The keys for which there is room, a space before each but the first, and the columns of each."""
    content, places = line(""), list[tuple[int, int, FooterKey]]()
    for key in keys:
        begins = content.cell_length + bool(places)
        longer = line(content, " " * bool(places), (key.shown, KEY), (f" {key.title}", TITLE))
        if longer.cell_length > room:
            break
        places.append((begins, longer.cell_length, key))
        content = longer
    return content, places
