"""Who leads through the course: its steps, guesses, and the runs of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

from fwtui.common.errors import Refused
from fwtui.learn.course import Step, step_named
from fwtui.learn.course_progress import CourseProgress, Page
from fwtui.learn.lessons import Cited, lessons
from fwtui.machine import hardware
from fwtui.tui.frame.bindings import bound, hidden
from fwtui.tui.frame.dialogs import AskScreen, ChoiceScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Command
from fwtui.tui.learn.course_words import Keys, Lesson

COURSE_KEYS = (
    bound("t", "course", "Course", "the course, from one core to the fastest kernel; on and off", id="learn.course"),
    bound("g", "guess", "Guess", "guess what the run of this step says, and see it", id="learn.guess"),
    bound(">", "lesson(1)", "Next", "the next step of the course", id="learn.next"),
    hidden("<", "lesson(-1)", "Before", "the step before", id="learn.before"),
    bound("r", "run_here", "Run here", "run this step's kernel on this machine, where it can be timed", id="learn.run"),
)
NO_GUESS = "no guess: show the answer"


class GuessScreen(ChoiceScreen):
    """Answers the key of what was chosen, an empty string where nothing was guessed, None where it was closed."""

    DEFAULT_CSS = "GuessScreen OptionList { margin: 1 0; }"
    HINT = "↑ ↓ and Enter guess, Esc does not"


class CourseGuide:
    """Opens the course's steps on a screen, takes guesses, and starts the steps' runs.

    `follow` lets the screen's matrix be that of a step's kernel; `shown` is called when the course came or went.
    """

    def __init__(self, screen: Frame, follow: Callable[[Step], None], shown: Callable[[], None]):
        self.progress: CourseProgress | None = None
        self.begun = False  # whether it ever was shown: its steps can be gone through from the matrix too
        self._on = False
        self._screen = screen
        self._view = screen.view
        self._follow = follow
        self._shown = shown

    @property
    def open(self) -> bool:
        """Whether the course is shown."""
        return self._on and self.progress is not None

    @property
    def page(self) -> Page | None:
        """What the course shows now."""
        if not self._on or self.progress is None or self._view.source is None:
            return None
        return self.progress.page(self._view.source.model)

    @property
    def cited(self) -> Cited | None:
        """The recorded run of the step that is shown."""
        if self.progress is not None and self._on:
            with contextlib.suppress(Refused):
                return self.progress.lessons.cited(self.progress.step)
        return None

    def lesson(self, matrix: bool) -> Lesson | None:
        """The page in words; `matrix`: whether the matrix stands beside it."""
        page = self.page
        if page is None:
            return None
        return Lesson(page, Keys(*(self._screen.key_of(f"learn.{name}") for name in ("enter", "run", "course", "step"))), matrix)

    def open_step(self, name: str) -> None:
        """Show the course at the step of that number or name."""
        progress = self._loaded()
        if progress is not None:
            with self._screen.saying("error"):
                self._go(step_named(progress.lessons.course, name).number - 1)

    def toggle(self) -> None:
        """Show the course, or the matrix alone."""
        progress = self._loaded()
        if progress is None:
            return
        self._on = not self._on
        if self._on:
            self._go(progress.place)
        else:
            self._shown()

    def turn(self, direction: int) -> None:
        """Go to the next step, or the one before."""
        progress = self._loaded()
        if progress is not None:
            self._go(progress.place + direction)

    def go_on(self) -> None:
        """Guess; with the answer seen, the next step."""
        if self.progress is not None and self.progress.told:
            self.turn(1)
        else:
            self.ask()

    def ask(self) -> None:
        """Ask for a guess, and show the answer."""
        progress, page = self.progress, self.page
        if progress is None or page is None or page.problem:
            return

        def take(text: str | None) -> None:
            if text is None:
                return
            with self._screen.saying():
                progress.guess(text)
                self._screen.say("")
                self._screen.update(True)
                panel = self._screen.panel()
                if panel is not None and self._screen.has_class("-narrow"):
                    self._screen.call_after_refresh(panel.scroll_end, animate=False)

        if page.choices:
            choices = ((choice.key, choice.words) for choice in page.choices)
            self._screen.app.push_screen(GuessScreen(page.ask, (*choices, ("", NO_GUESS))), take)
        else:
            hint = page.kind.hint if page.kind is not None else ""
            self._screen.app.push_screen(AskScreen(page.ask, "", f"{hint}; empty: the answer"), take)

    def run_here(self) -> None:
        """Run the step's kernel on this machine."""
        if self._view.source is None or self.progress is None:
            return
        found = self._view.found
        gpu = bool(found.gpus) if found is not None else hardware.driver_present()
        with self._screen.saying():
            if self._view.busy:
                raise Refused("something is running already; cancel it or wait for its end")
            self.progress.plan(gpu)
            self._view.resume()
            self._screen.say("")
            self.advance()

    def advance(self) -> None:
        """Start the next run of the step, once the one before is over."""
        source = self._view.source
        if source is None or self.progress is None or self._view.busy:
            return
        experiment = self.progress.next_run(source.model)
        if experiment is None:
            return
        try:
            self.progress.began(source.start(experiment))
        except Refused as refusal:
            self.progress.give_up()
            self._screen.say(str(refusal), "warning")

    def commands(self) -> Iterator[Command]:
        """What the palette offers: every step."""
        progress = self._loaded()
        for step in progress.lessons.course if progress is not None else ():
            yield Command(f"Course {step.number}: {step.written.title}", partial(self.open_step, step.name), step.written.kernel)

    def _loaded(self) -> CourseProgress | None:
        if self.progress is None:
            with self._screen.saying("error"):
                self.progress = CourseProgress(lessons())
        return self.progress

    def _go(self, place: int) -> None:
        assert self.progress is not None
        if not self.progress.go(place):
            self._screen.say("this is the last step of the course" if place > 0 else "this is the first step of the course")
            return
        self._on = self.begun = True
        self._follow(self.progress.step)
        self._shown()
        panel = self._screen.panel()
        if panel is not None:
            panel.scroll_home(animate=False)
