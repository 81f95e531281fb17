"""What all screens have in common, and all that open over another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.await_complete import AwaitComplete
from textual.events import Resize
from textual.screen import Screen
from textual.widget import Widget

from fwtui.tui.frame.sight import Sight

if TYPE_CHECKING:
    from fwtui.tui.frame.view import View

DETAILED = "-details"  # the class of a place that says where its numbers come from

_Any = Screen[Any] if TYPE_CHECKING else object  # Textual finds the styles of the first base that is a screen


class Sized(_Any):
    """Textual tells a screen each size once more when it is laid out; two of them would go on forever."""

    if not TYPE_CHECKING:  # Textual calls the method of each class, so that those of screens do not replace this one

        def on_resize(self, event: Resize) -> None:
            if event.size != self.app.size:  # the terminal no longer has that size
                event.prevent_default().stop()


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
    def key_of(self, name: str) -> str:
        """The name of the key that the row with that id has now."""

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
        """The widgets of the panel of that name (fwtui.learn.cue.PANELS); most places have none."""
        return ()
