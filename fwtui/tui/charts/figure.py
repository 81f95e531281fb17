"""The data of a chart, hashable, so that an equal figure is not drawn twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fwtui.common import units
from fwtui_kernels import rungs

MARKERS = "①②③④⑤⑥⑦⑧⑨⑩"  # markers of series without a kernel
# colours of series; the seventh series has the colour of the first, with another marker
COLOURS = ("$primary", "$text-success", "$text-warning", "$text-error", "$secondary", "$foreground")
# ten for each ten of the ladder's numbers
SHAPES = (
    "●○◐◑◒◓◔◕◉◎",
    "▰▱▮▯▬▭▪▫◘◙",
    "▲△▼▽◀◁▶◬◭◮",
    "▢■□▣▤▥▦▧▨▩",
    "◆◇◈◊❖⬖⬗⬘⬙◌",
    "◢◣◤◥◸◹◺◿◰◱",
    "✚✛✜✢✣✤✥✙✠✞",
    "★☆✦✧✶✪✷✸✹✺",
    "◧◨◩◪◫◲◳◴◵◶",
)
OTHER = "•"  # a kernel that is not on the ladder


def plain(value: float) -> str:
    """Format a number without a unit: 4096, 0.3, 1.25e-05."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:.3g}"


class Axis(NamedTuple):
    """An axis; `low` and `high` fix its ends, `base` 2 places the ticks of a log axis at powers of two."""

    title: str = ""
    text: Callable[[float], str] = plain  # formats a value with its unit
    log: bool = False
    low: float | None = None
    high: float | None = None
    base: int = 10
    whole: bool = False  # the axis counts: ticks at integers only
    ends: bool = False  # a title that would hide the last ticks moves into the line of the axis


class Series(NamedTuple):
    """Points (a gap where either coordinate is None), with a line through them, with a marker at each, or both.

    `names` are the names of the points, if the name of the series is not enough.
    """

    name: str
    xs: tuple[float | None, ...]
    ys: tuple[float | None, ...]
    line: bool = True
    points: bool = True
    names: tuple[str, ...] = ()
    strong: bool = False  # the series under the cursor
    listed: bool = True  # whether the legend names the series
    kernel: str = ""  # id of the kernel that gives marker and colour; without it they follow from the place among the series
    marker: str = ""  # overrides the marker
    limit: bool = False  # a roof: coloured like the rules


class Rule(NamedTuple):
    """A straight line across the plot, such as a peak rate or a crossover."""

    value: float
    label: str
    vertical: bool = False
    short: str = ""  # a shorter label, if the other one does not fit


class Figure(NamedTuple):
    series: tuple[Series, ...] = ()
    x: Axis = Axis()
    y: Axis = Axis()
    rules: tuple[Rule, ...] = ()
    pointwise: bool = False  # the cursor stops at each point, not at each x
    empty: str = "nothing to show yet"


def tick_text(value: float, text: Callable[[float], str]) -> str:
    """Return the label of a tick: the formatted value without trailing zeros (1.00 T becomes 1 T)."""
    number, gap, unit = text(value).partition(" ")
    if "." in number and "e" not in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{gap}{unit}"


def rate_text(value: float) -> str:
    return units.scaled(value, "relax/s")


class Sign(NamedTuple):
    """The unique glyph of a kernel, and the index of its colour in COLOURS."""

    glyph: str
    place: int

    @property
    def colour(self) -> str:
        return COLOURS[self.place]


def sign(kernel: str) -> Sign:
    """Return the sign of the kernel with that id."""
    number = rungs().get(kernel)
    if number is None:
        return Sign(OTHER, len(COLOURS) - 1)
    return Sign(SHAPES[number // 10 - 1][number % 10], number % len(COLOURS))
