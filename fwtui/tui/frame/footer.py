"""The keys of a screen, in its last line."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from textual.actions import parse
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from fwtui.tui.actions import table


class KeyName(Static):
    """A key that can be clicked, with the title of its action."""

    def __init__(self, key: str, shown: str, binding: Binding, classes: str = ""):
        title = (f" {binding.description}", "$footer-description-foreground")
        super().__init__(Content.assemble((shown, "bold $footer-key-foreground"), title), classes=classes)
        self.key = key
        self.tooltip = Content(binding.tooltip or binding.description)

    def on_click(self) -> None:
        self.app.simulate_key(self.key)


class KeyFooter(Footer):
    """Textual's footer, rebuilt only if the keys have changed, and without references to removed keys.

    Textual 8.2 holds a reference to each key, and rebuilds the footer whenever the focus moves
    (tests/ui/test_cost.py, test_removed_key_labels_are_freed).
    """

    DEFAULT_CSS = """
    KeyFooter KeyName { width: auto; margin-right: 1; }
    KeyFooter KeyName.-command-palette { dock: right; margin-right: 0; border-left: vkey $foreground 20%; }
    """

    def __init__(self) -> None:
        super().__init__(compact=True)
        self._keys: dict[str, tuple[str, Binding]] = {}

    def current_keys(self) -> dict[str, tuple[str, Binding]]:
        """Return the first key and the binding of each available action, by its name, as many as fit with their titles."""
        active = [(key, one.binding) for key, one in self.screen.active_bindings.items() if one.binding.show and one.enabled]
        named = {binding.action: (key, self._titled(binding)) for key, binding in active[::-1]}
        palette = self.screen.active_bindings.get(self.app.COMMAND_PALETTE_BINDING)
        room = self.app.size.width - (self._cells(palette.binding) if palette is not None else 0)
        ends = accumulate(self._cells(binding) for _, binding in [*named.values()][::-1])
        fits = sum(end - 1 <= room for end in ends)
        return dict([*named.items()][len(named) - fits :])

    def _cells(self, binding: Binding) -> int:
        """Return the cells of a key with its title and a separator."""
        return len(f"{self.app.get_key_display(binding)} {binding.description} ")

    def on_resize(self) -> None:
        self.bindings_changed(self.screen)

    def _titled(self, binding: Binding) -> Binding:
        """Return the binding with its title for the present state of the screen."""
        row = table(type(self.screen)).get(parse(binding.action)[1:])  # Textual copies rows as plain bindings
        return replace(binding, description=row.title_now(self.screen)) if row is not None and row.title_now else binding

    def bindings_changed(self, screen: Screen[object]) -> None:
        if self.is_attached and screen is self.screen and self.app.app_focus and (keys := self.current_keys()) != self._keys:
            self._keys = keys
            super().bindings_changed(screen)

    def compose(self) -> ComposeResult:
        if not self._keys:  # the screen has no widgets yet, on which the available keys depend
            return
        self._keys = self.current_keys()
        for key, binding in [*self._keys.values()][::-1]:
            yield KeyName(key, self.app.get_key_display(binding), binding)
        palette = self.screen.active_bindings.get(self.app.COMMAND_PALETTE_BINDING)
        if palette is not None:
            shown = self.app.get_key_display(palette.binding)
            yield KeyName(palette.binding.key, shown, palette.binding, classes="-command-palette")
