"""Base classes of screens and dialogs, and the highlighting, dimming and scrolling of panels for cue cards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from textual.await_complete import AwaitComplete
from textual.dom import DOMNode
from textual.events import Resize
from textual.screen import Screen
from textual.widget import Widget

from fwtui.tui.actions import rows_of, shown_keys
from fwtui.tui.frame import bindings
from fwtui.tui.frame.appearance import DEFAULT, Appearance
from fwtui.tui.widgets.text_panel import VEILED, TextPanel

if TYPE_CHECKING:
    from fwtui.tui.frame.view import View

CARD = "card"  # the id of the cue card
DETAILED = "-details"  # the class of a screen that shows the origin of its numbers
Giveaways = Mapping[Widget, tuple[str, ...] | None]  # widget -> beginnings of the lines whose numbers are hidden; None: hidden
_Any = Screen[Any] if TYPE_CHECKING else object  # Textual takes the styles of the first base that is a screen


class Sight:
    """The highlighted, dimmed and hidden widgets of a screen, and the widgets that it holds in view."""

    def __init__(self, screen: Screen[None]):
        self._screen = screen
        self._panel = ""  # the highlighted one
        self._lit, self._veiled = False, False  # True if any widget is highlighted or dimmed; if any is hidden
        self._had_focus: Widget | None = None  # the focused widget before the presentation of cue cards
        self._in_view: tuple[Sequence[Widget], bool] = (), False  # widgets to scroll to; True: to the top of the screen

    def point(self, panel: str, lit: Sequence[Widget], dims: bool) -> None:
        """Highlight the widgets of that panel, and no others; with `dims`, dim everything else."""
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
        if lit and (dims or panel != self._panel):  # an answer makes the card larger
            self.keep_in_view(lit, dims)
        elif self._panel and not lit:
            self.release()
        self._panel = panel

    def veil(self, hidden: Giveaways) -> None:
        """Hide these widgets, or numbers in them, and no others; they keep their space."""
        before, self._veiled = self._veiled, bool(hidden)
        for widget in {*self._screen.query(f".{VEILED}"), *hidden} if before or hidden else ():
            widget.set_class(widget in hidden, VEILED)
            if isinstance(widget, TextPanel):
                widget.masked = hidden.get(widget)
            widget.refresh()

    def keep_in_view(self, widgets: Sequence[Widget], top: bool = False) -> None:
        """Scroll to the first visible one of the widgets now and after every change of layout, until release()."""
        self._in_view = widgets, top
        self._screen.call_after_refresh(self._scroll, widgets, top)

    def rest_focus(self, rests: bool) -> None:
        """Take the focus away during the presentation of cue cards, and restore it afterwards."""
        if rests and self._screen.focused is not None:
            self._had_focus = self._screen.focused
            self._screen.set_focus(None)
        elif not rests and self._had_focus is not None:
            self._screen.set_focus(self._had_focus)
            self._had_focus = None

    def release(self) -> None:
        """Let the user scroll away."""
        self._in_view = (), False

    def layout_changed(self, _: object = None) -> None:
        if self._in_view[0]:
            self._screen.call_after_refresh(self._scroll, *self._in_view)

    @staticmethod
    def _scroll(widgets: Sequence[Widget], top: bool) -> None:
        for widget in [widget for widget in widgets if widget.region.area][:1]:
            widget.scroll_visible(animate=False, top=top)


def _beside(holder: Widget, lit: Collection[Widget], around: Collection[DOMNode]) -> Iterator[Widget]:
    """Yield the largest parts of a widget, except the cue card, that neither are nor contain highlighted widgets."""
    for part in holder.children:
        if part in around:
            yield from _beside(part, lit, around)
        elif part not in lit and part.id != CARD:
            yield part


class Sized(_Any):
    """A screen that ignores outdated sizes: Textual repeats each size after the layout, and two sizes would alternate forever."""

    if not TYPE_CHECKING:  # Textual calls the method of each class in the hierarchy

        def on_resize(self, event: Resize) -> None:
            if event.size != self.app.size:
                event.prevent_default().stop()

    @property
    def look(self) -> Appearance:
        return getattr(self.app, "look", DEFAULT)

    def key_of(self, name: str) -> str:
        """Return the displayed key of the action with that id.

        If only another screen has the action, its key follows the key of that screen. If the focused field takes the key, it
        follows the key that leaves the field.
        """
        row = next(row for row in (*rows_of(type(self)), *bindings.ELSEWHERE) if row.id == name)
        names = shown_keys(self.app, row)
        if row.place not in ("", getattr(self, "PLACE", "")):
            return f"{self.key_of(f'place.{row.place}')} then {names[0]}"
        fields = self.focused.ancestors_with_self if self.focused is not None else ()
        free = [key for key in names if len(key) > 1 or not any(field.check_consume_key(key, key) for field in fields)]
        if free or name == "back":
            return (free or names)[0]
        return f"{self.key_of('back')} {names[0]}"


class Over(Sized):
    """A screen that opens over another one."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close this screen and everything over it; a second call does nothing."""
        if self not in self.app.screen_stack:
            return AwaitComplete.nothing()
        while self.app.screen is not self:
            self.app.pop_screen()
        return super().dismiss(result)


class PlaceScreen(Sized, Screen[None]):
    """The part of `Frame` that its keys, its cue card and its background work use."""

    PANEL: ClassVar[str] = ""  # selector of the widget that the page keys scroll

    def __init__(self, view: View):
        super().__init__()
        self.view = view
        self.sight = Sight(self)

    @property
    def narrow(self) -> bool:
        """True if the screen is too narrow for side panels, or in the presenter's layout."""
        return not self.has_class("-wide") or self.has_class("-presenter")

    @property
    @abstractmethod
    def way_back(self) -> Callable[[], object] | None:
        """The action of the key that goes one step back; None if there is none."""

    @abstractmethod
    def update(self, forced: bool = False) -> None:
        """Update from the view; costs nothing if nothing has changed."""

    def panel(self) -> Widget | None:
        """Return the widget that the page keys scroll."""
        return self.query_one(self.PANEL) if self.PANEL else None

    def takes_digits(self) -> bool:
        """Return True while a digit begins a guess, so that only alt+digit switches screens."""
        return False

    def giveaways(self, kind: str) -> Giveaways:
        """Return the widgets or lines that answer a question of that kind, which are hidden until the answer is requested."""
        return {}

    def pointed(self, panel: str) -> Sequence[Widget]:
        """Return the widgets of the panel of that name (fwtui.learn.questions.PANELS); most screens have none."""
        return ()
