"""The course: the text of a step, the guess, the recorded answer, and the runs of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.learn.course import MAX_COLUMNS, TERM
from fwtui.learn.lessons import Page, describe_recorded
from fwtui.tui.widgets.run_text import numbers_lines, parts_lines
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, line

MAX_GUESS = 20  # characters


class Lesson(NamedTuple):
    page: Page
    hint: str  # keys that continue
    note: str = ""  # duration of the course, or the step at which it continues


class CourseText(TextPanel["Lesson | None"]):
    """The text of a step, up to its question."""

    def draw(self, subject: Lesson, width: int) -> Sequence[Content]:
        page, width = subject.page, min(width, MAX_COLUMNS)
        rows = line((f"{page.number} of {page.of}  ", "$text-primary"), (page.title, STRONG)).wrap(width)
        if page.problem:
            return [*rows, line(""), *line((page.problem, "$text-warning")).wrap(width)]
        if subject.note:
            rows += line((subject.note, "$text-primary")).wrap(width)
        rows += [*line((describe_recorded(page.cited) if page.cited is not None else "", MUTED)).wrap(width), line("")]
        for part in page.text:
            rows += _termed(part).wrap(width) if part else [line("")]
        rows += [line(""), *line(("? ", f"{STRONG} $text-primary"), (page.ask, STRONG)).wrap(width)]
        if page.answer is None:
            rows += [line((f"  {number} ", "$text-primary"), c.text) for number, c in enumerate(page.choices, 1)]
        return rows


class GuessLine(Horizontal):
    """The input line of a guess."""

    DEFAULT_CSS = """
    GuessLine { height: 1; max-width: 72; display: none; }
    GuessLine.-asked { display: block; }
    GuessLine Static { width: auto; color: $text-primary; }
    GuessLine Input { width: 1fr; }
    """

    def compose(self) -> ComposeResult:
        yield Static("  your guess: ", markup=False)
        yield GuessInput(max_length=MAX_GUESS, compact=True, select_on_focus=False)

    @property
    def field(self) -> GuessInput:
        return self.query_one(GuessInput)

    def show(self, page: Page | None) -> None:
        has_question = page is not None and page.asks
        self.set_class(has_question, "-asked")
        self.field.can_focus = has_question
        if page is not None and has_question:
            self.field.placeholder = page.hint

    def begin(self, typed: str = "") -> None:
        """Focus the input and insert the characters that were typed before."""
        self.field.insert_text_at_cursor(typed)
        self.field.focus(scroll_visible=False)

    def end(self) -> None:
        """Clear the input and release the focus."""
        self.field.clear()
        self.screen.set_focus(None)


class GuessInput(Input):
    """The input of a guess; tab does not leave it."""

    def on_key(self, event: events.Key) -> None:
        if event.key in ("tab", "shift+tab"):
            event.stop().prevent_default()


class CourseAnswer(TextPanel["Lesson | None"]):
    """The recorded answer to a step's question, the answer of this machine, and the keys that continue."""

    def draw(self, subject: Lesson, width: int) -> Sequence[Content]:
        if subject.page.problem:
            return []
        page, width = subject.page, min(width, MAX_COLUMNS)
        rows = _answer(page, width) if page.answer is not None else []
        rows += _here(page, width)
        rows += _summary(page)
        return [*rows, line(""), *line((subject.hint, MUTED)).wrap(width)]


def _termed(text: str) -> Content:
    """Return a paragraph with the explained terms in bold."""
    return line(*((part, STRONG if place % 2 else "") for place, part in enumerate(TERM.split(text))))


def _answer(page: Page, width: int) -> list[Content]:
    """Return bars of the guess and of the answer, and a sentence."""
    answer = page.answer
    assert answer is not None and page.kind is not None
    rows = parts_lines(answer, page.guess, width) if answer.parts or not page.kind.hint else _numbers(page, width)
    sentence = line((f"{page.verdict} " if page.verdict else "", f"{STRONG} $text-primary"), answer.text)
    rows += sentence.wrap(width)
    for part in page.afterwards:
        rows += _termed(part).wrap(width)
    return rows


def _numbers(page: Page, width: int) -> list[Content]:
    assert page.kind is not None and page.answer is not None and page.cited is not None
    numbers = [("your guess", page.guess)] if isinstance(page.guess, float) else []
    numbers.append(("the recorded run", page.answer.number or 0.0))
    here = page.here
    if here is not None and page.kind.name == "seconds" and here.n != page.cited.run.n:
        here = None  # times of another n have no bar
    if here is not None and here.answer is not None and here.answer.number is not None:
        numbers.append((f"here, n {here.n}", here.answer.number))
    return numbers_lines(page.kind, numbers, width)


def _summary(page: Page) -> list[Content]:
    """Return a row per kernel of the course; empty before its last step."""
    if not page.ladder:
        return []
    rows = [line(""), line((f"All kernels of the course, n {page.ladder[0].run.n}", STRONG))]
    for rung in page.ladder:
        numbers = f"{units.duration(rung.run.seconds):>10}{units.rate(rung.run.rate):>18}{units.gain(rung.times):>9}"
        rows.append(line(f"  {truncate(rung.run.title, 30):<30}", (numbers, "$text-primary")))
    return rows


def _here(page: Page, width: int) -> list[Content]:
    here = page.here
    if here is None:
        return []
    sentence = here.answer.text if here.answer is not None and page.answer is not None else here.reason
    if not sentence:
        sentence = "done; guess to see it next to the recorded run"
    return [*line((f"here, n {here.n}: ", MUTED), sentence).wrap(width)]
