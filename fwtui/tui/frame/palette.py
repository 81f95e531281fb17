"""What the command palette offers besides the keys: kernels to choose and sessions to replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from kernels import registry
from kernels.auto import AUTO

UNITS = {"cpu": "CPU", "cuda": "GPU"}


class Command(NamedTuple):
    """Its words are data (file names are), so the palette gets them as Content."""

    words: str
    run: Callable[[], None]
    help: str | None = None


@runtime_checkable
class Commanded(Protocol):
    """A screen, or an application, that has something to offer at the moment."""

    def commands(self) -> Iterator[Command]: ...


class Commands(Provider):
    """What the screen and then the application offer."""

    async def discover(self) -> Hits:
        for command in self._offered():
            yield DiscoveryHit(Content(command.words), command.run, text=command.words, help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._offered():
            score = matcher.match(command.words)
            if score > 0:  # matcher.highlight() would read the words as markup
                yield Hit(score, Content(command.words), command.run, text=command.words, help=command.help)

    def _offered(self) -> Iterator[Command]:
        for place in (self.screen, self.app):
            if isinstance(place, Commanded):
                yield from place.commands()


class Palette(CommandPalette):
    """Textual's palette, which pages through a list that is not laid out yet and fails."""

    def _action_command_list(self, action: str) -> None:
        commands = self.query_one(CommandList)
        if commands.option_count and commands.scrollable_content_region:
            super()._action_command_list(action)


def kernels(choose: Callable[[str], None]) -> Iterator[Command]:
    for kernel in (*registry().values(), AUTO):
        where = f" ({kernel.backend})" if kernel is not AUTO else ""
        yield Command(f"Kernel: {kernel.id}", partial(choose, kernel.id), f"{kernel.title}{where}")


def limits(measure: Callable[[str], None], backends: Iterable[str]) -> Iterator[Command]:
    for backend in backends:
        words = f"Measure what this {UNITS[backend]} can do at most"
        yield Command(words, partial(measure, backend), "the limit that rates are shown as a share of; kept for later")
