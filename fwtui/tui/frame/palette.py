"""The command palette, and the commands that screens and the application put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from textual import work
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches
from textual.errors import NoWidget
from textual.events import Click, Mount

from fwtui.tui.frame.base_screens import Over


class Command(NamedTuple):
    """Its words are data (file names are), so the palette gets them as Content."""

    words: str
    run: Callable[[], object]
    help: str | None = None
    looks: bool = False  # it only shows something: a dashboard that is read-only has it too


class Commands(Provider):
    """What the `commands()` of the screen and then of the application offer, where they have them."""

    async def discover(self) -> Hits:
        for command in self._offered():
            yield DiscoveryHit(Content(command.words), command.run, text=command.words, help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._offered():
            score, name = matcher.match(command.words), command.words.partition(": ")[0]
            if query.lower() in name.lower():  # it comes before those that only mention it
                score += matcher.match(name)
            if score > 0:  # matcher.highlight() would read the words as markup
                yield Hit(score, Content(command.words), command.run, text=command.words, help=command.help)

    def _offered(self) -> Iterator[Command]:
        read_only = getattr(self.app, "read_only", False)
        for place in (self.screen, self.app):
            yield from (command for command in getattr(place, "commands", tuple)() if command.looks or not read_only)


class Palette(Over, CommandPalette):
    """Textual's palette, which fails where it pages through a list that is not laid out yet, or still searches when it closes."""

    def _on_mount(self, event: Mount) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self not in self.app.screen_stack:  # it was closed before it was there
            event.prevent_default()

    def dismiss(self, result: Any = None) -> AwaitComplete:
        self._cancel_gather_commands()
        return super().dismiss(result)

    def _on_click(self, event: Click) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        event.prevent_default()  # Textual calls the inherited method as well
        with suppress(NoWidget):  # the terminal has shrunk since
            super()._on_click(event)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        if self not in self.app.screen_stack:  # keys may have been typed after those that closed it
            return
        with suppress(NoMatches):  # its list goes before it does
            await vars(CommandPalette)["_gather_commands"].__wrapped__(self, search_value)

    def _action_command_list(self, action: str) -> None:
        commands = self.query_one(CommandList)
        if commands.option_count and commands.scrollable_content_region:
            super()._action_command_list(action)
