"""Actions as a table: a row for each, which footer, palette, help, key map, read-only serving and "why not" are made from."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from textual.actions import parse
from textual.app import App
from textual.binding import Binding
from textual.keys import KEY_NAME_REPLACEMENTS

READ_ONLY = "read-only here: replays and the course; nothing is run, recorded, saved or changed"
Reason = Callable[[Any], str | None]  # of the screen: None if the action can be done now, else why not


class KeyNames:
    """The names of the keys of a screen, by the ids of their rows."""

    def __init__(self, screen: Any):
        self._screen = screen

    def __getitem__(self, id: str) -> str:
        return self._screen.key_of(id)


def filled_in(words: str, screen: Any) -> str:
    """The words with the keys that they name, {key[cancel]}, and with what they name of the screen."""
    return words.format(screen=screen, key=KeyNames(screen))


def require(holds: Callable[[Any], object], words: str) -> Reason:
    """The reason that this does not hold of the screen; the words are filled in."""
    return lambda screen: None if holds(screen) else filled_in(words, screen)


def first_reason(*reasons: Reason) -> Reason:
    """The first of these reasons that there is."""
    return lambda screen: next((words for reason in reasons if (words := reason(screen)) is not None), None)


always = first_reason()


@dataclass(frozen=True)
class Action(Binding):
    """A row of the table: what Textual knows of a key, and when the key can do something."""

    unavailable: Reason = always  # why it can do nothing now in a sentence; "" where that is seen, or the key is another's
    shows: bool = False  # it only shows something, so that it works in a read-only dashboard
    belongs: Callable[[Any], object] = bool  # whether a view has it at all; the help of others does not name it
    place: str = ""  # the only one that has it; sentences of others name its key after that of the place
    deliberate: bool = False  # it starts or ends something: a letter typed in a row with others does not do it
    title_now: Callable[[Any], str] | None = None  # the footer's title, if it depends on the state of the screen


def bound(keys: str, action: str, title: str, tooltip: str, unavailable: Reason = always, id: str = "", **more: Any) -> Action:
    """A row; its id is its action unless another is given, and `more` are other fields of it."""
    return Action(keys, action, title, tooltip=tooltip, id=id or action, unavailable=unavailable, **more)


def move(keys: str, action: str, title: str, tooltip: str, id: str) -> Action:
    """A row of a widget, which moves what it shows."""
    return hidden_look(keys, action, title, tooltip, id=id)


look = partial(bound, shows=True)  # of what only shows something
hidden = partial(bound, show=False)  # not in the footer, where there is no room for all
hidden_look = partial(hidden, shows=True)


def rows_of(kind: type) -> Iterator[Action]:
    """The rows of a screen, a widget or the application, those that it has by itself after those of its bases."""
    for one in reversed(kind.__mro__):
        yield from (row for row in vars(one).get("BINDINGS", ()) if isinstance(row, Action))


@cache
def table(kind: type) -> Mapping[tuple[str, tuple[Any, ...]], Action]:
    """The rows of such a kind, by the method that each calls and its arguments."""
    return {parse(row.action)[1:]: row for row in rows_of(kind) if row.action}


def is_read_only(kind: type, action: str, parameters: tuple[Any, ...]) -> bool:
    """Whether a read-only dashboard does it: its row says so, or it is one of Textual's own widgets, which only show."""
    if (row := table(kind).get((action, parameters))) is not None:
        return row.shows
    names = (f"action_{action}", f"_action_{action}")
    owner = next((one for one in kind.__mro__ if any(name in vars(one) for name in names)), None)
    return owner is None or (owner.__module__.startswith("textual.") and not issubclass(App, owner))


def rebound(rows: Iterable[Action], keymap: Mapping[str, str]) -> list[Action]:
    """The rows with the keys that they have now."""
    return [row.with_key(keymap[row.id]) if row.id in keymap else row for row in rows]  # type: ignore[misc, index]


def shown_keys(app: App[Any], row: Binding) -> list[str]:
    """The keys of a row as users call them."""
    first, *others = (app.get_key_display(Binding(key, "")) for key in row.key.split(","))
    return [row.key_display or first, *others]


def key_name(character: str) -> str:
    """What Textual calls the key of a character: question_mark, comma, A."""
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name) or character


FAR = 10**6  # further than anything reaches
ACROSS = (
    move("right", "arrow(0, 1)", "Right", "to the next value", "arrow.right"),
    move("left", "arrow(0, -1)", "Left", "to the value before", "arrow.left"),
    move("home", f"arrow(0, {-FAR})", "First", "to the first value", "arrow.first"),
    move("end", f"arrow(0, {FAR})", "Last", "to the last value", "arrow.last"),
)
DOWN = (
    move("up", "arrow(-1, 0)", "Up", "to the row above", "arrow.up"),
    move("down", "arrow(1, 0)", "Down", "to the row below", "arrow.down"),
)
CHOOSE = move("enter", "choose", "Choose", "what is under the cursor", "arrow.choose")


class Arrowed:
    """Mixed into a widget: while that has the focus, arrows, Home and End are its own and do not move a recording."""

    def action_arrow(self, rows: int, columns: int) -> None:
        """Move its cursor so far, or to its end if that is nearer."""
        raise NotImplementedError
