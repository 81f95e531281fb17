"""The place to learn: follow a small graph through a kernel's plan, k by k, and change it; a course leads through them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.widget import Widget

from fwtui.common.errors import Refused
from fwtui.learn import real
from fwtui.learn.course import Step
from fwtui.learn.real import Agreement
from fwtui.learn.stepping import Stepping, parse_weight, stepping
from fwtui.tui.frame import bindings
from fwtui.tui.frame.dialogs import AskScreen
from fwtui.tui.frame.palette import Command
from fwtui.tui.frame.view import View
from fwtui.tui.learn.course import CourseWords
from fwtui.tui.learn.grid import DistanceGrid, shown
from fwtui.tui.learn.taught import COURSE_KEYS, Taught
from fwtui.tui.learn.words import LessonWords, Shown, StepWords, place
from fwtui.tui.widgets.matrix import MatrixPicture
from kernels import registry

SECONDS = 0.6  # of one k while it plays


class Compared(Message):
    """The kernel itself has run on the graph of that edition."""

    def __init__(self, edition: int, agreement: Agreement):
        super().__init__()
        self.edition = edition
        self.agreement = agreement


class LearnScreen(Taught):
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
        Binding("full_stop", "by_k(1)", "k on", id="learn.on", key_display=".", tooltip="the next k"),
        Binding("comma", "by_k(-1)", "k back", id="learn.back", key_display=",", show=False, tooltip="one k back"),
        Binding("right_square_bracket", "by_step(1)", "Step", id="learn.step", key_display="]", tooltip="to the next step"),
        Binding(
            "left_square_bracket",
            "by_step(-1)",
            "Step back",
            id="learn.step.back",
            key_display="[",
            show=False,
            tooltip="a step back",
        ),
        Binding(
            "right_curly_bracket",
            "by_round(1)",
            "Round",
            id="learn.round",
            key_display="}",
            show=False,
            tooltip="to the next round",
        ),
        Binding(
            "left_curly_bracket",
            "by_round(-1)",
            "Round back",
            id="learn.round.back",
            key_display="{",
            show=False,
            tooltip="a round back",
        ),
        Binding("home", "to(0)", "Beginning", id="learn.home", show=False, tooltip="to the graph itself"),
        Binding("end", "to(1)", "End", id="learn.end", show=False, tooltip="to the distances"),
        Binding("space", "walk", "Play", id="learn.play", tooltip="one k after the other; again: pause"),
        Binding("w", "weight", "Weight", id="learn.weight", tooltip="another weight for the marked edge"),
        Binding(
            "enter",
            "enter",
            "Go on",
            id="learn.enter",
            key_display="Enter",
            show=False,
            tooltip="in the course: guess, then the next step; else another weight",
        ),
        Binding("n", "size", "Size", id="learn.size", show=False, tooltip="another number of vertices"),
        Binding("x", "another", "Other graph", id="learn.another", show=False, tooltip="another graph of this size"),
        Binding("k", "kernel(1)", "Kernel", id="learn.kernel", show=False, tooltip="the next kernel of the ladder"),
        Binding("K", "kernel(-1)", "Kernel before", id="learn.kernel.before", show=False, tooltip="the kernel before"),
        Binding(
            "v", "compare", "Verify", id="learn.verify", tooltip="run the kernel itself on this graph and compare every step"
        ),
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
        self._agreement: tuple[int, Agreement] | None = None  # of an edition
        self._comparing: int | None = None  # the edition that is being compared
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
        self._playing = self.set_interval(SECONDS, partial(self._play_on), pause=True)
        self._plays = False
        self.begin()

    def on_unmount(self) -> None:
        self._stop.set()

    def panel(self) -> Widget:
        return self.query_one("#right")

    def state(self) -> object:
        return (*self._place.at, self._agreement, self._comparing, self.lesson)

    def update(self, forced: bool = False) -> None:
        self.advance()
        super().update(forced)

    def show(self) -> None:
        lesson = self.lesson
        self.query_one(DistanceGrid).show()
        self.query_one(CourseWords).show(lesson)
        self.query_one(StepWords).show(self._place)
        self.query_one(LessonWords).show(Shown(self.stepping.experiment.kernel, whole=lesson is None))
        beside = self.cited if self.matrix_seen else None
        self.query_one(MatrixPicture).show(
            beside.run if beside else None, beside.entrant.model.t if beside else 0.0, self.view.motion
        )
        self.query_one("#left").set_class(lesson is not None and not self.has_class("-narrow"), "-spare")

    def follow_step(self, step: Step) -> None:
        self._try(partial(self.stepping.choose, kernel=step.written.kernel, n=step.written.follow))
        self.stepping.go(0)

    def action_enter(self) -> None:
        if self.taught:
            self.action_go_on()
        else:
            self.action_weight()

    @property
    def _place(self):
        agreement = self._agreement
        of_this = agreement[1] if agreement is not None and agreement[0] == self.stepping.edition else None
        return place(self.stepping, of_this, self._comparing == self.stepping.edition)

    def on_distance_grid_marked(self, event: DistanceGrid.Marked) -> None:
        event.stop()
        self.update()

    def action_by_k(self, count: int) -> None:
        self._go(self.stepping.position + count)

    def action_by_step(self, direction: int) -> None:
        self._go(self.stepping.trace.next_step(self.stepping.position, direction))

    def action_by_round(self, direction: int) -> None:
        self._go(self.stepping.trace.next_round(self.stepping.position, direction))

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
        try:
            change()
        except Refused as refusal:
            self.say(str(refusal), "warning")
        else:
            self._stop.set()
            self.say("")

    def action_compare(self) -> None:
        s = self.stepping
        if self._comparing == s.edition:
            return
        self._comparing, self._stop = s.edition, Event()
        arguments = (s.edition, partial(real.compare, s.trace, s.experiment, self._stop))
        Thread(target=self._compare, args=arguments, name="compare", daemon=True).start()
        self.update()

    def _compare(self, edition: int, compare: Callable[[], Agreement]) -> None:
        try:
            agreement = compare()
        except Exception as error:
            agreement = Agreement(reason=str(error))
        with contextlib.suppress(RuntimeError):  # the screen is gone
            self.post_message(Compared(edition, agreement))

    def on_compared(self, event: Compared) -> None:
        if event.edition == self.stepping.edition:
            self._agreement = (event.edition, event.agreement)
        if self._comparing == event.edition:
            self._comparing = None
        self.update()

    def commands(self) -> Iterator[Command]:
        yield from super().commands()
        for kernel in registry().values():
            yield Command(f"Follow: {kernel.id}", partial(self.follow, kernel.id), kernel.title)
