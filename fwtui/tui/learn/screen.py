"""The place to learn: follow a small graph through a kernel's plan, k by k, and change it; a course leads through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from threading import Event
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll

from fwtui.common.errors import Refused
from fwtui.learn import real
from fwtui.learn.course import Step
from fwtui.learn.real import Agreement
from fwtui.learn.stepping import Stepping, parse_weight, stepping
from fwtui.tui.background import in_background
from fwtui.tui.frame import bindings
from fwtui.tui.frame.bindings import bound, hidden
from fwtui.tui.frame.dialogs import AskScreen
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.learn.course_screen import COURSE_KEYS, CourseScreen, CourseWords
from fwtui.tui.learn.distance_grid import DistanceGrid, shown
from fwtui.tui.learn.step_words import LessonWords, Place, Shown, StepWords
from fwtui.tui.widgets.matrix import MatrixPicture
from kernels import registry

SECONDS = 0.6  # of one k while it plays
OF_MATRIX = ("by_k", "by", "to", "walk", "weight", "size", "another", "compare", "kernel")


class LearnScreen(CourseScreen):
    DEFAULT_CSS = """
    LearnScreen #learn { height: 1fr; layout: horizontal; padding: 0 1; }
    LearnScreen #left { width: auto; max-width: 60%; height: 1fr; padding-right: 2; }
    LearnScreen #right { width: 1fr; height: 1fr; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    LearnScreen DistanceGrid { max-height: 100%; max-width: 100%; }
    LearnScreen LessonWords { margin-top: 1; }
    LearnScreen MatrixPicture { display: none; width: 36; height: 18; margin-top: 1; padding-left: 4; }
    LearnScreen CourseWords { margin-bottom: 1; }
    LearnScreen #left.-spare { max-width: 46; }
    LearnScreen.-narrow #learn { layout: vertical; }
    LearnScreen.-narrow #left { width: 1fr; max-width: 100%; height: auto; max-height: 50%; }
    LearnScreen.-course CourseWords { display: block; }
    LearnScreen CourseWords { display: none; }
    LearnScreen.-narrow.-course #left, LearnScreen.-narrow.-course StepWords { display: none; }
    LearnScreen.-narrow.-course LessonWords { display: none; }
    """
    PLACE = "learn"
    PANEL = "#right"
    STRIP = False
    AUTO_FOCUS = "DistanceGrid"
    WORDS = (
        ("k", "the vertex that paths may go through from now on; a cell is relaxed once for every k"),
        ("step", "one launch of the kernel's plan; it goes through one k or through a tile of them"),
        ("round", "one pivot block (or one k), with all that follows from it"),
        ("written .. read", "' and a tint: the step writes the cell; . and a lighter one: it reads it; *: it became shorter"),
        ("path", "the vertices of the shortest path that is known by now"),
        ("course", "steps from one core to the fastest kernel; each asks a question that a recorded run answers"),
        ("recorded, here", "what the run in the session file says, and what this machine said when it ran the same"),
    )
    MOVES = ("The matrix", tuple(b for b in DistanceGrid.BINDINGS if isinstance(b, Binding)))
    BINDINGS: ClassVar = [
        *COURSE_KEYS,
        bound(".", "by_k(1)", "k on", "the next k", id="learn.on"),
        hidden("comma", "by_k(-1)", "k back", "one k back", id="learn.back"),
        bound("]", "by('step', 1)", "Step", "to the next step", id="learn.step"),
        hidden("[", "by('step', -1)", "Step back", "a step back", id="learn.step.back"),
        hidden("}", "by('round', 1)", "Round", "to the next round", id="learn.round"),
        hidden("{", "by('round', -1)", "Round back", "a round back", id="learn.round.back"),
        hidden("home", "to(0)", "Beginning", "to the graph itself", id="learn.home"),
        hidden("end", "to(1)", "End", "to the distances", id="learn.end"),
        bound("space", "walk", "Play", "one k after the other; again: pause", id="learn.play"),
        bound("w", "weight", "Weight", "another weight for the marked edge", id="learn.weight"),
        hidden(
            *("enter", "enter", "Go on", "in the course: guess, then the next step; else another weight"),
            id="learn.enter",
            key_display="Enter",
        ),
        hidden("n", "size", "Size", "another number of vertices", id="learn.size"),
        hidden("x", "another", "Other graph", "another graph of this size", id="learn.another"),
        hidden("k", "kernel(1)", "Kernel", "the next kernel of the ladder", id="learn.kernel"),
        hidden("K", "kernel(-1)", "Kernel before", "the kernel before", id="learn.kernel.before"),
        bound("v", "compare", "Verify", "run the kernel itself on this graph and compare every step", id="learn.verify"),
        bindings.MOTION,
        bindings.CANCEL,
        replace(bindings.RECORD, show=False),
        replace(bindings.MARK, show=False),
        bindings.PAUSE,
        *bindings.COMMON,
    ]

    def __init__(self, view: View):
        super().__init__(view)
        self.stepping: Stepping = stepping()
        self._agreement: tuple[int | None, Agreement | None] = (None, None)  # an edition, and what came of it; None: not yet
        self._stop = Event()

    def body(self) -> ComposeResult:
        with Container(id="learn"):
            with Container(id="left"):
                yield DistanceGrid(self.stepping)
                yield MatrixPicture()
            with VerticalScroll(id="right", can_focus=False):
                yield CourseWords(None)
                yield StepWords(self._place)
                yield LessonWords(Shown(self.stepping.experiment.kernel))

    def on_mount(self) -> None:
        self._playing = self.set_interval(SECONDS, self._play_on, pause=True)
        self._plays = False
        if self.view.lesson:
            self.open_step(self.view.lesson)

    def on_unmount(self) -> None:
        self._stop.set()

    def state(self) -> object:
        return (*self._place.at, self._agreement, self.lesson)

    def show(self) -> None:
        lesson = self.lesson
        self.query_one(DistanceGrid).show()
        self.query_one(CourseWords).show(lesson)
        self.query_one(StepWords).show(self._place)
        self.query_one(LessonWords).show(Shown(self.stepping.experiment.kernel, whole=lesson is None))
        cited = lesson.page.cited if lesson is not None and self.matrix_seen else None
        run, t = (cited.run, cited.model.t) if cited is not None else (None, 0.0)
        self.query_one(MatrixPicture).show(run, t, self.view.motion)
        self.query_one("#left").set_class(lesson is not None and not self.has_class("-narrow"), "-spare")

    def follow_step(self, step: Step) -> None:
        self._try(partial(self.stepping.choose, kernel=step.written.kernel, n=step.written.follow))
        self.stepping.go(0)

    def action_enter(self) -> None:
        if self.course_open:
            self.go_on()
        else:
            self.action_weight()

    @property
    def _place(self) -> Place:
        s, (edition, found) = self.stepping, self._agreement
        here = edition == s.edition
        at = (s.edition, s.position, s.row, s.column)
        return Place(s, at, found if here else None, here and found is None)

    def on_distance_grid_marked(self, event: DistanceGrid.Marked) -> None:
        event.stop()
        self.update()

    def action_by_k(self, count: int) -> None:
        self._go(self.stepping.position + count)

    def action_by(self, part: str, direction: int) -> None:
        self._go(self.stepping.trace.next_of(part, self.stepping.position, direction))

    def action_to(self, end: int) -> None:
        self._go(end * len(self.stepping.trace.moments))

    def _go(self, position: int) -> None:
        before = self.stepping.position
        self.stepping.go(position)
        if self.stepping.position == before:
            self.say("these are the distances: the end" if before else "this is the graph itself: the beginning")
        self.update()

    def action_walk(self) -> None:
        self._plays = not self._plays
        if self._plays:
            if self.stepping.position == len(self.stepping.trace.moments):
                self.stepping.go(0)
            self._playing.resume()
        else:
            self._playing.pause()
        self.update()

    def _play_on(self) -> None:
        if self.stepping.position >= len(self.stepping.trace.moments):
            self._plays = False
            self._playing.pause()
        self.action_by_k(1)

    def action_weight(self) -> None:
        s = self.stepping
        edge = f"Weight of the edge from {s.row} to {s.column}"
        before = "-" if s.weights[s.row, s.column] == float("inf") else shown(s.weights[s.row, s.column])
        self._ask(edge, before, "a whole number; - is no edge", lambda text: s.set_weight(parse_weight(text)))

    def action_size(self) -> None:
        def choose(text: str) -> None:
            if not (text.isascii() and text.isdecimal() and len(text) < 5):
                raise Refused(f"{text[:20]!r} is no number of vertices; type one such as 8")
            self.stepping.choose(n=int(text))

        self._ask("Number of vertices", str(self.stepping.trace.n), "up to 24", choose)

    def _ask(self, title: str, value: str, hint: str, take: Callable[[str], None]) -> None:
        def answered(text: str | None) -> None:
            if text is not None:
                self._try(partial(take, text))

        self.app.push_screen(AskScreen(title, value, hint, max_length=40), answered)

    def action_another(self) -> None:
        self._try(partial(self.stepping.choose, seed=self.stepping.experiment.seed + 1))

    def action_kernel(self, direction: int) -> None:
        ids = list(registry())
        self.follow(ids[(ids.index(self.stepping.experiment.kernel) + direction) % len(ids)])

    def follow(self, kernel: str) -> None:
        """Another kernel on the same graph."""
        self._try(partial(self.stepping.choose, kernel=kernel))

    def _try(self, change: Callable[[], None]) -> None:
        with self.saying():
            change()
            self._stop.set()
            self.say("")

    def action_compare(self) -> None:
        s = self.stepping
        if self._agreement == (s.edition, None):
            return
        self._agreement, self._stop = (s.edition, None), Event()
        compare = partial(real.compare, s.trace, s.experiment, self._stop)
        in_background(self, compare, partial(self._compared, s.edition), "compare")
        self.update()

    def _compared(self, edition: int, agreement: Agreement) -> None:
        """The kernel itself has run on the graph of that edition."""
        if self._agreement == (edition, None):
            self._agreement = (edition, agreement)
        self.update()

    def why_not(self, action: str) -> str:
        course = self.key_of("learn.course")
        if not self.matrix_seen and action in ("motion", *OF_MATRIX):
            return f"the matrix has no room beside the course; {course} shows it"
        if action == "motion" and not self.course_open:
            return f"only the course has a picture here; {course} opens it"
        return super().why_not(action)

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        for kernel in registry().values():
            yield Command(f"Follow: {kernel.id}", partial(self.follow, kernel.id), kernel.title)
