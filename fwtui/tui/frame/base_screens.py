"""What all screens have in common, and all that open over another; what is lit on a screen, dimmed, and kept in sight."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from textual.await_complete import AwaitComplete
from textual.dom import DOMNode
from textual.events import Resize
from textual.screen import Screen
from textual.widget import Widget

from fwtui.tui.actions import rebound, rows_of, shown_keys
from fwtui.tui.frame import bindings
from fwtui.tui.frame.appearance import USUAL, Appearance
from fwtui.tui.widgets.text_panel import VEILED

if TYPE_CHECKING:
    from fwtui.tui.frame.view import View

CARD = "card"  # the id of the cue card
DETAILED = "-details"  # the class of a place that says where its numbers come from
_Any = Screen[Any] if TYPE_CHECKING else object  # Textual finds the styles of the first base that is a screen


class Sight:
    def __init__(self, screen: Screen[None]):
        self._screen = screen
        self._panel = ""  # the one that is lit
        self._lit, self._veiled = False, False  # whether any widget is lit or dimmed, and whether any is veiled
        self._had_focus: Widget | None = None  # what had it before cue cards were presented
        self._in_view: tuple[Sequence[Widget], bool] = (), False  # what to scroll to, and whether to its top

    def point(self, panel: str, lit: Sequence[Widget], dims: bool) -> None:
        """Light the widgets of that panel, and no others; where it `dims`, everything else is dimmed."""
        around, dimmed = set[DOMNode](), set[Widget]()
        before, self._lit = self._lit, bool(lit) or dims
        if not (before or self._lit or self._panel or panel):
            return
        if dims:
            around = {holder for one in lit for holder in takewhile(lambda w: w is not self._screen, one.ancestors)}
            dimmed = {*_beside(self._screen.query_one("#screen"), lit, around)}
        for name, now in (("-pointed", {*lit}), ("-around", around), ("-dimmed", dimmed)):
            for widget in {*self._screen.query(f".{name}"), *now}:
                widget.set_class(widget in now, name)
        if lit and (dims or panel != self._panel):  # a card with an answer leaves less room
            self.keep(lit, dims)
        elif self._panel and not lit:
            self.release()
        self._panel = panel

    def veil(self, widgets: Sequence[Widget]) -> None:
        """Hide these widgets, and no others, without taking their room."""
        before, self._veiled = self._veiled, bool(widgets)
        for widget in {*self._screen.query(f".{VEILED}"), *widgets} if before or widgets else ():
            widget.set_class(widget in widgets, VEILED)
            widget.refresh()

    def keep(self, widgets: Sequence[Widget], top: bool = False) -> None:
        """Scroll to the first of them that has room, again whenever the layout changes, until release()."""
        self._in_view = widgets, top
        self._screen.call_after_refresh(self._scroll, widgets, top)

    def rest_focus(self, rests: bool) -> None:
        """No table has a cursor while cue cards are presented; afterwards it comes back."""
        if rests and self._screen.focused is not None:
            self._had_focus = self._screen.focused
            self._screen.set_focus(None)
        elif not rests and self._had_focus is not None:
            self._screen.set_focus(self._had_focus)
            self._had_focus = None

    def release(self) -> None:
        """What was kept in sight may leave it: the user does something."""
        self._in_view = (), False

    def layout_changed(self, _: object = None) -> None:
        if self._in_view[0]:
            self._screen.call_after_refresh(self._scroll, *self._in_view)

    @staticmethod
    def _scroll(widgets: Sequence[Widget], top: bool) -> None:
        for widget in [widget for widget in widgets if widget.region.area][:1]:
            widget.scroll_visible(animate=False, top=top)


def _beside(holder: Widget, lit: Collection[Widget], around: Collection[DOMNode]) -> Iterator[Widget]:
    """The largest parts of a widget that are not lit and hold nothing lit, without the cue card."""
    for part in holder.children:
        if part in around:
            yield from _beside(part, lit, around)
        elif part not in lit and part.id != CARD:
            yield part


class Sized(_Any):
    """Textual tells a screen each size once more when it is laid out; two of them would go on forever."""

    if not TYPE_CHECKING:  # Textual calls the method of each class, so that those of screens do not replace this one

        def on_resize(self, event: Resize) -> None:
            if event.size != self.app.size:  # the terminal no longer has that size
                event.prevent_default().stop()

    @property
    def look(self) -> Appearance:
        return getattr(self.app, "look", USUAL)

    def key_of(self, name: str) -> str:
        """The key that does what the row with that id does now: after that of its place if only another place has it, and after
        the key that leaves a field if that would take it.
        """
        row = next(row for row in (*rows_of(type(self)), *bindings.ELSEWHERE) if row.id == name)
        names = shown_keys(self.app, *rebound([row], self.look.keymap))
        if row.place not in ("", getattr(self, "PLACE", "")):
            return f"{self.key_of(f'place.{row.place}')} then {names[0]}"
        field = self.focused
        free = [key for key in names if field is None or len(key) > 1 or not field.check_consume_key(key, key)]
        if free or name == "back":
            return (free or names)[0]
        return f"{self.key_of('back')} {names[0]}"


class Over(Sized):
    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Answer once, and close what is open over this."""
        if self not in self.app.screen_stack:
            return AwaitComplete.nothing()
        while self.app.screen is not self:
            self.app.pop_screen()
        return super().dismiss(result)


class PlaceScreen(Sized, Screen[None]):
    """A place of the bar, as its keys, its cue card and what is read for it know it; `Frame` is the rest of it."""

    PANEL: ClassVar[str] = ""  # what the page keys scroll, as a selector

    def __init__(self, view: View):
        super().__init__()
        self.view = view
        self.sight = Sight(self)

    @property
    def narrow(self) -> bool:
        """Whether panels at the side have no room, or are not wanted."""
        return not self.has_class("-wide") or self.has_class("-presenter")

    @property
    @abstractmethod
    def way_back(self) -> Callable[[], object] | None:
        """One step back, if there is one."""

    @abstractmethod
    def update(self, forced: bool = False) -> None:
        """Update from the view; free if nothing happened."""

    def panel(self) -> Widget | None:
        """What the page keys scroll."""
        return self.query_one(self.PANEL) if self.PANEL else None

    def giveaways(self, kind: str) -> Sequence[Widget]:
        """What shows the answer to a question of that kind: hidden until the user asks for it."""
        return ()

    def pointed(self, panel: str) -> Sequence[Widget]:
        """The widgets of the panel of that name (fwtui.learn.questions.PANELS); most places have none."""
        return ()
