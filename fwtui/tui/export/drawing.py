"""Rows of a screen as SVG. Block and line characters are drawn as shapes, so that they join in any font."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from rich.cells import cell_len

from fwtui.analysis.html import NOT_XML, escaped
from fwtui.tui.export.film import Film, Ink, Row

WIDTH, HEIGHT, BASELINE = 10, 20, 15  # size of a cell, and the baseline of its letter
LIGHT, HEAVY = 2, 4  # thickness of lines
FONT = "ui-monospace,'SF Mono',SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_SIDES = {"LEFT": "l", "RIGHT": "r", "UP": "u", "DOWN": "d", "HORIZONTAL": "lr", "VERTICAL": "ud"}
_SIGN = "\u2190-\U0010ffff"  # drawn separately, because its font may have another width
_WORDS = re.compile(rf"[{_SIGN}]|[^\s{_SIGN}]+(?: [^\s{_SIGN}]+)*")
_SHADES = dict(zip("░▒▓", (0.25, 0.5, 0.75), strict=True))
_QUADRANTS = dict(zip("▖▗▘▙▚▛▜▝▞▟", ("c", "d", "a", "acd", "ad", "abc", "abd", "b", "bc", "bcd"), strict=True))
_QUADRANT = {"a": (0, 0), "b": (5, 0), "c": (0, 10), "d": (5, 10)}
DOT = 3
_DOTS = ((1, 1), (1, 6), (1, 11), (6, 1), (6, 6), (6, 11), (1, 16), (6, 16))  # in Unicode's order
Box = tuple[float, float, float, float]  # x, y, width, height in a cell


def style_sheet(*films: Film) -> str:
    """Return the CSS classes of the rows. Their names derive from the style, so that films can share rows."""
    # antialiased edges of adjacent cells would let the background through
    rules = [f"text{{font:16px {FONT};white-space:pre;font-variant-ligatures:none}}rect,path{{shape-rendering:crispEdges}}"]
    used = [film.inks[number] for film in films for number in sorted({span.ink for row in film.rows for span in row})]
    rules += dict.fromkeys(f".{_letter_class(ink)}{{fill:{ink.colour}{_letters(ink)}}}" for ink in used)
    rules += dict.fromkeys(f".{_ground_class(ink)}{{fill:{ink.ground}}}" for ink in used if ink.ground != films[0].ground)
    return "".join(rules)


def _letter_class(ink: Ink) -> str:
    flags = zip("bius", (ink.bold, ink.italic, ink.underline, ink.strike), strict=True)
    return f"f{ink.colour[1:]}{''.join(flag for flag, holds in flags if holds)}"


def _ground_class(ink: Ink) -> str:
    return f"g{ink.ground[1:]}"


def _letters(ink: Ink) -> str:
    lines = " ".join(["underline"] * ink.underline + ["line-through"] * ink.strike)
    rules = {"font-weight:700": ink.bold, "font-style:italic": ink.italic, f"text-decoration:{lines}": lines}
    return "".join(f";{rule}" for rule, holds in rules.items() if holds)


def row_svg(row: Row, film: Film) -> str:
    return "".join(parts(row, film))


def parts(row: Row, film: Film) -> Iterator[str]:
    """Yield the SVG of a row: backgrounds, shapes, letters."""
    yield from grounds(row, film)
    yield from signs(row, film)


def signs(row: Row, film: Film) -> Iterator[str]:
    """Yield the SVG of a row without its backgrounds: shapes, letters."""
    yield from _shapes(row, film)
    yield from _letters_of(row, film)


def _placed(row: Row) -> Iterator[tuple[int, str, int]]:
    """Yield every character with its column and its ink. A character of width 0 belongs to the previous one's cell."""
    column = 0
    for text, ink in row:
        for character in text:
            yield column, character, ink
            column += cell_len(character)


def grounds(row: Row, film: Film) -> Iterator[str]:
    column = 0
    for ground, spans in groupby(row, key=lambda span: film.inks[span.ink].ground):
        whole = [*spans]
        cells = sum(cell_len(span.text) for span in whole)
        if ground != film.ground and cells:
            size = f'width="{WIDTH * cells}" height="{HEIGHT}"'
            yield f'<rect class="{_ground_class(film.inks[whole[0].ink])}" x="{WIDTH * column}" {size}/>'
        column += cells


def _shapes(row: Row, film: Film) -> Iterator[str]:
    paths: dict[tuple[int, float], list[str]] = {}
    drawable = [(x, c, ink) for x, c, ink in _placed(row) if _is_shape(c)]
    while drawable:
        x, character, ink = drawable.pop(0)
        cells = 1
        while drawable and drawable[0] == (x + cells, character, ink):
            drawable.pop(0)
            cells += 1
        path = paths.setdefault((ink, _SHADES.get(character, 1.0)), [])
        for left, top, width, height in boxes(character):
            if (left, width) == (0, WIDTH):  # full-width boxes of adjacent cells become one box
                path.append(_box(WIDTH * x, top, WIDTH * cells, height))
            else:
                path += [_box(WIDTH * (x + cell) + left, top, width, height) for cell in range(cells)]
    for (ink, opacity), boxed in paths.items():
        faint = f' opacity="{opacity}"' if opacity < 1 else ""
        yield f'<path class="{_letter_class(film.inks[ink])}"{faint} d="{"".join(boxed)}"/>'


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z"


def _letters_of(row: Row, film: Film) -> Iterator[str]:
    for ink, group in groupby(_placed(row), key=lambda placed: placed[2]):
        columns: list[int] = []
        text = ""
        for x, character, _ in group:
            columns.append(x)
            text += " " if _is_shape(character) or NOT_XML.match(character) else character
        columns.append(columns[-1] + cell_len(text[-1]))
        for word in _WORDS.finditer(text):
            x, cells = columns[word.start()], columns[word.end()] - columns[word.start()]
            if cells:
                # only signs are scaled, because their font may have another width
                scaled = ' lengthAdjust="spacingAndGlyphs"' if word[0] >= _SIGN[0] else ""
                fit = f'x="{WIDTH * x}" y="{BASELINE}" textLength="{WIDTH * cells}"{scaled}'
                yield f'<text class="{_letter_class(film.inks[ink])}" {fit}>{escaped(word[0])}</text>'


def _is_shape(character: str) -> bool:
    return "\u2800" <= character <= "\u28ff" or ("\u2500" <= character <= "\u259f" and bool(boxes(character)))


@lru_cache(maxsize=256)
def boxes(character: str) -> Sequence[Box]:
    """Return the boxes that draw a block or line character in its cell; empty if the font draws it."""
    code = ord(character)
    if character in _SHADES:
        return ((0, 0, WIDTH, HEIGHT),)
    if character in _QUADRANTS:
        return [(*_QUADRANT[part], WIDTH / 2, HEIGHT / 2) for part in _QUADRANTS[character]]
    if 0x2800 <= code <= 0x28FF:  # braille, used by charts: one bit per dot
        return [(x, y, DOT, DOT) for bit, (x, y) in enumerate(_DOTS) if code >> bit & 1]
    if 0x2581 <= code <= 0x2588:
        height = HEIGHT * (code - 0x2580) / 8
        return ((0, HEIGHT - height, WIDTH, height),)
    if 0x2589 <= code <= 0x258F:
        return ((0, 0, WIDTH * (0x2590 - code) / 8, HEIGHT),)
    shapes = {"▀": (0, 0, WIDTH, 10), "▐": (5, 0, 5, HEIGHT), "▔": (0, 0, WIDTH, 2.5), "▕": (8.75, 0, 1.25, HEIGHT)}
    if character in shapes:
        return (shapes[character],)
    return _lines(character)


def _lines(character: str) -> Sequence[Box]:
    """Return the boxes of a box-drawing character: a line from the middle to each side in its Unicode name."""
    name = unicodedata.name(character, "").removeprefix("BOX DRAWINGS ")
    name_parts = name.split()
    if not set(name_parts) <= {*_SIDES, "LIGHT", "HEAVY", "AND", "ARC"}:
        return ()  # dashed, doubled or slanted
    arms: dict[str, int] = {}
    for clause in name.split(" AND "):
        weights = [word for word in clause.split() if word in ("LIGHT", "HEAVY")] or [name_parts[0]]
        for word in clause.split():
            arms |= dict.fromkeys(_SIDES.get(word, ""), HEAVY if weights[0] == "HEAVY" else LIGHT)
    across, down = (max(arms.get(side, 0) for side in sides) for sides in ("lr", "ud"))
    return [(a, (HEIGHT - w) / 2, b, w) for a, b, w in _arms(arms, "lr", WIDTH, down)] + [
        ((WIDTH - w) / 2, a, w, b) for a, b, w in _arms(arms, "ud", HEIGHT, across)
    ]


def _arms(arms: dict[str, int], sides: str, length: int, met: int) -> Iterator[tuple[float, float, int]]:
    """Yield start, length and thickness of the lines along one axis. A line ends at the far edge of the line that it meets."""
    first, second = (arms.get(side, 0) for side in sides)
    if first == second:
        if first:
            yield 0, length, first
        return
    half = (length + met) / 2
    if first:
        yield 0, half, first
    if second:
        yield length - half, half, second
