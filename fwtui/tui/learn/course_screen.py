"""The course on a screen: its steps in words, guesses beside what the runs say, and the runs of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from textual.content import Content

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.common.text import shortened
from fwtui.learn.course import MOST_COLUMNS, Step, step_named
from fwtui.learn.course_progress import CourseProgress, Page
from fwtui.learn.lessons import lessons, recorded_words
from fwtui.tui.frame.bindings import bound, hidden
from fwtui.tui.frame.dialogs import AskScreen, ChoiceScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, line
from fwtui.tui.widgets.readout import LEAST_BAR, MOST_BAR, WORDS, meter, parts_lines

COURSE_KEYS = (
    bound("t", "course", "Course", "the course, from one core to the fastest kernel; on and off", id="learn.course"),
    bound("g", "guess", "Guess", "guess what the run of this step says, and see it", id="learn.guess"),
    bound(">", "lesson(1)", "Next", "the next step of the course", id="learn.next"),
    hidden("<", "lesson(-1)", "Before", "the step before", id="learn.before"),
    bound("r", "run_here", "Run here", "run this step's kernel on this machine, where it can be timed", id="learn.run"),
)
NO_GUESS = "no guess: show the answer"
LABEL = 20  # cells of what a bar is about


class Lesson(NamedTuple):
    page: Page
    hint: str  # which keys go on from here


class CourseWords(Drawn["Lesson | None"]):
    def draw(self, subject: Lesson | None, width: int) -> Sequence[Content]:
        if subject is None:
            return []
        page, width = subject.page, min(width, MOST_COLUMNS)
        rows = line((f"{page.number} of {page.of}  ", "$text-primary"), (page.title, STRONG)).wrap(width)
        if page.problem:
            return [*rows, line(""), *line((page.problem, "$text-warning")).wrap(width)]
        rows += [*line((recorded_words(page.cited) if page.cited is not None else "", MUTED)).wrap(width), line("")]
        for part in page.text:
            rows += Content(part).wrap(width) if part else [line("")]
        rows += [line(""), *line(("? ", f"{STRONG} $text-primary"), (page.ask, STRONG)).wrap(width)]
        rows += _answer(page, width) if page.answer is not None else [line(f"  {choice.words}") for choice in page.choices]
        rows += _here(page, width)
        rows += _climbed(page)
        return [*rows, line(""), *line((subject.hint, MUTED)).wrap(width)]


def _answer(page: Page, width: int) -> list[Content]:
    """The guess beside the answer, bar by bar, and what is to be said about it."""
    answer = page.answer
    assert answer is not None and page.kind is not None
    rows = parts_lines(answer, page.guess, width) if answer.parts or not page.kind.hint else _numbers(page, width)
    said = line((f"{page.verdict} " if page.verdict else "", f"{STRONG} $text-primary"), answer.words)
    rows += said.wrap(width)
    for part in page.afterwards:
        rows += Content(part).wrap(width)
    return rows


def _numbers(page: Page, width: int) -> list[Content]:
    assert page.kind is not None and page.answer is not None and page.cited is not None
    told = [("your guess", page.guess)] if isinstance(page.guess, float) else []
    told.append(("the recorded run", page.answer.number or 0.0))
    here = page.here
    if here is not None and page.kind.name == "seconds" and here.n != page.cited.run.n:
        here = None  # times of another n do not stand among the bars
    if here is not None and here.answer is not None and here.answer.number is not None:
        told.append((f"here, n {here.n}", here.answer.number))
    whole = 1.0 if page.kind.say is units.percent else 0.0  # shares stand on a scale of their own
    most = max(whole, *(number for _, number in told)) or 1.0
    room = max(LEAST_BAR, min(MOST_BAR, width - LABEL - WORDS))
    rows: list[Content] = []
    for label, number in told:
        pieces: list[Piece] = [(f"  {label:<{LABEL - 2}}", ""), *meter(number / most, room)]
        rows.append(line(*pieces, f" {page.kind.say(number)}"))
    return rows


def _climbed(page: Page) -> list[Content]:
    """Looking back at the end: every kernel of the course."""
    if not page.climbed:
        return []
    rows = [line(""), line((f"All of it, n {page.climbed[0].run.n}", STRONG))]
    for rung in page.climbed:
        numbers = f"{units.duration(rung.run.seconds):>10}{units.rate(rung.run.rate):>18}{units.gain(rung.times):>9}"
        rows.append(line(f"  {shortened(rung.run.title, 30):<30}", (numbers, "$text-primary")))
    return rows


def _here(page: Page, width: int) -> list[Content]:
    here = page.here
    if here is None:
        return []
    words = here.answer.words if here.answer is not None and page.answer is not None else here.words
    if not words:
        words = "done; guess, and it stands beside the recorded run"
    return [*line((f"here, n {here.n}: ", MUTED), words).wrap(width)]


class GuessScreen(ChoiceScreen):
    """Answers the key of what was chosen, an empty string where nothing was guessed, None where it was closed."""

    DEFAULT_CSS = "GuessScreen OptionList { margin: 1 0; }"
    HINT = "↑ ↓ and Enter guess, Esc does not"


class CourseScreen(Frame):
    """A screen on which the course can be opened: shows its steps, takes guesses, and starts the steps' runs."""

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        self.course_open = False  # whether the course is shown now
        self.course_begun = False  # whether it ever was: its steps can be gone through from the matrix too

    def follow_step(self, step: Step) -> None:
        """Let the matrix be that of the step's kernel."""
        raise NotImplementedError

    @cached_property
    def progress(self) -> CourseProgress:
        """Raises Refused where there is no course that can be read."""
        return CourseProgress(lessons())

    @property
    def page(self) -> Page | None:
        return self.progress.page(self.source.model) if self.course_open else None

    @property
    def matrix_seen(self) -> bool:
        """Whether the matrix is shown, alone or beside the course."""
        return not self.course_open or not self.has_class("-narrow")

    @property
    def lesson(self) -> Lesson | None:
        """The page in words."""
        page = self.page
        if page is None:
            return None
        on, run, course, step = (self.key_of(f"learn.{name}") for name in ("enter", "run", "course", "step"))
        words = [f"{run}: run it here"]
        words.append(f"{step}: follow the matrix" if self.matrix_seen else f"{course}: how it moves data, and its source")
        if page.answer is None or page.number < page.of:
            words.insert(0, f"{on}: {'guess' if page.answer is None else 'next step'}")
        return Lesson(page, " · ".join(words))

    def open_step(self, name: str) -> None:
        """Show the course at the step of that number or name."""
        with self.saying("error"):
            self._open(step_named(self.progress.lessons.course, name).number - 1)

    def action_course(self) -> None:
        """Show the course, or the matrix alone."""
        if self.course_open:
            self.course_open = False
            self._course_shown()
        else:
            self.action_lesson(0)

    def action_lesson(self, direction: int) -> None:
        """Go to the next step, or the one before; 0 shows the one that was shown last."""
        with self.saying("error"):
            self._open(self.progress.place + direction)

    def go_on(self) -> None:
        """Guess; with the answer seen, the next step."""
        if self.progress.told:
            self.action_lesson(1)
        else:
            self.action_guess()

    def action_guess(self) -> None:
        """Ask for a guess, and show the answer."""
        page = self.page
        if page is None or page.problem:
            return

        def take(text: str | None) -> None:
            if text is None:
                return
            with self.saying():
                self.progress.guess(text)
                self.say("")
                self.update(True)
                panel = self.panel()
                if panel is not None and self.has_class("-narrow"):
                    self.call_after_refresh(panel.scroll_end, animate=False)

        if page.choices:
            self.app.push_screen(GuessScreen(page.ask, (*page.choices, ("", NO_GUESS))), take)
        else:
            hint = f"{page.kind.hint if page.kind is not None else ''}; empty: the answer"
            self.app.push_screen(AskScreen(page.ask, placeholder=hint), take)

    def action_run_here(self) -> None:
        with self.saying():
            if self.view.busy:
                raise Refused("something is running already; cancel it or wait for its end")
            self.progress.plan(self.view.has_gpu)
            self.view.resume()
            self.say("")
            self._advance()

    def update(self, forced: bool = False) -> None:
        self._advance()
        super().update(forced)

    def _advance(self) -> None:
        """Start the next run of the step, once the one before is over."""
        experiment = self.progress.next_run(self.source.model) if self.course_begun and not self.view.busy else None
        if experiment is None:
            return
        try:
            self.progress.began(self.source.start(experiment))
        except Refused as refusal:
            self.progress.give_up()
            self.say(str(refusal), "warning")

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        with self.saying("error"):
            for step in self.progress.lessons.course:
                title = f"Course {step.number}: {step.written.title}"
                yield Command(title, partial(self.open_step, step.name), step.written.kernel)

    def _open(self, place: int) -> None:
        if not self.progress.go(place):
            self.say("this is the last step of the course" if place > 0 else "this is the first step of the course")
            return
        self.course_open = self.course_begun = True
        self.follow_step(self.progress.step)
        self._course_shown()
        panel = self.panel()
        if panel is not None:
            panel.scroll_home(animate=False)

    def _course_shown(self) -> None:
        self.set_class(self.course_open, "-course")
        self.update(True)
        self.refresh_bindings()

    def why_not(self, action: str) -> str:
        if (action in ("guess", "run_here") and not self.course_open) or (action == "lesson" and not self.course_begun):
            return f"the course is not open; {self.key_of('learn.course')} opens it"
        return super().why_not(action)
