"""The table of actions: each row supplies footer, palette, help, read-only mode and the reason if unavailable."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from textual.actions import parse
from textual.app import App
from textual.binding import Binding
from textual.keys import KEY_NAME_REPLACEMENTS

READ_ONLY = "read-only here: replays and the course; nothing is run, recorded, saved or changed"
Reason = Callable[[Any], str | None]  # takes the screen; None if the action is available now, else the reason why it is not


class KeyNames:
    """Names of the keys of a screen, by the ids of their rows."""

    def __init__(self, screen: Any):
        self._screen = screen

    def __getitem__(self, id: str) -> str:
        return self._screen.key_of(id)


def filled_in(text: str, screen: Any) -> str:
    """Fill in the placeholders of a text: names of keys, {key[cancel]}, and attributes of the screen."""
    return text.format(screen=screen, key=KeyNames(screen))


def require(holds: Callable[[Any], object], text: str) -> Reason:
    """Return a reason that applies if the condition does not hold for the screen: the text with its placeholders filled in."""
    return lambda screen: None if holds(screen) else filled_in(text, screen)


def first_reason(*reasons: Reason) -> Reason:
    """Combine reasons; the first that applies counts."""
    return lambda screen: next((text for reason in reasons if (text := reason(screen)) is not None), None)


always = first_reason()


@dataclass(frozen=True)
class Action(Binding):
    """A row of the table: a binding of Textual, with the condition under which it is available."""

    unavailable: Reason = always  # a sentence; "" if the reason is visible or the key has another action
    shows: bool = False  # changes nothing, so that a read-only dashboard has it
    belongs: Callable[[Any], object] = bool  # False for a view without this action, whose help omits it
    place: str = ""  # the only screen that has it; other screens name its key after the key of that screen
    deliberate: bool = False  # no key of a typed word triggers it
    title_now: Callable[[Any], str] | None = None  # the footer's title, if it depends on the state of the screen


def bound(keys: str, action: str, title: str, tooltip: str, unavailable: Reason = always, id: str = "", **more: Any) -> Action:
    """Return a row; its id defaults to its action, and `more` sets other fields."""
    return Action(keys, action, title, tooltip=tooltip, id=id or action, unavailable=unavailable, **more)


def move(keys: str, action: str, title: str, tooltip: str, id: str) -> Action:
    """Return the row of an action that moves the cursor of a widget."""
    return hidden_look(keys, action, title, tooltip, id=id)


look = partial(bound, shows=True)
hidden = partial(bound, show=False)  # omitted from the footer
hidden_look = partial(hidden, shows=True)


def rows_of(kind: type) -> Iterator[Action]:
    """Yield the rows of a class of screens, widgets or applications, those of its bases first."""
    for one in reversed(kind.__mro__):
        yield from (row for row in vars(one).get("BINDINGS", ()) if isinstance(row, Action))


@cache
def table(kind: type) -> Mapping[tuple[str, tuple[Any, ...]], Action]:
    """Return the rows of a class by their method and its arguments."""
    return {parse(row.action)[1:]: row for row in rows_of(kind) if row.action}


def is_read_only(kind: type, action: str, parameters: tuple[Any, ...]) -> bool:
    """Return True if the action changes nothing: its row is marked so, or it belongs to a widget of Textual."""
    if (row := table(kind).get((action, parameters))) is not None:
        return row.shows
    names = (f"action_{action}", f"_action_{action}")
    owner = next((one for one in kind.__mro__ if any(name in vars(one) for name in names)), None)
    return owner is None or (owner.__module__.startswith("textual.") and not issubclass(App, owner))


def shown_keys(app: App[Any], row: Binding) -> list[str]:
    """Return the displayed names of a row's keys."""
    first, *others = (app.get_key_display(Binding(key, "")) for key in row.key.split(","))
    return [row.key_display or first, *others]


def key_name(character: str) -> str:
    """Return Textual's name for the key of a character: question_mark, comma, A."""
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name) or character


FAR = 10**6  # greater than every number of rows or columns
ACROSS = (
    move("right", "arrow(0, 1)", "Right", "to the next value", "arrow.right"),
    move("left", "arrow(0, -1)", "Left", "to the previous value", "arrow.left"),
)
ENDS = (
    move("home", f"arrow(0, {-FAR})", "First", "to the first value", "arrow.first"),
    move("end", f"arrow(0, {FAR})", "Last", "to the last value", "arrow.last"),
)
DOWN = (
    move("up", "arrow(-1, 0)", "Up", "to the row above", "arrow.up"),
    move("down", "arrow(1, 0)", "Down", "to the row below", "arrow.down"),
)
CHOOSE = move("enter", "choose", "Choose", "the value under the cursor", "arrow.choose")


class Arrowed:
    """Mixin for a widget with a cursor; the keys that it binds do not move a recording while it has the focus."""

    def action_arrow(self, rows: int, columns: int) -> None:
        """Move the cursor by that much, or to the end if that is nearer."""
        raise NotImplementedError
