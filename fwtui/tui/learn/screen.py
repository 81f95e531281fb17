"""The Learn screen: follow and change a small graph through a kernel's plan, k by k, or take the course."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.events import Key, ScreenResume
from textual.widgets import Input

from fwtui.common.errors import Refused
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.learn.course import step_named
from fwtui.learn.lessons import CourseProgress, Page, lessons
from fwtui.learn.stepping import PLAYED_SECONDS, Stepping, parse_weight, stepping
from fwtui.tui.actions import ACROSS, DOWN
from fwtui.tui.frame.dialogs import PromptScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.learn import actions
from fwtui.tui.learn.course_panel import CourseAnswer, CourseText, GuessInput, GuessLine, Lesson
from fwtui.tui.learn.distance_grid import DistanceGrid, KernelText, Legend, StepPosition, StepText, distance_text
from fwtui.tui.learn.source_view import LEGEND, Running, SourceView
from fwtui.tui.watch.kernel_file_picker import pick, watch

DIGITS = "0123456789"


class LearnScreen(Frame):
    DEFAULT_CSS = """
    LearnScreen #learn { height: 1fr; layout: horizontal; padding: 0 1; }
    LearnScreen #left { width: auto; max-width: 60%; height: 1fr; padding-right: 2; }
    LearnScreen #right > VerticalScroll { scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    LearnScreen #text { height: auto; max-height: 60%; }
    LearnScreen #source { height: 1fr; min-height: 4; border-top: solid $border-blurred; border-title-color: $text-muted; }
    LearnScreen.-flat #source { border-top: none; }
    LearnScreen DistanceGrid { max-width: 100%; }
    LearnScreen KernelText { margin-top: 1; }
    LearnScreen CourseAnswer { margin-bottom: 1; }
    LearnScreen #left.-spare { max-width: 46; }
    LearnScreen.-narrow #learn { layout: vertical; }
    LearnScreen.-narrow #left { width: 1fr; max-width: 100%; height: auto; max-height: 50%; }
    LearnScreen.-course #text { max-height: 70%; }
    LearnScreen.-narrow.-course #text { height: 1fr; max-height: 100%; }
    LearnScreen.-narrow.-course #source { display: none; }
    LearnScreen.-course CourseText, LearnScreen.-course CourseAnswer { display: block; }
    LearnScreen CourseText, LearnScreen CourseAnswer { display: none; }
    LearnScreen.-narrow.-course #left, LearnScreen.-narrow.-course StepText { display: none; }
    LearnScreen.-narrow.-course KernelText { display: none; }
    """
    PLACE = "learn"
    PANEL = "#text"
    STRIP = False
    AUTO_FOCUS = "DistanceGrid"
    WORDS = (
        ("k", "the vertex that paths may use from this step on; a cell is relaxed once for every k"),
        ("step", "one launch of the kernel's plan; it covers one k or a tile of them"),
        ("round", "one pivot block (or one k) and the steps that depend on it"),
        ("written .. read", "' and a tint: the step writes the cell; . and a lighter one: it reads it; *: it became shorter"),
        ("path", "the vertices of the shortest path found so far"),
        ("course", "steps from one core to the fastest kernel; each asks a question that a recorded run answers"),
        ("recorded, here", "the result of the run in the session file, and the result on this machine"),
    )
    MOVES = ("The matrix", (*DOWN, *ACROSS))
    BINDINGS: ClassVar = [*actions.BINDINGS]

    def __init__(self, view: View):
        super().__init__(view)
        assert view.source is not None
        self.source = view.source
        self.course_open = False  # the course is visible
        self.course_begun = False  # the course was opened before; its steps can be changed from the matrix too
        self.stepping: Stepping = stepping()
        self._resumed = 0  # index of the step at which the course continues

    def body(self) -> ComposeResult:
        with Container(id="learn"):
            with Container(id="left"):
                yield DistanceGrid(self.stepping, self.update)
                yield Legend(None)
            with Container(id="right"):
                with VerticalScroll(id="text", can_focus=False):
                    yield CourseText(None)
                    yield GuessLine()
                    yield CourseAnswer(None)
                    yield StepText(self._place)
                    yield KernelText(None)
                with VerticalScroll(id="source", can_focus=False) as code:
                    code.border_title = LEGEND
                    yield SourceView(self._op)

    def on_mount(self) -> None:
        self._playing = self.set_interval(PLAYED_SECONDS, self.play_on, pause=True)
        self.plays = False
        self._open_wanted()

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._complete:
            self._open_wanted()

    def _open_wanted(self) -> None:
        """Open the step that another screen requested."""
        name, self.view.lesson = self.view.lesson, ""
        if name:
            self.open_step(name)

    def state(self) -> object:
        return (*self._place.at, self.lesson)

    def show(self) -> None:
        lesson = self.lesson
        half = 2 if self.has_class("-narrow") else 1
        self.query_one(DistanceGrid).styles.max_height = max(self.query_one("#learn").size.height // half - 1, 2)
        self.query_one(DistanceGrid).show()
        self.query_one(CourseText).show(lesson)
        self.query_one(GuessLine).show(lesson.page if lesson is not None else None)
        self.query_one(CourseAnswer).show(lesson)
        self.query_one(StepText).show(self._place)
        self.query_one(KernelText).show((self.stepping.experiment.kernel, self.key_of("help")) if lesson is None else None)
        self._follow_source()
        self.query_one("#left").set_class(lesson is not None and not self.has_class("-narrow"), "-spare")

    def _follow_source(self) -> None:
        """Mark the functions of the current step, and scroll to them if they changed."""
        view, running = self.query_one(SourceView), self._op
        if view.subject != running:
            view.show(running)
            scroll = self.query_one("#source")
            self.call_after_refresh(lambda: scroll.scroll_to(y=view.top(scroll.size.height), animate=False))

    @property
    def _op(self) -> Running:
        s = self.stepping
        return Running(s.experiment.kernel, s.trace.plan[s.moment.step].op if s.moment is not None else "")

    def action_scroll_panel(self, direction: int) -> None:
        """Scroll the text, and then the source; for a presenter, at the end of the text, go on or back in the course."""
        text, code = self.query_one("#text"), self.query_one("#source")
        inside = code.scroll_y > 0 if direction < 0 else text.scroll_y >= text.max_scroll_y
        at_end = text.scroll_y >= text.max_scroll_y if direction > 0 else text.scroll_y <= 0
        if self.look.presenter and self.course_open and at_end:
            if direction < 0 or self.progress.answered:
                self.action_lesson(direction)
            else:  # a clicker has no key for a guess
                self._take(self.query_one(GuessLine).field.value)
            return
        place = code if inside and code.display else text
        place.scroll_relative(y=direction * place.scrollable_content_region.height, animate=False)

    def action_enter(self) -> None:
        """Begin a guess, or open the next step if it is answered; outside the course, change a weight."""
        if not self.course_open:
            self.action_weight()
        elif self.progress.answered:
            self.action_lesson(1)
        else:
            self._begin_guess("")

    @property
    def _place(self) -> StepPosition:
        s = self.stepping
        return StepPosition(s, (s.edition, s.position, s.row, s.column))

    def action_by(self, part: str, direction: int) -> None:
        """Move by one k, one step, one round, or to an end."""
        trace, before = self.stepping.trace, self.stepping.position
        amount = {"k": 1, "all": len(trace.moments)}.get(part)
        self.stepping.go(trace.next_of(part, before, direction) if amount is None else before + direction * amount)
        if self.stepping.position == before:
            self.show_message("this is the last step" if before else "this is the graph before the first step")
        self.update()

    def action_far(self, direction: int) -> None:
        """Go to the first or last step of the course, or of the plan."""
        if not self.course_open:
            self.action_by("all", direction)
            return
        with self.reporting("error"):
            last = len(self.progress.lessons.course) - 1
            self._open(last if direction > 0 else 0)

    def action_walk(self) -> None:
        self.plays = not self.plays
        if self.plays:
            if self.stepping.position == len(self.stepping.trace.moments):
                self.stepping.go(0)
            self._playing.resume()
        else:
            self._playing.pause()
        self.update()

    def play_on(self) -> None:
        """Advance by one k, or stop at the end."""
        if self.stepping.position >= len(self.stepping.trace.moments):
            self.plays = False
            self._playing.pause()
        self.action_by("k", 1)

    def action_weight(self) -> None:
        s = self.stepping
        edge = f"Weight of the edge from {s.row} to {s.column}"
        before = "-" if s.weights[s.row, s.column] == float("inf") else distance_text(s.weights[s.row, s.column])
        self._ask(edge, before, "an integer, or - for no edge", lambda text: s.set_weight(parse_weight(text)))

    def action_size(self) -> None:
        def choose(text: str) -> None:
            if not (text.isascii() and text.isdecimal() and len(text) < 5):
                raise Refused(f"{text[:20]!r} is not a number of vertices; enter an integer such as 8")
            self.stepping.choose(n=int(text))

        self._ask("Number of vertices", str(self.stepping.trace.n), "up to 24", choose)

    def _ask(self, title: str, value: str, hint: str, take: Callable[[str], None]) -> None:
        self.open_dialog(PromptScreen(title, value, hint, max_length=40), lambda text: self._change(partial(take, text)))

    def action_another(self) -> None:
        self._try(partial(self.stepping.choose, seed=self.stepping.experiment.seed + 1))

    def action_kernel(self, direction: int) -> None:
        ids = list(known_kernels())
        self.follow(ids[(ids.index(self.stepping.experiment.kernel) + direction) % len(ids)])

    def follow(self, kernel: str) -> None:
        """Switch to another kernel on the same graph."""
        self._try(partial(self.stepping.choose, kernel=kernel))

    def _try(self, change: Callable[[], None]) -> None:
        with self.reporting():
            self._change(change)

    def _change(self, change: Callable[[], None]) -> None:
        change()
        self.show_message("")

    @cached_property
    def progress(self) -> CourseProgress:
        """Return the progress of the course. Raises Refused if the course cannot be read."""
        progress = CourseProgress(lessons())
        names = [step.name for step in progress.lessons.course]
        progress.go(names.index(self.view.step) if self.view.step in names else 0)
        self._resumed = progress.place
        return progress

    @property
    def page(self) -> Page | None:
        return self.progress.page(self.source.model) if self.course_open else None

    @property
    def matrix_seen(self) -> bool:
        """Return True if the matrix is visible."""
        return not self.course_open or not self.has_class("-narrow")

    @property
    def lesson(self) -> Lesson | None:
        """Return the page with its hints; None if the course is closed."""
        page = self.page
        if page is None:
            return None
        on, run, course, step = (self.key_of(f"learn.{name}") for name in ("enter", "run", "course", "step"))
        hints = []
        if page.answer is None:
            hints += [f"0-9 and {on}: guess", f"{on} twice: show the answer"]
        elif page.number < page.of:
            hints.append(f"{on}: next step")
        if self.rows.unavailable("run_here", ()) is None:
            prompts = self.progress.step.written.prompts
            where = "in the simulator" if not prompts and self.progress.simulates(self.view.has_gpu) else "here"
            hints.append(f"{run}: {'watch your file' if prompts else f'run it {where}'}")
        hints.append(f"{step if self.matrix_seen else course}: follow the matrix")
        hints += ["alt+digit: another screen"] * page.asks
        return Lesson(page, " · ".join(hints), self._note(page))

    def _note(self, page: Page) -> str:
        """Return the length at the first step, and the key for the first step where the course continues."""
        if page.number == 1:
            return f"{page.of} steps; the course continues where you stopped"
        if page.number == self._resumed + 1:
            return f"continued at step {page.number}; {self.key_of('learn.home')} opens the first step"
        return ""

    def open_step(self, name: str) -> None:
        """Open the step with that number or name."""
        with self.reporting("error"):
            self._open(step_named(self.progress.lessons.course, name).number - 1)

    def action_course(self) -> None:
        """Open or close the course."""
        if self.course_open:
            self.course_open = False
            self._course_shown()
        else:
            self.action_lesson(0)

    def action_lesson(self, direction: int) -> None:
        """Open the next or previous step; 0 opens the last visited one."""
        with self.reporting("error"):
            self._open(self.progress.place + direction)

    def takes_digits(self) -> bool:
        return self.page is not None and self.page.asks

    def on_key(self, event: Key) -> None:
        """Begin a guess with a digit; keys continue a guess that has begun."""
        if not self.takes_digits() or isinstance(self.focused, Input) or "+" in event.key:
            return
        if event.key in DIGITS or self.query_one(GuessLine).field.value:
            event.stop()
            event.prevent_default()
            self._begin_guess(event.character if event.is_printable and event.character else "")

    def _begin_guess(self, typed: str) -> None:
        guess = self.query_one(GuessLine)
        guess.begin(typed)
        enter = self.key_of("learn.enter")
        self.show_message(
            f"{enter} answers; {self.key_of('back')} cancels" if typed else f"a guess and {enter}, or only {enter} for the answer"
        )
        self._see_guess()

    def _see_guess(self) -> None:
        self.sight.keep_in_view([self.query_one(GuessLine)])

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.has_focus:
            self._see_guess()  # the key has released the scroll position

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._take(event.value)

    def _take(self, guess: str) -> None:
        with self.reporting():
            self.progress.guess(guess)
            self._end_guess()
            if self.has_class("-narrow"):
                self.call_after_refresh(self.query_one(self.PANEL).scroll_end, animate=False)

    def _end_guess(self) -> None:
        self.query_one(GuessLine).end()
        if self.matrix_seen:
            self.query_one(DistanceGrid).focus()
        self.show_message("")
        self.update(True)

    @property
    def way_back(self) -> Callable[[], object] | None:
        """Return the action of the Back key; it first cancels a guess."""
        return self._end_guess if isinstance(self.focused, GuessInput) else super().way_back

    def action_run_here(self) -> None:
        with self.reporting():
            if self.view.busy:
                raise Refused("a run is in progress; cancel it or wait for its end")
            prompts = self.progress.step.written.prompts
            if prompts:
                pick(self, lambda path: watch(self, path, "auto", prompts))
                return
            self.progress.plan(self.view.has_gpu)
            self.view.resume()
            self.show_message("")
            self._advance()

    def update(self, forced: bool = False) -> None:
        self._advance()
        super().update(forced)

    def _advance(self) -> None:
        """Start the next run of the step when the previous one has finished."""
        experiment = self.progress.next_run(self.source.model) if self.course_begun and not self.view.busy else None
        if experiment is None:
            return
        try:
            self.progress.began(self.source.start(self.source.settled(experiment)))
        except Refused as refusal:
            self.progress.give_up()
            self.show_message(str(refusal), "warning")

    def _open(self, place: int) -> None:
        if not self.progress.go(place):
            self.show_message("this is the last step of the course" if place > 0 else "this is the first step of the course")
            return
        self.course_open = self.course_begun = True
        if place != self._resumed:
            self._resumed = 0
        self.query_one(GuessLine).field.clear()
        self.view.step = self.progress.step.name
        written = self.progress.step.written
        self._try(partial(self.stepping.choose, kernel=written.kernel, n=written.follow))
        self.stepping.go(0)
        self._course_shown()
        self.query_one(self.PANEL).scroll_home(animate=False)

    def _course_shown(self) -> None:
        self.set_class(self.course_open, "-course")
        self.update(True)
        self.refresh_bindings()

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        with self.reporting("error"):
            for step in self.progress.lessons.course:
                title = f"Course {step.number}: {step.written.title}"
                yield Command(title, partial(self.open_step, step.name), step.written.kernel, looks=True)
        for kernel in known_kernels().values():
            yield Command(f"Follow: {kernel.id}", partial(self.follow, kernel.id), kernel.title, looks=True)
