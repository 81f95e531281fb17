"""Everything on the screen in ASCII, cell by cell: for terminals and fonts that have nothing else."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from fwtui.tui.charts.kernel_signs import SHAPES

UNKNOWN = "?"
_SIGNS = {
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
    **dict(zip("▏▎▍▌▋▊▉▐▕", "|||||||||", strict=True)),
    **dict(zip("░▒▓•·", ".:%*.", strict=True)),
    **{sign: plain for pair in SHAPES for sign, plain in zip(*pair, strict=True)},  # of kernels: no two alike
    **dict(zip("▸►▹▷→›⏎↪", ">>>>>><>", strict=True)),
    **dict(zip("◂◄←‹↑▴⌃↓▾⌄", "<<<<^^^vvv", strict=True)),
    **dict(zip("✓✔✗✘✖×…±°²³µμ–—‖▔▀", "vvxxxx>~'23uu--|-\"", strict=True)),
    "\u00a0": " ",
    "━": "=",
    "∞": "-",  # no path, as a weight that is typed says it
    "╸": ">",  # the half cell at the end of a bar: shorter than a whole one, more than none
}
_DOTS = " ..::**##"  # a braille cell by how many of its eight dots are set


class Plain(LineFilter):
    """A cell stays a cell, so nothing moves."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.control or segment.text.isascii() else Segment(plain(segment.text), segment.style)
            for segment in segments
        ]


def plain(text: str) -> str:
    """The text in ASCII, as many cells wide as it was."""
    return "".join(_plain(character) for character in text)


@lru_cache(maxsize=2048)
def _plain(character: str) -> str:
    if character.isascii():
        return character
    sign = _SIGNS.get(character)
    if sign is not None:
        return sign
    if "\u2500" <= character <= "\u257f":
        words = set(unicodedata.name(character).split())
        across, down = words & {"HORIZONTAL", "LEFT", "RIGHT"}, words & {"VERTICAL", "UP", "DOWN"}
        dashed = "DASH" in words
        return "+" if across and down else ("-" if across else "|") if across or down or dashed else "+"
    if "\u2800" <= character <= "\u28ff":
        return _DOTS[(ord(character) - 0x2800).bit_count()]
    width = cell_len(character)
    letter = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return letter if len(letter) == width else UNKNOWN * width
