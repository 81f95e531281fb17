"""The command palette: actions, screens, kernels and sessions; its search also covers help texts and the glossary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher
from textual.markup import escape
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import WorkerError

from fwtui.tui.actions import filled_in
from fwtui.tui.frame.base_screens import PlaceScreen
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.notices import LogEntry
from fwtui.tui.frame.places import load

if TYPE_CHECKING:
    from fwtui.tui.frame.view import View

WHOLE_NAME, WHOLE_TITLE, WHOLE_HELP = 3000.0, 2000.0, 1000.0  # above the scores of letters that only occur in this order


class Command(NamedTuple):
    """A command. Its text may contain file names, and is never read as markup."""

    title: str
    run: Callable[[], object]
    help: str | None = None
    looks: bool = False  # changes nothing, so that a read-only dashboard has it


class CommandProvider(Provider):
    """The commands of the screen below the palette, then those of the program, in this order."""

    async def startup(self) -> None:
        app: Any = self.app
        offered = [*getattr(self.screen, "commands", tuple)(), *app.commands()]
        self._commands = [command for command in offered if command.looks or not app.read_only]
        self._terms = [*terms(self.screen, app.view, app.action_place)] if isinstance(self.screen, PlaceScreen) else []

    async def discover(self) -> Hits:
        for command in self._commands:
            yield DiscoveryHit(Content(command.title), command.run, command.title, _help(command))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        scored = ((score(matcher, command), command) for command in self._commands)
        below = ((score(matcher, term) / 2, term) for term in self._terms)  # actions come before explanations
        for found, command in (*scored, *below):
            if found:  # highlight() would parse brackets as markup
                shown = Content(command.title) if "[" in command.title else matcher.highlight(command.title)
                yield Hit(found, shown, command.run, command.title, _help(command))


def _help(command: Command) -> str | None:
    return escape(command.help) if command.help else None


def panels(view: View, go: Callable[[str], object]) -> Iterator[Command]:
    """Yield a command for each panel that Explain can enlarge."""
    from fwtui.tui.explain.panels import SEARCHED, TITLES

    for panel, title in TITLES.items():
        yield Command(f"{title}{SEARCHED.get(panel, '')}: enlarged in Explain", partial(_enlarge, view, go, panel), looks=True)


def _enlarge(view: View, go: Callable[[str], object], panel: str) -> None:
    from fwtui.tui.explain.panels import TITLES, panels_of

    view.panel, run = panel, view.run
    go("explain")
    if run is not None and panel not in panels_of(view.model, run):
        view.notice = LogEntry(view.model.t, f"run {run.id} has no panel {TITLES[panel]}; all its panels are shown")


def terms(screen: PlaceScreen, view: View, go: Callable[[str], object]) -> Iterator[Command]:
    """Yield a command for each term: a term of a screen switches to that screen, a term of the glossary opens its definition."""
    from fwtui.tui.explain.panels import TERMS

    for place in view.places:
        definitions: Iterable[tuple[str, str]] = load(place.where(view.playback is not None)).WORDS
        for word, meaning in definitions:
            run = partial(_enlarge, view, go, TERMS[word]) if word in TERMS else partial(go, place.name)
            yield Command(f"{place.title}: {word}", run, meaning, looks=True)
    for term, text in GLOSSARY:
        meaning = filled_in(text, screen)
        yield Command(f"Glossary: {term}", partial(_explain, screen, term, meaning), meaning, looks=True)


def _explain(screen: PlaceScreen, term: str, meaning: str) -> None:
    screen.app.push_screen(Dialog(term, Static(Content(meaning), markup=False)))


def score(matcher: Matcher, command: Command) -> float:
    """Return how well a command matches; 0 if it does not.

    The complete query scores higher than its letters in order, and higher in a command's name than in the rest of its text or
    in its help.
    """
    query, title = matcher.query.lower(), command.title.lower()
    letters = matcher.match(command.title)
    if query in title.partition(": ")[0]:
        return WHOLE_NAME + letters
    if query in title:
        return WHOLE_TITLE + letters
    if query in (command.help or "").lower():
        return WHOLE_HELP + letters
    return letters


async def searched(screen: Screen[Any]) -> None:
    """Wait until the palette, if it is open, has searched for the present text.

    In Textual 8.2, Enter may take a result of the previous text: tests/ui/test_keys.py, test_the_palette_takes_what_was_typed...
    """
    if isinstance(screen, CommandPalette):
        for search in [worker for worker in screen.workers if worker.node is screen and not worker.is_finished]:
            with suppress(WorkerError):
                await search.wait()
