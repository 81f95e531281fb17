"""What keeps a screen from being laid out for sizes that the terminal no longer has."""

from __future__ import annotations

from textual.events import Resize
from textual.screen import Screen


class Sized:
    """Base of every screen. Textual tells a screen each size once more when it is laid out; two of them would go on forever."""

    def _on_resize(self, event: Resize) -> None:
        assert isinstance(self, Screen)
        if event.size != self.app.size:
            event.prevent_default().stop()
