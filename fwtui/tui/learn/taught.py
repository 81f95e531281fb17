"""What the place to learn does with the course: its steps, guesses, and the runs of this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from textual.binding import Binding

from fwtui.common.errors import Refused
from fwtui.learn.attending import Attending, Page
from fwtui.learn.course import Step, step_named
from fwtui.learn.lessons import Cited, lessons
from fwtui.machine import hardware
from fwtui.tui.frame.dialogs import AskScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.learn.course import Keys, Lesson
from fwtui.tui.learn.guess import GuessScreen

COURSE_KEYS = (
    Binding("t", "course", "Course", id="learn.course", tooltip="the course, from one core to the fastest kernel; on and off"),
    Binding("g", "guess", "Guess", id="learn.guess", tooltip="guess what the run of this step says, and see it"),
    Binding("greater_than_sign", "lesson(1)", "Next", id="learn.next", key_display=">", tooltip="the next step of the course"),
    Binding("less_than_sign", "lesson(-1)", "Before", id="learn.before", key_display="<", show=False, tooltip="the step before"),
    Binding("r", "run_here", "Run here", id="learn.run", tooltip="run this step's kernel on this machine, where it can be timed"),
)
OF_COURSE = ("guess", "run_here")
OF_MATRIX = ("by_k", "by_step", "by_round", "to", "walk", "weight", "size", "another", "compare", "kernel")


class Taught(Frame):
    """Mixed into the place; it has the matrix, the words beside it, and `follow_step()`."""

    COURSE: ClassVar = COURSE_KEYS

    def __init__(self, view: View):
        super().__init__(view)
        self.attending: Attending | None = None
        self._on = False  # whether the course is shown
        self._begun = False  # and whether it ever was: its steps can be gone through from the matrix too

    def follow_step(self, step: Step) -> None:
        """Let the matrix be that of the step's kernel."""
        raise NotImplementedError

    @property
    def taught(self) -> bool:
        """Whether the course is shown."""
        return self._on and self.attending is not None

    @property
    def matrix_seen(self) -> bool:
        """Whether there is room for the matrix beside a lesson."""
        return not self.taught or not self.has_class("-narrow")

    def begin(self) -> None:
        """Open the course where it was asked for when the program began."""
        if self.view.lesson:
            self.open_lesson(self.view.lesson)

    def open_lesson(self, name: str) -> None:
        """Show the course at the step of that number or name."""
        attending = self._course()
        if attending is not None:
            try:
                self._open(step_named(attending.lessons.course, name).number - 1)
            except Refused as refusal:
                self.say(str(refusal), "error")

    def action_course(self) -> None:
        attending = self._course()
        if attending is None:
            return
        self._on = not self._on
        if self._on:
            self._open(attending.place)
        else:
            self._shown_or_hidden()

    def action_lesson(self, direction: int) -> None:
        attending = self._course()
        if attending is not None:
            self._open(attending.place + direction)

    def action_go_on(self) -> None:
        """Guess; with the answer seen, the next step."""
        if self.attending is not None:
            if self.attending.told:
                self.action_lesson(1)
            else:
                self.action_guess()

    def action_guess(self) -> None:
        attending = self.attending
        if attending is None:
            return
        page = self.page
        if page is None or page.problem:
            return

        def take(text: str | None) -> None:
            if text is None:
                return
            try:
                attending.guess(text)
            except Refused as refusal:
                self.say(str(refusal), "warning")
                return
            self.say("")
            self._to_the_answer()

        if page.choices:
            self.app.push_screen(GuessScreen(page.ask, page.choices), take)
        else:
            hint = page.kind.hint if page.kind is not None else ""
            self.app.push_screen(AskScreen(page.ask, "", f"{hint}; empty: the answer"), take)

    def action_run_here(self) -> None:
        source, attending = self.view.source, self.attending
        if source is None or attending is None:
            return
        found = self.view.found
        gpu = bool(found.gpus) if found is not None else hardware.driver_present()
        try:
            if self.view.busy:
                raise Refused("something is running already; cancel it or wait for its end")
            attending.plan(gpu)
        except Refused as refusal:
            self.say(str(refusal), "warning")
            return
        self.view.resume()
        self.say("")
        self.advance()

    def advance(self) -> None:
        """Start the next run of the step, once the one before is over."""
        source, attending = self.view.source, self.attending
        if source is None or attending is None or self.view.busy:
            return
        experiment = attending.next_run(source.model)
        if experiment is None:
            return
        try:
            attending.began(source.start(experiment))
        except Refused as refusal:
            attending.give_up()
            self.say(str(refusal), "warning")

    @property
    def page(self) -> Page | None:
        """What the course shows now."""
        if not self.taught or self.attending is None or self.view.source is None:
            return None
        return self.attending.page(self.view.source.model)

    @property
    def cited(self) -> Cited | None:
        """The recorded run of the step that is shown."""
        if self.attending is None or not self.taught:
            return None
        with contextlib.suppress(Refused):
            return self.attending.lessons.cited(self.attending.step)
        return None

    @property
    def lesson(self) -> Lesson | None:
        page = self.page
        if page is None:
            return None
        keys = Keys(*(self.key_of(f"learn.{name}") for name in ("enter", "run", "course", "step")))
        return Lesson(page, keys, self.matrix_seen)

    def _course(self) -> Attending | None:
        if self.attending is None:
            try:
                self.attending = Attending(lessons())
            except Refused as refusal:
                self.say(str(refusal), "error")
        return self.attending

    def _open(self, place: int) -> None:
        assert self.attending is not None
        if not self.attending.go(place):
            self.say("this is the last step of the course" if place > 0 else "this is the first step of the course")
            return
        self._on = self._begun = True
        self.follow_step(self.attending.step)
        self._shown_or_hidden()
        panel = self.panel()
        if panel is not None:
            panel.scroll_home(animate=False)

    def _shown_or_hidden(self) -> None:
        self.set_class(self.taught, "-course")
        self.update(True)
        self.refresh_bindings()

    def _to_the_answer(self) -> None:
        self.update(True)
        panel = self.panel()
        if panel is not None and not self.matrix_seen:
            self.call_after_refresh(panel.scroll_end, animate=False)

    def action_motion(self) -> None:
        self.view.motion = not self.view.motion
        self.update()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "motion":
            return self.taught and self.matrix_seen
        if action == "lesson":
            return self._begun
        if action in OF_COURSE:
            return self.taught
        if action in OF_MATRIX and not self.matrix_seen:
            return False
        return super().check_action(action, parameters)

    def why_not(self, action: str) -> str:
        course = self.key_of("learn.course")
        if action in ("lesson", *OF_COURSE) and not self.taught:
            return f"the course is not open; {course} opens it"
        if not self.matrix_seen and action in ("motion", *OF_MATRIX):
            return f"the matrix has no room beside the course; {course} shows it"
        if action == "motion":
            return f"only the course has a picture here; {course} opens it"
        return super().why_not(action)

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        attending = self._course()
        for step in attending.lessons.course if attending is not None else ():
            yield Command(
                f"Course {step.number}: {step.written.title}", partial(self.open_lesson, step.name), step.written.kernel
            )
