"""The course on a screen: its steps, guesses, and the runs of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial

from fwtui.common.errors import Refused
from fwtui.learn.course import Step, step_named
from fwtui.learn.course_progress import CourseProgress, Page
from fwtui.learn.lessons import lessons
from fwtui.tui.frame.bindings import bound, hidden
from fwtui.tui.frame.dialogs import AskScreen, ChoiceScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
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
