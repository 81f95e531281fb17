"""What leads through the course on a screen: its steps, guesses, and the runs of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial

from fwtui.common.errors import Refused
from fwtui.learn.course import Step, step_named
from fwtui.learn.course_progress import CourseProgress, Page
from fwtui.learn.lessons import lessons
from fwtui.tui.frame.bindings import bound, hidden
from fwtui.tui.frame.dialogs import AskScreen, ChoiceScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Command
from fwtui.tui.learn.course_words import Lesson

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
        assert screen.view.source is not None
        self.begun = False  # whether it ever was shown: its steps can be gone through from the matrix too
        self.open = False  # whether it is shown now
        self._screen = screen
        self._view = screen.view
        self._source = screen.view.source
        self._follow = follow
        self._shown = shown

    @cached_property
    def progress(self) -> CourseProgress:
        """Raises Refused where there is no course that can be read."""
        return CourseProgress(lessons())

    @property
    def page(self) -> Page | None:
        return self.progress.page(self._source.model) if self.open else None

    def lesson(self, matrix: bool) -> Lesson | None:
        """The page in words; `matrix`: whether the matrix stands beside it."""
        page = self.page
        if page is None:
            return None
        on, run, course, step = (self._screen.key_of(f"learn.{name}") for name in ("enter", "run", "course", "step"))
        words = [f"{run}: run it here"]
        words.append(f"{step}: follow the matrix" if matrix else f"{course}: how it moves data, and its source")
        if page.answer is None or page.number < page.of:
            words.insert(0, f"{on}: {'guess' if page.answer is None else 'next step'}")
        return Lesson(page, " · ".join(words))

    def open_step(self, name: str) -> None:
        """Show the course at the step of that number or name."""
        with self._screen.saying("error"):
            self._go(step_named(self.progress.lessons.course, name).number - 1)

    def toggle(self) -> None:
        """Show the course, or the matrix alone."""
        if self.open:
            self.open = False
            self._shown()
        else:
            self.turn(0)

    def turn(self, direction: int) -> None:
        """Go to the next step, or the one before; 0 shows the one that was shown last."""
        with self._screen.saying("error"):
            self._go(self.progress.place + direction)

    def go_on(self) -> None:
        """Guess; with the answer seen, the next step."""
        if self.progress.told:
            self.turn(1)
        else:
            self.ask()

    def ask(self) -> None:
        """Ask for a guess, and show the answer."""
        page = self.page
        if page is None or page.problem:
            return

        def take(text: str | None) -> None:
            if text is None:
                return
            with self._screen.saying():
                self.progress.guess(text)
                self._screen.say("")
                self._screen.update(True)
                panel = self._screen.panel()
                if panel is not None and self._screen.has_class("-narrow"):
                    self._screen.call_after_refresh(panel.scroll_end, animate=False)

        if page.choices:
            self._screen.app.push_screen(GuessScreen(page.ask, (*page.choices, ("", NO_GUESS))), take)
        else:
            hint = f"{page.kind.hint if page.kind is not None else ''}; empty: the answer"
            self._screen.app.push_screen(AskScreen(page.ask, placeholder=hint), take)

    def run_here(self) -> None:
        with self._screen.saying():
            if self._view.busy:
                raise Refused("something is running already; cancel it or wait for its end")
            self.progress.plan(self._view.has_gpu)
            self._view.resume()
            self._screen.say("")
            self.advance()

    def advance(self) -> None:
        """Start the next run of the step, once the one before is over."""
        experiment = self.progress.next_run(self._source.model) if self.begun and not self._view.busy else None
        if experiment is None:
            return
        try:
            self.progress.began(self._source.start(experiment))
        except Refused as refusal:
            self.progress.give_up()
            self._screen.say(str(refusal), "warning")

    def commands(self) -> Iterator[Command]:
        """What the palette offers: every step."""
        with self._screen.saying("error"):
            for step in self.progress.lessons.course:
                title = f"Course {step.number}: {step.written.title}"
                yield Command(title, partial(self.open_step, step.name), step.written.kernel)

    def _go(self, place: int) -> None:
        if not self.progress.go(place):
            self._screen.say("this is the last step of the course" if place > 0 else "this is the first step of the course")
            return
        self.open = self.begun = True
        self._follow(self.progress.step)
        self._shown()
        panel = self._screen.panel()
        if panel is not None:
            panel.scroll_home(animate=False)
