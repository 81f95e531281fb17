"""Dim text that stays legible: a contrast of at least 4.5:1 with its background, in every theme."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import BLACK, WHITE, Color
from textual.filter import LineFilter

MIN_CONTRAST = 4.5  # WCAG 2.2, success criterion 1.4.3
DIM = 66  # percent of the text's colour in dim text, the rest is background; more if the contrast would be too low


class LegibleDim(LineFilter):
    """Replace the attribute dim by a colour between text and background."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [one._replace(style=_dimmed(one.style, background)) if one.style and one.style.dim else one for one in segments]


LEGIBLE_DIM = LegibleDim()  # one object, because Textual caches lines by their filter


def contrast(one: Color, other: Color) -> float:
    """Return the contrast ratio of two opaque colours, from 1 to 21, as WCAG defines it."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@lru_cache(maxsize=4096)
def _dimmed(style: Style, background: Color) -> Style:
    if style.color is None:
        return style
    ground = background if style.bgcolor is None or style.bgcolor.is_default else Color.from_rich_color(style.bgcolor)
    colour = Color.from_rich_color(style.color)
    if contrast(colour, ground) < MIN_CONTRAST:  # not even the full colour is legible
        colour = max(BLACK, WHITE, key=lambda extreme: contrast(extreme, ground))
    blends = (ground.blend(colour, percent / 100) for percent in range(DIM, 101))
    legible = next((blend for blend in blends if contrast(blend, ground) >= MIN_CONTRAST), colour)
    return style + Style(color=legible.rich_color, dim=False)
