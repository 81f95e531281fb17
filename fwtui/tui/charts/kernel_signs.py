"""A sign for each kernel, the same in every chart: from its number on the ladder, so that no other kernel changes it."""

from __future__ import annotations

from typing import NamedTuple

from fwtui.tui.charts.figure import COLOURS
from fwtui_kernels import rungs

# ten for each ten of the ladder's numbers, and their substitutes in ASCII
SHAPES = (
    ("●○◐◑◒◓◔◕◉◎", "*oCDUnqQ0O"),
    ("▰▱▮▯▬▭▪▫◘◙", "%zIi~_,;8B"),
    ("▲△▼▽◀◁▶◬◭◮", "^AvV<(>Ydb"),
    ("▢■□▣▤▥▦▧▨▩", "u#&HEmWNRM"),
    ("◆◇◈◊❖⬖⬗⬘⬙◌", "@$G!X{}[]'"),
    ("◢◣◤◥◸◹◺◿◰◱", "JLF7rTljPp"),
    ("✚✛✜✢✣✤✥✙✠✞", "+tSywhkfKg"),
    ("★☆✦✧✶✪✷✸✹✺", "1234569eac"),
    ("◧◨◩◪◫◲◳◴◵◶", ')=?/\\:"`|-'),
)
OTHER = "•"  # a kernel that is not on the ladder


class Sign(NamedTuple):
    """A glyph that no other kernel has, and a colour as its place among COLOURS."""

    glyph: str
    place: int

    @property
    def colour(self) -> str:
        return COLOURS[self.place]


def sign(kernel: str) -> Sign:
    """The sign of the kernel with that id."""
    number = rungs().get(kernel)
    if number is None:
        return Sign(OTHER, len(COLOURS) - 1)
    glyphs, _ = SHAPES[number // 10 - 1]
    return Sign(glyphs[number % 10], number % len(COLOURS))
