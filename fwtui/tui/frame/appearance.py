"""The appearance of the screens: theme, breakpoints and maximum size, and the user's settings and key map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from textual.geometry import Size
from textual.keys import KEY_NAME_REPLACEMENTS, Keys
from textual.theme import BUILTIN_THEMES, Theme

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise, suggest
from fwtui.machine.settings import KEYMAP, Settings
from fwtui.tui.actions import Action, key_name, rebound, table

FWTUI = Theme(
    name="fwtui",
    primary="#56b6c2",
    secondary="#7f96a8",
    accent="#56b6c2",
    warning="#d8a657",
    error="#e5737b",
    success="#8fbf7f",
    foreground="#d3dbe1",
    background="#11161b",
    surface="#161d23",
    panel="#1c252d",
    dark=True,
    variables={
        "border": "#56b6c2",
        "border-blurred": "#2b3741",
        "footer-background": "#161d23",
        "block-cursor-background": "#2b4a52",
        "block-cursor-foreground": "#e8f1f3",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1f3238",
        "input-selection-background": "#56b6c2 35%",
    },
)
THEMES = (FWTUI.name, *BUILTIN_THEMES)
WIDTHS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # minimum columns of each class
HEIGHTS = [(0, "-tiny"), (16, "-flat"), (20, "-short"), (32, "-tall"), (50, "-high")]
MAX_SIZE = (1000, 300)  # columns and rows of the screen
_NAMED = {key.value for key in Keys if not key.value.startswith("<")} | set(KEY_NAME_REPLACEMENTS.values())
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")


DIALOGS = {
    "a dialog": "frame.dialogs:Dialog",
    "the help": "frame.dialogs:HelpScreen",
    "a question": "frame.dialogs:ConfirmScreen",
    "the form": "frame.dialogs:FormScreen",
    "a race": "compare.race:RaceScreen",
    "the ladder": "compare.ladder_screen:LadderScreen",
    "a kernel that is watched": "watch.screen:WatchScreen",
}


class Appearance(NamedTuple):
    theme: str = FWTUI.name
    presenter: bool = False  # large numbers and few panels
    keymap: Mapping[str, str] = {}  # keys by the id of their action
    details: bool = False  # show the origin of each number


DEFAULT = Appearance()


def classes_at(width: int, height: int) -> set[str]:
    """Return the classes of a screen in a terminal of that size."""
    return {max(step for step in steps if step[0] <= size)[1] for size, steps in ((width, WIDTHS), (height, HEIGHTS))}


def bounded(size: Size) -> Size:
    """Clamp a size from the environment, the terminal or a web page."""
    return Size(*(max(1, min(side, most)) for side, most in zip(size, MAX_SIZE, strict=True)))


def load_appearance(settings: Settings | None) -> Appearance:
    """Return the appearance of the settings. Raises Refused for an unknown theme, action or key."""
    if settings is None:
        return DEFAULT
    check(settings)
    keymap = {name: ",".join(normal(key) for key in keys.split(",")) for name, keys in settings.keymap.items()}
    if settings.keymap:
        # if one binding of a key is remapped, Textual removes the key from all its bindings
        for bindings in screens().values():
            remapped = {key for b in bindings if b.id in settings.keymap for key in b.key.split(",")}
            keymap |= {b.id: b.key for b in bindings if b.id and b.id not in keymap and remapped & set(b.key.split(","))}
    return Appearance(settings.text("theme"), settings.text("present") == "yes", keymap)


def check(settings: Settings) -> None:
    """Raise Refused for an invalid setting, naming its file, variable or option."""
    theme = settings.text("theme")
    if theme not in THEMES:
        raise Refused(f"{_origin(settings, 'theme')}: there is no theme {quoted(theme)}; {suggest(theme, THEMES)}")
    groups = screens() if settings.keymap else {}
    by_id = {b.id: b for bindings in groups.values() for b in bindings if b.id}
    for name, keys in settings.keymap.items():
        where = _origin(settings, KEYMAP + name)
        if name not in by_id:
            raise Refused(f"{where}: there is no action {quoted(name)}; {suggest(name, sorted(by_id))}")
        for key in keys.split(","):
            if not normal(key):
                raise Refused(f"{where}: {quoted(key)} is not a key; write a key such as x, f5, ctrl+r or question_mark")
    for screen, bindings in groups.items():
        _check_clashes(screen, bindings, settings)


def normal(key: str) -> str:
    """Return Textual's name for a key; empty if there is no such key."""
    *modifiers, last = key.strip().split("+") if key.strip() != "+" else ["+"]
    if any(m not in _MODIFIERS for m in modifiers) or not last or any(c.isspace() for c in last):
        return ""
    if len(last) == 1:
        last = key_name(last)
    whole = "+".join((*modifiers, last))
    character = len(last) == 1 or (last.isascii() and "_" in last) or last in _NAMED
    return whole if whole in _NAMED or character else ""


def screens() -> dict[str, list[Action]]:
    """Return the rows of every screen and every dialog, by its description."""
    from fwtui.tui.frame.bindings import TO_PLACES
    from fwtui.tui.frame.places import PLACES, load

    found = {title: [*table(load(where)).values()] for title, where in DIALOGS.items()}
    for place in PLACES:
        for where, suffix in ((place.live, ""), (place.recorded, " of a replay")):
            if where:
                found[f"the screen {place.title}{suffix}"] = [*table(load(where)).values(), *TO_PLACES]
    return found


def _check_clashes(screen: str, bindings: list[Action], settings: Settings) -> None:
    """Raise Refused if the key map gives one key two actions."""
    keymap = settings.keymap
    by_key: dict[str, Action] = {}
    for binding in rebound(bindings, keymap):
        for key in map(normal, binding.key.split(",")):
            other = by_key.setdefault(key, binding)
            if other.id != binding.id and (binding.id in keymap or other.id in keymap):
                mine, theirs = (binding, other) if binding.id in keymap else (other, binding)
                where = _origin(settings, f"{KEYMAP}{mine.id}")
                raise Refused(f"{where}: {quoted(key)} is {theirs.id} on {screen} already; choose another key, or remap that one")


def _origin(settings: Settings, name: str) -> str:
    """Return the origin of a setting: an option, a variable, or a file with the key."""
    where = settings.value(name).where
    if where.endswith(".toml") and not where.startswith("--"):
        return f"{sanitise(where.rpartition('/')[2])}: {sanitise(name)}"
    return where
