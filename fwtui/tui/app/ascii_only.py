"""Everything on the screen in ASCII, cell by cell: for terminals and fonts that have nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from fwtui.common.spark import ASCII_BARS, BARS
from fwtui.tui.charts.figure import SHAPES

UNKNOWN = "?"
_SIGNS = {
    **dict(zip(BARS, ASCII_BARS, strict=True)),
    **dict(zip("▏▎▍▌▋▊▉▐▕", "|||||||||", strict=True)),
    **dict(zip("░▒▓•·", ".:%*.", strict=True)),
    **{sign: plain for pair in SHAPES for sign, plain in zip(*pair, strict=True)},  # of kernels: no two alike
    **dict(zip("▸►▹▷›⏎↪", ">>>>><>", strict=True)),
    **dict(zip("◂◄←‹↑▴⌃↓▾⌄", "<<<<^^^vvv", strict=True)),
    **dict(zip("✗✘✖×°²³µμ–—‖▔▀↻", 'xxxx 23uu--|-"@', strict=True)),
    **dict.fromkeys("▖▗▘▙▚▛▜▝▞▟", "+"),
    "⑩": "0",
    "⌫": "<",
    "🔎": "> ",
    "\u00a0": " ",
    "━": "=",
    "∞": "-",  # no path, as a weight that is typed says it
    "╸": ">",  # the half cell at the end of a bar: shorter than a whole one, more than none
}
_LONGER = {"✓": "ok", "✔": "ok", "±": "+-", "…": "..", "≤": "<=", "≥": ">=", "→": "->"}
_SHORTER = {"✓": "+", "✔": "+", "±": "+", "…": ".", "≤": "<", "≥": ">", "→": ">"}  # where a line has no cell to spare
_LINES = re.compile("[\u2500-\u257f]")  # nothing is moved across them
_DOTS = " ..::**##"  # a braille cell by how many of its eight dots are set


class Plain(LineFilter):
    """A line stays as wide as it was."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        text = "".join(segment.text for segment in segments if not segment.control)
        if text.isascii():
            return segments
        if not _LONGER.keys() & set(text):
            return [s if s.control or s.text.isascii() else Segment(plain(s.text), s.style) for s in segments]
        # each character takes its style along where it moves
        styled = [(character, s.style) for s in segments if not s.control for character in s.text]
        ascii_segments = [Segment(text, styled[place][1]) for text, place in _made(text)]
        return [*(s for s in segments if s.control), *Segment.simplify(ascii_segments)]


def plain(text: str) -> str:
    """The text in ASCII, as many cells wide as it was."""
    return "".join(made for made, _ in _made(text))


def _made(text: str) -> list[tuple[str, int]]:
    """The substitute for each character, and its place. One that is wider takes a cell from a space nearby."""
    characters = [(_plain(character), place) for place, character in enumerate(text)]
    for place, character in enumerate(text):
        if character in _LONGER:
            spare = _spare(text, characters, place)
            characters[place] = (_LONGER[character] if spare is not None else _SHORTER[character], place)
            if spare is not None:
                characters[spare] = ("", spare)
    return characters


def _spare(text: str, characters: Sequence[tuple[str, int]], here: int) -> int | None:
    """The place of the nearest space that can be dropped: between ± and its number, beside another space, or at the line's end.

    A text that was cut loses another character if there is none.
    """
    if text[here] == "±" and text[here + 1 : here + 2] == " " and text[here + 2 : here + 3].isdecimal():
        return here + 1
    left = [place for place, (sign, _) in enumerate(characters) if sign]

    def may_go(at: int) -> bool:
        if characters[left[at]][0] != " ":
            return False
        return at + 1 == len(left) or characters[left[at + 1]][0] == " " or (at > 0 and characters[left[at - 1]][0] == " ")

    middle = left.index(here)
    for way in (range(middle + 1, len(left)), range(middle - 1, -1, -1)):
        for at in way:
            if _LINES.match(text[left[at]]):
                break
            if may_go(at):
                return left[at]
    cut = text.find("…", here)
    return next((place for place in reversed(left) if place < cut and place != here and text[place] not in _LONGER), None)


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
