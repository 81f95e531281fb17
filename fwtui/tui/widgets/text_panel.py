"""Widgets of a few lines of text, drawn again only when their subject or their width changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from fwtui.common.text import truncate

Subject = TypeVar("Subject")
Piece = str | Content | tuple[str, str]  # plain text, Content, or text with a style made of theme variables

DEFAULT_WIDTH = 80
MUTED = "dim"
STRONG = "bold"
SHARES = "? %"
VEILED = "-veiled"  # the class of a widget that hides the answer to a question and keeps its space
_BAR = re.compile("[▆━╸─]+")
_SHARE = re.compile(r"(?<!± )(?<!± < )(?<![\d.,])\d[\d.,]* %")
_NUMBER = re.compile(r"\d[\d.,]*(?: [kMGT](?:B/s)?\b| [um]?s\b| %|x\b)?")


def line(*pieces: Piece) -> Content:
    """Assemble one line of text, without reading markup."""
    return Content.assemble(*pieces)


def justify(left: Content, right: Content, width: int) -> Content:
    """Place two texts at the ends of a line of `width` cells; the left one is truncated if necessary."""
    right = right.truncate(width, ellipsis=True)
    room = width - right.cell_length - 2
    if room < 8:
        return right
    left = left.truncate(room, ellipsis=True)
    return Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)


def longest(lines: Iterable[Content], width: int) -> Content:
    """Return the first line that fits, of lines in order of decreasing length; the last one if none fits."""
    whole = line("")
    for whole in lines:
        if whole.cell_length <= width:
            break
    return whole


def whole_clauses(text: str, width: int) -> str:
    """Return as many complete clauses of a text as fit; truncate within a clause if less than half of the width is used."""
    if len(text) <= width:
        return text
    ends = [found.start() for found in re.finditer(r" · |[,;:] ", text) if width // 2 <= found.start() <= width]
    return text[: ends[-1]] if ends else truncate(text, width)


def hanging_indent(label: str, indent: int, parts: Sequence[str], width: int, style: str = "", most: int = 3) -> list[Content]:
    """Wrap parts to the right of a label, in at most `most` lines, with breaks between parts if possible."""
    room = max(width - indent, 10)
    lines: list[Content] = []
    begins: set[int] = set()  # lines that start with another part
    for part in parts:
        if lines and lines[-1].cell_length + 3 + Content(part).cell_length <= room:
            lines[-1] = line(lines[-1], f" · {part}")
        else:
            begins.add(len(lines))
            lines += Content(part).wrap(room)
    while len(lines) > most:
        last = lines.pop(most)
        lines[most - 1] = line(lines[most - 1], " · " if most in begins else " ", last)
        begins = {place - (place > most) for place in begins - {most}}
    return [line((f"{label if place == 0 else '':<{indent}}", MUTED), part.stylize(style)) for place, part in enumerate(lines)]


def indented(head: Content, text: str, width: int, style: str = "") -> list[Content]:
    """Wrap a text to the right of its head."""
    first, *others = Content(text).wrap(max(width - head.cell_length, 12)) or [Content("")]
    return [line(head, first.stylize(style)), *(line(" " * head.cell_length, other.stylize(style)) for other in others)]


def masked(row: Content) -> Content:
    """Return a line with an empty bar and a question mark; without a bar, a question mark for each number."""
    text = row.plain
    if (bar := _BAR.search(text)) is None:
        return line((_NUMBER.sub("?", text), MUTED))
    number = _NUMBER.search(text, bar.end())
    end = number.start() if number is not None else bar.end()
    return line(row[: bar.start()], ("─" * (end - 2 - bar.start()), MUTED), ("  ?", STRONG))


class TextPanel(Widget, Generic[Subject]):
    """The lines of one subject, or NOTHING if it is None; showing an equal subject costs nothing."""

    DEFAULT_CSS = "TextPanel { height: auto; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }"
    NOTHING: ClassVar[Sequence[Content]] = ()

    def __init__(self, subject: Subject, *, id: str | None = None, classes: str | None = None):
        super().__init__(id=id, classes=classes)
        self.subject = subject
        self._lines: list[Content] = []
        self._width = -1
        # while veiled: beginnings of the lines without numbers; SHARES: no percentages but ± ones; None: all blank
        self.masked: tuple[str, ...] | None = None
        self._laid_out: tuple[int, int] | None = None  # width and number of lines at the last layout

    @property
    def lines(self) -> Sequence[Content]:
        """The lines for the present width; for DEFAULT_WIDTH before the first layout."""
        return self._drawn(self.size.width or DEFAULT_WIDTH)

    def show(self, subject: Subject) -> None:
        """Replace the subject."""
        if subject == self.subject:
            return
        if not self.display:  # drawn and laid out once it is visible
            self.subject, self._width = subject, -1
            return
        before = self.lines
        self.subject = subject
        self._width = -1
        now = self.lines
        # the layout may be newer than the size
        width, height = self._laid_out or (self.size.width or DEFAULT_WIDTH, len(before))
        moved = len(now) != len(before) or len(self._drawn(width)) != height
        # == of two Contents compares only their text
        if self.size.width and not moved and all(new.is_same(old) for new, old in zip(now, before, strict=True)):
            return  # unchanged
        self.refresh(layout=moved)

    def draw(self, subject: Any, width: int) -> Sequence[Content]:
        """Return the lines of a subject for a width in cells."""
        raise NotImplementedError

    def render(self) -> Content:
        lines = self._drawn(self.size.width)
        return Content("\n").join(map(self._veiled, lines) if self.has_class(VEILED) else lines)

    def _veiled(self, row: Content) -> Content:
        if self.masked is None:
            return Content("")
        if row.plain.strip().startswith(self.masked):
            return masked(row)
        shares = SHARES in self.masked and _SHARE.search(row.plain)
        return line((_SHARE.sub("?", row.plain), MUTED)) if shares else row

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._laid_out = width, len(self._drawn(width))
        return self._laid_out[1]

    def _drawn(self, width: int) -> list[Content]:
        if width != self._width:
            self._width = width
            lines = self.NOTHING if self.subject is None else self.draw(self.subject, width) if width > 0 else ()
            self._lines = [part.truncate(max(width, 0), ellipsis=True) for part in lines]
        return self._lines


class Update(TextPanel[tuple[str, ...]]):
    """Sentences on separate lines, the first one in bold; text after a gap of two spaces wraps to the right of the gap."""

    def draw(self, subject: tuple[str, ...], width: int) -> Sequence[Content]:
        rows: list[Content] = []
        for place, text in enumerate(subject):
            style = MUTED if place else STRONG
            head = found[0] if (found := re.match(r".+? {2,}", text)) else ""
            rows += indented(line((head, style)), text[len(head) :], width, style)
        return rows
