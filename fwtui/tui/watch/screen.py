"""The Watch screen: a user kernel is checked at each save. It shows the verdict, the findings, the wrong cells and the times."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from fwtui.analysis.plan_checks import describe_rect
from fwtui.common import units
from fwtui.common.errors import os_error_reason
from fwtui.common.text import sanitise
from fwtui.learn.prompts import Prompt, Prompted
from fwtui.live.watch_events import (
    DERIVED,
    HINT,
    LINE,
    NOTE,
    REASON,
    TIME,
    VERDICT,
    Activity,
    CheckEnd,
    CheckStart,
    Report,
    Superseded,
    WatchUpdate,
)
from fwtui.live.watch_loop import WatchLoop
from fwtui.stream.kernel_tests import Finding, Where, repeated, repeated_cases
from fwtui.tui.actions import bound, hidden_look
from fwtui.tui.background import in_background
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.widgets.large import Large
from fwtui.tui.widgets.matrix import Pixels
from fwtui.tui.widgets.spark import spark
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, indented, line
from fwtui_kernels.own import source_of

RIGHT, OUTLINE, WRONG = range(3)  # kinds of cells in the picture of a result
CELL_STYLES = ("$border-blurred", "$foreground", "$error")  # opaque, because two of them share a terminal cell
CELL_GLYPHS = "·+#"
KEYS = "{key[watch.edit]}: edit it · {key[dialog.close]}: leave"
AROUND, AROUND_LOW = 13, 10  # rows of the screen without the matrix
LOW = 20  # rows of the screen below which the verdict has one line
NARROWEST, WIDEST = 18, 64  # columns of the matrix
MAX_PROMPT = 30  # maximum percentage of the screen's rows for the prompt of the course
EDITOR = "vi"
TO_LINE = ("vi", "vim", "nvim", "nano", "emacs", "micro", "kak", "joe")  # editors that take +LINE
MARKS = {None: ("  ", MUTED), True: ("✓ ", "$text-success"), False: ("✗ ", "$text-error")}
VERDICTS = {None: ("NOT TESTED", "$warning"), True: ("RIGHT", "$success"), False: ("NOT RIGHT", "$error")}


class WrongCells(TextPanel[Where | None]):
    """The wrong cells of a result in red, and an outline around the write that caused the first ones."""

    def __init__(self, where: Where | None = None, rows: int = 0):
        super().__init__(where)
        self._rows = rows  # of the picture

    def fit(self, rows: int) -> None:
        if rows != self._rows:
            self._rows, self._width = rows, -1
            self.refresh(layout=True)

    def draw(self, subject: Where, width: int) -> Sequence[Content]:
        rows = min(self._rows, width // 2)
        if rows < 1:
            return []
        plain = self.app.no_color
        grid = wrong_pixels(subject, 2 * rows, rows if plain else 2 * rows)
        if plain:
            lines = [line(*((CELL_GLYPHS[part], CELL_STYLES[part]) for part in row)) for row in grid]
        else:
            pairs = (zip(above, below, strict=True) for above, below in zip(grid[0::2], grid[1::2], strict=True))
            lines = [line(*(("▀", f"{CELL_STYLES[up]} on {CELL_STYLES[low]}") for up, low in row)) for row in pairs]
        legend = line((CELL_GLYPHS[WRONG] if plain else "■", CELL_STYLES[WRONG]), (f" wrong, of n = {subject.n}", MUTED))
        if (outlined := subject.block or subject.rect) is not None:
            sign = line((CELL_GLYPHS[OUTLINE] if plain else "□", CELL_STYLES[OUTLINE]))
            return [*lines, legend, *indented(line(sign, " "), f"{describe_rect(outlined)}: where it began", width, MUTED)]
        return [*lines, legend]


def wrong_pixels(where: Where, width: int, height: int) -> Pixels:
    """Return the wrong cells as pixels, each at least one pixel, and an outline around the rectangle of the first wrong write."""
    cells, n = where.cells(), where.n
    across, down = max(1, width - 2), max(1, height - 2)
    grid = [bytearray(width) for _ in range(height)]

    def span(first: int, end: int, pixels: int) -> range:
        first, end = (min(max(place, 0), n) for place in (first, end))
        return range(1 + first * pixels // n, 1 + max(-(-end * pixels // n), first * pixels // n + 1))

    outlined = where.block or where.rect
    if outlined is not None:
        rows, columns = span(outlined.top, outlined.bottom, down), span(outlined.left, outlined.right, across)
        for y in range(rows.start - 1, rows.stop + 1):
            for x in range(columns.start - 1, columns.stop + 1):
                if (y not in rows or x not in columns) and y < height and x < width:
                    grid[y][x] = OUTLINE
    for i, j in zip(*(places.tolist() for places in cells.nonzero()), strict=True):
        for y in span(i, i + 1, down):
            for x in span(j, j + 1, across):
                if y < height and x < width:
                    grid[y][x] = WRONG
    return grid


class WatchSubject(NamedTuple):
    """The reports about the current save."""

    save: int = 0
    lines: tuple[Report, ...] = ()
    old: bool = False  # True if the file was saved again
    doing: str = ""  # the present work of the check
    cut: bool = False  # True if the verdict above the reports is not whole

    @property
    def verdict(self) -> Report | None:
        """The last verdict: a larger graph may reveal an error after an earlier verdict."""
        return next((report for report in reversed(self.lines) if report.about == VERDICT), None)

    @property
    def hot(self) -> Report | None:
        """The report on the source line with the most PC samples."""
        return next((report for report in reversed(self.lines) if report.about == LINE), None)

    @property
    def where(self) -> Where | None:
        return next((report.finding.where for report in self.lines if report.finding is not None and report.finding.where), None)

    @property
    def seconds(self) -> float | None:
        return next((report.seconds for report in self.lines if report.seconds is not None), None)


class KernelVerdict(TextPanel[WatchSubject]):
    """The verdict, with the first error."""

    DEFAULT_CSS = """
    KernelVerdict { padding: 0 1; border-left: outer $border-blurred; }
    KernelVerdict.-right { border-left: outer $success; background: $success 20%; }
    KernelVerdict.-wrong { border-left: outer $error; background: $error 20%; }
    """

    most = 3  # lines
    cut = False  # True if the verdict has more lines

    def draw(self, subject: WatchSubject, width: int) -> Sequence[Content]:
        verdict = subject.verdict
        if verdict is None:
            lines = [line(("CHECKING", STRONG), (f"  {subject.doing}", MUTED))]
        else:
            word, style = VERDICTS[verdict.right]
            lines = indented(line((word, f"{STRONG} {style}"), "  "), verdict.sentence, width, STRONG)
            if (hot := subject.hot) is not None and len(lines) < self.most:
                lines += Content(hot.sentence).wrap(width)
        self.cut = len(lines) > self.most
        if self.cut:
            lines = [*lines[: self.most - 1], line(lines[self.most - 1].truncate(max(width - 1, 1)), "…")]
        return [*lines, *[line("")] * (self.most - len(lines))]


class Checks(TextPanel[WatchSubject]):
    """All reports in order; the times are last."""

    first_wrong: int | None = None  # line of the first error

    def draw(self, subject: WatchSubject, width: int) -> Sequence[Content]:
        lines: list[Content] = []
        self.first_wrong = None
        at_top = subject.verdict.sentence if subject.verdict is not None and not subject.cut else None
        others = repeated_cases([report.finding for report in subject.lines if report.finding is not None])
        findings: list[Finding] = []  # up to this report
        for report in subject.lines:
            sentence = report.sentence
            if report.finding is not None:
                findings.append(report.finding)
                if report.finding in repeated(findings):
                    for count, cases in others:
                        lines.append(line(MARKS[False], f"{count}, also"))
                        lines += [line(f"    {case}") for case in cases]
                    sentence, others = "", []
            if report.right is False and self.first_wrong is None:
                self.first_wrong = len(lines)
            if sentence and report.about != VERDICT and not (report.right is False and sentence == at_top):
                sign, style = MARKS[report.right]
                muted = MUTED if report.about in (NOTE, DERIVED, REASON, HINT) else STRONG if report.about in (TIME, LINE) else ""
                lines += indented(line((sign, style)), sentence, width, muted)
        if subject.old:
            lines.append(line(("the file was saved again; these results are of the save before", MUTED)))
        return lines


SaveTimes = tuple[tuple[int, float | None], ...]  # by number of the save; None: not right, or not timed


class Curve(TextPanel[SaveTimes]):
    """The times of the checked saves as bars, with the last and the best time."""

    def draw(self, subject: SaveTimes, width: int) -> Sequence[Content]:
        timed = [seconds for _, seconds in subject if seconds is not None]
        if not timed:
            return [line(("no save has been timed yet", MUTED))]
        title, summary = f"save {subject[-1][0]}", f"  {units.duration(timed[-1])}, best {units.duration(min(timed))}"
        visible = subject[-max(1, width - len(title) - len(summary) - 4) :]
        bars = spark([seconds for _, seconds in visible], 0.0, max(timed) * 1.001)
        return [line((title, STRONG), "  ", (bars, "$primary"), (summary, MUTED))]


class PromptLines(TextPanel[tuple[str, str]]):
    """The current prompt of the course: its number and its text."""

    def draw(self, subject: tuple[str, str], width: int) -> Sequence[Content]:
        head, text = subject
        return line((f"{head}: ", f"{STRONG} $text-primary"), text).wrap(width) if head else []


class WatchScreen(Dialog):
    """While the screen is open, a thread checks the file at each save. A crash or a hang affects only the processes it starts."""

    DEFAULT_CSS = """
    WatchScreen > #box { width: 100%; max-width: 100%; height: 100%; }
    WatchScreen #top { height: auto; }
    WatchScreen PromptLines { height: auto; max-height: 30vh; margin-bottom: 1; display: none; }
    WatchScreen.-course PromptLines { display: block; }
    WatchScreen.-low PromptLines { margin-bottom: 0; }
    WatchScreen #top Large { width: auto; height: 3; margin-left: 2; display: none; }
    WatchScreen.-timed #top Large { display: block; }
    WatchScreen.-low #top Large { display: none; }
    WatchScreen #found { height: 1fr; margin-top: 1; }
    WatchScreen.-low #found { margin-top: 0; }
    WatchScreen #found VerticalScroll { height: 100%; max-height: 100%; width: 1fr; }
    WatchScreen WrongCells { display: none; margin-left: 2; }
    WatchScreen.-wrong WrongCells { display: block; }
    WatchScreen Curve { height: 1; }
    WatchScreen #title { text-wrap: nowrap; text-overflow: ellipsis; height: 1; }
    """
    BINDINGS: ClassVar = [
        bound("e", "edit", "Edit", "open the file in $EDITOR", id="watch.edit"),
        hidden_look("W", "close", "Close", "close this", id="watch.close"),
    ]

    def __init__(self, sitting: WatchLoop, prompts: Sequence[Prompt] = ()):
        """`prompts` are those of the course; the current one is at the top."""
        super().__init__(_title(sitting.request.path, 0), hint=KEYS)
        self.sitting = sitting
        self.prompted = Prompted(prompts) if prompts else None
        self.shown = WatchSubject()
        self._times: dict[int, float | None] = {}  # seconds by number of the save
        self._ended = Event()

    def body(self) -> ComposeResult:
        yield PromptLines(self._prompt)
        with Horizontal(id="top"):
            yield KernelVerdict(self.shown)
            yield Large()
        with Horizontal(id="found"):
            with VerticalScroll():
                yield Checks(self.shown)
            yield WrongCells()
        yield Curve(())

    def on_mount(self) -> None:
        self.set_class(self.prompted is not None, "-course")
        self.on_resize()
        self.query_one(VerticalScroll).focus()
        # one thread for all saves, with which its processes end
        in_background(self, self._watch, lambda over: None, "watch")

    def on_unmount(self) -> None:
        self._ended.set()

    @property
    def _prompt(self) -> tuple[str, str]:
        return (self.prompted.head, self.prompted.text) if self.prompted is not None else ("", "")

    def _watch(self) -> None:
        with closing(self.sitting):
            for update in self.sitting.run(self._ended):
                if self._ended.is_set():
                    return
                with suppress(RuntimeError):  # the program is gone
                    self.call_later(self.take, update)

    def take(self, update: WatchUpdate) -> None:
        """Show an update about the save."""
        if self.prompted is not None:
            self.prompted.update(update)
            self.query_one(PromptLines).show(self._prompt)
            self.on_resize()
        match update:
            case CheckStart(number):
                self.shown = WatchSubject(number)
                self.query_one("#title", Static).update(Content(_title(self.sitting.request.path, number)))
            case Report():
                self.shown = self.shown._replace(lines=(*self.shown.lines, update))
            case Activity(text):
                self.shown = self.shown._replace(doing=text)
            case Superseded():
                self.shown = self.shown._replace(old=True)
            case CheckEnd(seconds=seconds):
                self._times[self.shown.save] = seconds
                self.query_one(Curve).show(tuple(self._times.items()))
        self._show()

    def _show(self) -> None:
        subject, verdict, scroll = self.shown, self.query_one(KernelVerdict), self.query_one(VerticalScroll)
        right = subject.verdict.right if subject.verdict is not None else None
        verdict.show(subject)
        verdict.set_class(right is True, "-right")
        verdict.set_class(right is False, "-wrong")
        at_end = scroll.scroll_y >= scroll.max_scroll_y - 1
        checks = self.query_one(Checks)
        checks.show(subject._replace(cut=bool(verdict.lines) and verdict.cut))
        if right is False:
            self.call_after_refresh(lambda: scroll.scroll_to(y=checks.first_wrong or 0, animate=False))
        elif at_end:
            self.call_after_refresh(scroll.scroll_end, animate=False)
        self.query_one(Large).update(units.duration(subject.seconds) if subject.seconds is not None else "")
        self.set_class(subject.seconds is not None, "-timed")
        self.query_one(WrongCells).show(subject.where)
        self.set_class(subject.where is not None, "-wrong")

    def on_resize(self) -> None:
        """Fit the picture of the matrix into half of the width."""
        width, height = self.app.size
        low = height < LOW
        self.set_class(low, "-low")
        verdict = self.query_one(KernelVerdict)
        verdict.most = 1 if low else 3
        picture = self.query_one(WrongCells)
        above = min(len(self.query_one(PromptLines).lines), height * MAX_PROMPT // 100) + (not low) if self.prompted else 0
        rows = max(3, height - above - (AROUND_LOW if low else AROUND))
        columns = min(2 * rows, WIDEST, width // 2 - 4)
        picture.styles.width = max(NARROWEST, columns)
        picture.fit(columns // 2)
        verdict.refresh(layout=True)

    def action_edit(self) -> None:
        """Give the terminal to the editor, at the line that the verdict names. The check loop continues."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or EDITOR
        verdict = self.shown.verdict.sentence if self.shown.verdict is not None else ""
        try:
            arguments = editor_arguments(command, source_of(self.sitting.request.path), verdict)
            with self.app.suspend():
                subprocess.run(arguments, check=False)
        except SuspendNotSupported:
            self.show_message("this terminal cannot be given to an editor; edit the file in another one")
        except (OSError, ValueError) as error:
            self.show_message(f"{sanitise(command)} did not start: {os_error_reason(error)}; set EDITOR")


def editor_arguments(command: str, path: Path, verdict: str) -> list[str]:
    """Return the command line of the editor for the file; editors of TO_LINE open it at the line that the verdict names."""
    named, words = re.search(rf"\b{re.escape(path.name)}:(\d+)", verdict), shlex.split(command)
    to_line = [f"+{named[1]}"] if named is not None and words and Path(words[0]).name in TO_LINE else []
    return [*words, *to_line, str(path)]


def _title(path: Path, save: int) -> str:
    return sanitise(f"{source_of(path).name}{f' · save {save}' if save else ''} · checked at each save, in {path.parent}")
