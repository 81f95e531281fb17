"""The source of a kernel with highlighting; the functions of the current step are marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from textwrap import dedent
from typing import NamedTuple

from pygments.token import Token
from textual.content import Content
from textual.highlight import HighlightTheme, highlight

from fwtui.experiment.experiment import Experiment
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.learn.kernel_source import SourcePart, innermost, source
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, line

RUNS, RELAXES, CONTINUED = "▌", "*", "↪"
LEGEND = f"{RUNS} runs now · {RELAXES} relaxes · {CONTINUED} continued line"
LIT = "on $primary 15%"
GUTTER = 7  # cells of a line's number and signs
ABOVE = 4  # lines before the relaxation of a long function
MIN_CODE = 20  # cells of code in a line on the narrowest screen


class Running(NamedTuple):
    """A kernel by its id, and the op of the current step; empty before the first step."""

    kernel: str
    op: str = ""


class SourceView(TextPanel[Running]):
    """The source; long lines wrap."""

    begins = 0  # row of the function that runs
    relaxes = 0  # row of its first relaxation

    def draw(self, subject: Running, width: int) -> Sequence[Content]:
        rows: list[Content] = []
        self.begins = self.relaxes = 0
        for part in source(subject.kernel, dense=True):  # the functions that small graphs launch
            if subject.op in part.own:
                self.begins = len(rows)
            rows.append(line((part.file, MUTED)))
            runs = subject.op in part.ops
            for number, code in enumerate(_coloured(part), part.first):
                relaxes = number in part.relaxing
                if runs and relaxes and not self.relaxes:
                    self.relaxes = len(rows)
                rows += _numbered(number, code, runs, relaxes, width)
        return rows

    def top(self, height: int) -> int:
        """Return the row to scroll to, so that `height` rows show the running function, or else its first relaxation."""
        if self.relaxes < self.begins + height:
            return self.begins
        return self.relaxes - height // 2


def excerpt(experiment: Experiment, op: str, most: int, width: int) -> list[Content]:
    """Return at most `most` rows around the innermost relaxation of an op, with its function's name; empty if unknown."""
    known = experiment.kernel in known_kernels()
    part = innermost(source(experiment.kernel, options=experiment.options), op) if known else None
    if part is None:
        return []
    relaxes = min(part.relaxing) - part.first
    first = relaxes - ABOVE if relaxes + ABOVE > most else 0
    lines = [*enumerate(_coloured(part), part.first)]
    head = [one for one in lines[:first] if one[1].plain.startswith("def ")][-1:]
    rows = [
        row for number, code in [*head, *lines[first:]] for row in _numbered(number, code, False, number in part.relaxing, width)
    ]
    return [line((part.file, MUTED)), *rows[:most]]


@lru_cache(maxsize=64)  # each step of a plan draws the same lines
def _coloured(part: SourcePart) -> Sequence[Content]:
    """Return the highlighted lines of a part without common indentation."""
    text = dedent("\n".join(part.lines))
    return highlight(text, language="python" if part.file.endswith(".py") else "cpp", theme=_Theme).split("\n", allow_blank=True)


def _numbered(number: int, code: Content, runs: bool, relaxes: bool, width: int) -> list[Content]:
    """Return the rows of a source line."""
    indent = len(code.plain) - len(code.plain.lstrip())
    room = max(width - GUTTER, MIN_CODE)
    pieces = list(_broken(code, room, indent + 4))
    signs = ((RUNS if runs else " ", "$primary"), (RELAXES if relaxes else " ", f"{STRONG} $text-primary"))
    rows: list[Content] = []
    for place, piece in enumerate(pieces):
        head = f"{number:>4} " if place == 0 else f"{CONTINUED:>4} "
        style = " ".join([LIT] * runs + [STRONG] * relaxes)
        rows.append(line((head, MUTED), *signs, piece.pad_right(room - piece.cell_length).stylize(style) if style else piece))
    return rows


def _broken(code: Content, room: int, indent: int) -> Iterator[Content]:
    """Cut a line into pieces that fit, after a space if possible; later pieces are indented."""
    while code.cell_length > room:
        at = code.plain.rfind(" ", len(code.plain) - len(code.plain.lstrip()) + 1, room) + 1 or room
        yield code[:at].rstrip()
        code = code[at:]
        code = code.pad_left(indent if indent + 8 < room else 4)
    yield code


class _Theme(HighlightTheme):
    """Highlighting without colours for plain names."""

    STYLES = {
        Token.Comment: "$text-muted italic",
        Token.Keyword: "$text-accent",
        Token.Keyword.Constant: "$text-warning",
        Token.Operator.Word: "$text-accent",
        Token.Literal.Number: "$text-warning",
        Token.Literal.String: "$text-success",
        Token.Name.Builtin: "$text-secondary",
        Token.Name.Function: "bold",
        Token.Name.Decorator: "$text-secondary",
    }
