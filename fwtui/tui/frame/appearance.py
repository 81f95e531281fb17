"""The appearance of the screens: theme, breakpoints and maximum size, and the user's settings."""

from __future__ import annotations

from typing import NamedTuple

from textual.geometry import Size
from textual.theme import BUILTIN_THEMES, Theme

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise, suggest
from fwtui.machine.settings import Settings

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


class Appearance(NamedTuple):
    theme: str = FWTUI.name
    presenter: bool = False  # large numbers and few panels
    details: bool = False  # show the origin of each number


DEFAULT = Appearance()


def classes_at(width: int, height: int) -> set[str]:
    """Return the classes of a screen in a terminal of that size."""
    return {max(step for step in steps if step[0] <= size)[1] for size, steps in ((width, WIDTHS), (height, HEIGHTS))}


def bounded(size: Size) -> Size:
    """Clamp a size from the environment, the terminal or a web page."""
    return Size(*(max(1, min(side, most)) for side, most in zip(size, MAX_SIZE, strict=True)))


def load_appearance(settings: Settings | None) -> Appearance:
    """Return the appearance of the settings. Raises Refused for an unknown theme."""
    if settings is None:
        return DEFAULT
    check(settings)
    return Appearance(settings.text("theme"), settings.text("present") == "yes")


def check(settings: Settings) -> None:
    """Raise Refused for an unknown theme, naming its file, variable or option."""
    theme, where = settings.text("theme"), settings.value("theme").where
    if theme not in THEMES:
        file = where.endswith(".toml") and not where.startswith("--")
        origin = f"{sanitise(where.rpartition('/')[2])}: theme" if file else where
        raise Refused(f"{origin}: there is no theme {quoted(theme)}; {suggest(theme, THEMES)}")
