"""The footer: what keys do now, also while a field takes the letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual import events as ui
from textual.binding import ActiveBinding, Binding
from textual.content import Content

from fwtui.tui.actions import table
from fwtui.tui.frame.bindings import ANY_PLACE, NEXT_FIELD, PALETTE
from fwtui.tui.widgets.drawn import Drawn, line

ROOM_FOR_PALETTE = 80  # columns from which the footer names it
FIXED = ("help", "quit", "quit.now", "close", PALETTE.id)  # ids of the rows at the right, whatever else there is
KEY, TITLE = "bold $footer-key-foreground", "$footer-description-foreground"
WHILE_TYPING = ("escape", "ctrl+q")  # what the footer has besides then, if these keys do something


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
            submits = getattr(self.screen, "SUBMITS", "") or active["enter"].binding.description
            same = {row.action for row in table(type(self.screen)).values() if row.description == submits}
            if not same or any(one.enabled and one.binding.action in same for one in active.values()):
                yield FooterKey("enter", "enter", submits)
            actions.update((self.screen, action) for action in same)
        for key, one in active.items():
            shown = one.binding.show or (typing and key in WHILE_TYPING)
            if shown and one.enabled and (one.node, one.binding.action) not in actions:
                actions.add((one.node, one.binding.action))
                named = self._key(key, one)
                yield named._replace(title="Leave field") if typing and key == "escape" else named
        if typing:
            yield FooterKey(NEXT_FIELD.key, NEXT_FIELD.key, NEXT_FIELD.description, NEXT_FIELD.tooltip)
            yield FooterKey("", ANY_PLACE.key_display or "", ANY_PLACE.description, ANY_PLACE.tooltip)
        if PALETTE.key in active:
            yield self._key(PALETTE.key, active[PALETTE.key])

    def _key(self, key: str, one: ActiveBinding) -> FooterKey:
        named = one.binding.key_display if "+" not in key else None  # which is for the first of its keys
        shown = named or self.app.get_key_display(Binding(key, ""))
        return FooterKey(key, shown, one.binding.description, one.binding.tooltip, one.binding.id in FIXED)

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
    shown, places = line(""), list[tuple[int, int, FooterKey]]()
    for key in keys:
        begins = shown.cell_length + bool(places)
        longer = line(shown, " " * bool(places), (key.shown, KEY), (f" {key.title}", TITLE))
        if longer.cell_length > room:
            break
        places.append((begins, longer.cell_length, key))
        shown = longer
    return shown, places
