"""What all screens have in common, and all that open over another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.await_complete import AwaitComplete
from textual.events import Resize
from textual.screen import Screen

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
