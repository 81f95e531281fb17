"""The keys of a screen in its last line."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Footer


class KeyFooter(Footer):
    """Textual's footer, which makes its keys again only if they have changed.

    Textual 8.2 does so whenever the focus moves, and keeps the lines of the keys that it has removed (tests/ui/test_cost.py,
    test_replays_and_dialogs_that_are_no_longer_shown_are_let_go).
    """

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._keys: dict[str, tuple[str, str]] = {}

    def current_keys(self) -> dict[str, tuple[str, str]]:
        """Return key and description of each action that can be done now, by its name."""
        bindings = [one.binding for one in self.screen.active_bindings.values() if one.binding.show and one.enabled]
        return {binding.action: (binding.key, binding.description) for binding in reversed(bindings)}

    def bindings_changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen and self.app.app_focus and (keys := self.current_keys()) != self._keys:
            self._keys = keys
            super().bindings_changed(screen)
