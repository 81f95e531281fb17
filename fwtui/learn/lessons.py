"""The course with its recordings, and a user's progress in it: guesses, and runs on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.ladder import Rung, build_ladder
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.experiment.experiment import Experiment, changed
from fwtui.learn import placeholders
from fwtui.learn.course import Course, CourseStep, LocalRun, course_folder, load_course, paragraphs
from fwtui.learn.questions import GuessChoice, QuestionAnswer, QuestionKind, numbered, parse_guess, pick, verdict
from fwtui.machine.device_choice import check_mpi
from fwtui.sessions.folders import PACKED, stem
from fwtui.sessions.library import load_model
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels import registry

BUDGET = 2.0  # seconds of timed repetitions of a step's run on this machine
Guess = float | str | None  # a number, the key of a choice, or None if only the answer was requested


class Lessons:
    """A course and the folder of its recordings. The methods raise Refused if a recording lacks a value."""

    def __init__(self, course: Course, sessions: Path):
        self.course = course
        self._sessions = sessions

    def cited(self, step: CourseStep) -> ComparedRun:
        """Return the recorded run of a step."""
        recorded = step.written.recorded
        path = session_path(self._sessions, recorded.session)
        model = _model_of(path)
        fitting = [run for run in model.runs.values() if _fits(run, step)]
        return ComparedRun(model, _fastest(fitting, step, "cites", step.written.kernel, recorded.session), stem(path))

    def ladder(self) -> tuple[Rung, ...]:
        """Return the ladder of the recorded runs of all steps."""
        return build_ladder(self.cited(step).run for step in self.course)

    def before(self, step: CourseStep) -> ComparedRun | None:
        """Return the recorded run that the step's run is compared with."""
        if kernel := step.written.question.kernel:
            return self.same_graph(step, kernel)
        return self.cited(self.course[step.against]) if step.against is not None else None

    def same_graph(self, step: CourseStep, kernel: str, dtype: str = "") -> ComparedRun:
        """Return the fastest run of a kernel (in a data type) on the graph of the step's run, in the same session.

        Raises Refused if the session does not have one.
        """
        entrant = self.cited(step)
        work, name = (kernel, entrant.run.experiment.graph), f"{kernel} in {dtype}" if dtype else kernel
        on_graph = [
            run for run in entrant.model.runs.values() if run.counts and (run.experiment.kernel, run.experiment.graph) == work
        ]
        fitting = [run for run in on_graph if dtype in ("", run.experiment.dtype)]
        return entrant._replace(run=_fastest(fitting, step, "compares with", name, entrant.session))

    def lines(self, step: CourseStep, text: str) -> list[str]:
        """Return the paragraphs of a text of the step with all placeholders filled in, separated by empty lines.

        Raises Refused if a run lacks a value.
        """

        def filled(found: re.Match[str]) -> str:
            name = found[1]
            dtype = placeholders.dtype_of(name)
            entrant = self.same_graph(step, step.written.kernel, dtype) if dtype else self.cited(step)
            before = self.before(step) if name.startswith(placeholders.BEFORE) else None
            value = placeholders.value_of(name.removeprefix(f"{dtype}.") if dtype else name, entrant, before)
            if not value:
                raise Refused(f"{{{name}}} is unknown for {entrant.label}; omit it or choose another run")
            return value

        parts = [sanitise(placeholders.NAMED.sub(filled, part)) for part in paragraphs(text)]
        return [line for part in parts for line in ("", part)][1:]

    def title(self, step: CourseStep) -> str:
        return " ".join(self.lines(step, step.written.title))

    def ask(self, step: CourseStep) -> str:
        return " ".join(self.lines(step, step.ask))

    def choices(self, step: CourseStep) -> tuple[GuessChoice, ...]:
        return step.kind.choices(self.cited(step))

    def answer(self, step: CourseStep) -> QuestionAnswer:
        return step.kind.answer(self.cited(step), self.before(step) if step.kind.compares else None)

    def here(self, step: CourseStep, gpu: bool) -> tuple[Experiment, ...]:
        """Return the runs for this machine, first the baseline; without a GPU, CUDA kernels run in the simulator.

        Raises Refused if it cannot run here.
        """
        live = step.written.live
        if live is not None and live.kernels:
            if live.devices:
                _check_devices(live)
            return live.experiments(BUDGET)
        kernel, recorded = registry()[step.written.kernel], step.written.recorded
        dtype = {"dtype": recorded.dtype} if recorded.dtype else {}
        steps = [step] if not step.kind.compares or step.against is None else [self.course[step.against], step]
        lacking = [s.written.kernel for s in steps if registry()[s.written.kernel].backend == "cuda" and not gpu]
        if kernel.id in lacking and kernel.simulates:
            tile = kernel.simulator_tiles[0] if kernel.tiles else 0
            small = Experiment(kernel=kernel.id, n=step.written.follow, tile=tile, device="simulator")
            return (changed(small, **dtype),)
        if lacking:
            raise Refused(f"{lacking[0]} needs a GPU, and this machine has none; use the answer of the recorded run")
        n = live.n if live is not None else self.cited(step).run.n
        return tuple(
            changed(Experiment(kernel=s.written.kernel, n=n, budget=BUDGET, tile=s.written.recorded.tile), **dtype) for s in steps
        )


def lessons() -> Lessons:
    """Load the shipped course with its recordings. Raises Refused."""
    return Lessons(load_course(), course_folder().parent)


def session_path(folder: Path, name: str) -> Path:
    """Return the path of the shipped session with that name."""
    return folder / f"{name}{PACKED}"


def describe_recorded(cited: ComparedRun) -> str:
    """Describe the recorded run: Katz-Kider, n 4096, recorded on NVIDIA H200, 2026-11-20."""
    header = cited.model.header
    day = f", {sanitise(header.created[:10])}" if header is not None and header.created else ""
    where = f"recorded on {sanitise(cited.device) or 'a machine without a name'}{day}"
    return f"{sanitise(cited.run.title)}, n {cited.run.n}, {where}"


def _check_devices(live: LocalRun) -> None:
    """Raise Refused if no ranks can start on the devices of the run."""
    try:
        check_mpi(live.devices)
    except Refused as refusal:
        raise Refused(f"{refusal}; or use the answer of the recorded run") from None


def _fastest(runs: Sequence[Run], step: CourseStep, verb: str, kernel: str, session: str) -> Run:
    if not runs:
        raise Refused(f"step {step.number} {verb} a run of {kernel} that {session} does not have; record it")
    return min(runs, key=lambda run: run.seconds or 0.0)


def _fits(run: Run, step: CourseStep) -> bool:
    recorded, e = step.written.recorded, run.experiment
    pairs = ((recorded.n, run.n), (recorded.tile, e.tile), (recorded.launch, e.launch), (recorded.dtype, e.dtype))
    return e.kernel == step.written.kernel and run.counts and all(want in (0, "", has) for want, has in pairs)


@lru_cache(maxsize=8)
def _model_of(path: Path) -> Model:
    return load_model(path)[0]


class LocalAnswer(NamedTuple):
    """The result of a run on this machine: an answer, or the reason for none."""

    n: int
    answer: QuestionAnswer | None
    reason: str = ""


class Page(NamedTuple):
    """The displayed content of a step; `answer` is set after the user's guess."""

    number: int
    of: int
    title: str
    kind: QuestionKind | None = None
    cited: ComparedRun | None = None
    text: tuple[str, ...] = ()
    ask: str = ""
    choices: tuple[GuessChoice, ...] = ()
    guess: Guess = None
    answer: QuestionAnswer | None = None
    verdict: str = ""
    afterwards: tuple[str, ...] = ()
    here: LocalAnswer | None = None
    ladder: tuple[Rung, ...] = ()  # at the end of the course
    problem: str = ""

    @property
    def asks(self) -> bool:
        """Return True if its question has no answer yet."""
        return not self.problem and self.answer is None

    @property
    def hint(self) -> str:
        """Return the form of a guess, for the prompt."""
        return numbered(self.choices) if self.choices else self.kind.hint if self.kind is not None else ""


class CourseProgress:
    """The user's position in the course; guesses last until the program ends."""

    def __init__(self, lessons: Lessons):
        self.lessons = lessons
        self.place = 0
        self._guesses: dict[str, Guess] = {}
        self._runs: dict[str, tuple[int, ...]] = {}  # by step: the runs on this machine, first the baseline
        self._waiting: list[Experiment] = []
        self._begun: list[int] = []
        self._for = ""  # name of the step whose runs are queued
        self._page: tuple[object, Page] | None = None

    @property
    def step(self) -> CourseStep:
        return self.lessons.course[self.place]

    @property
    def answered(self) -> bool:
        """Return True if the reader has seen the answer of the open step."""
        return self.step.name in self._guesses

    def go(self, place: int) -> bool:
        """Open another step. Return False if it does not exist."""
        if not 0 <= place < len(self.lessons.course):
            return False
        self.place = place
        return True

    def guess(self, text: str) -> None:
        """Store a typed guess; an empty one only shows the answer. Raises Refused if it cannot be parsed."""
        guess: Guess = None
        if text.strip():
            choices = self.lessons.choices(self.step)
            guess = pick(choices, text) if choices else parse_guess(self.step.kind, text)
        self._guesses[self.step.name] = guess

    def runs(self, gpu: bool) -> tuple[Experiment, ...]:
        """Return the runs of the open step on this machine. Raises Refused if it cannot run here."""
        return self.lessons.here(self.step, gpu)

    def simulates(self, gpu: bool) -> bool:
        """Return True if the open step runs in the simulator on this machine. Raises Refused if it cannot run here."""
        return self.runs(gpu)[0].device_id.simulated

    def plan(self, gpu: bool) -> None:
        """Queue the open step's runs on this machine, for next_run(). Raises Refused if it cannot run here."""
        self._waiting = [*self.runs(gpu)]
        self._begun, self._for = [], self.step.name

    def next_run(self, model: Model) -> Experiment | None:
        """Return the next run to start when no run is active; None if all are done, or after a failed one."""
        last = model.runs.get(self._begun[-1]) if self._begun else None
        if self._begun and (last is None or last.state != "done" or last.wrong):
            self.give_up()
        return self._waiting[0] if self._waiting else None

    def began(self, run: int) -> None:
        """Record the number of the run that was started for next_run()."""
        self._waiting.pop(0)
        self._begun.append(run)
        self._runs[self._for] = tuple(self._begun)

    def give_up(self) -> None:
        self._waiting = []

    def page(self, model: Model) -> Page:
        """Return the displayed lesson; `model` is that of the live session."""
        runs = tuple(model.runs.get(run) for run in self._runs.get(self.step.name, ()))
        key = (self.place, self._guesses.get(self.step.name, ...), runs, len(self._waiting))
        if self._page is None or self._page[0] != key:
            self._page = (key, self._made(model, runs))
        return self._page[1]

    def _made(self, model: Model, runs: Sequence[Run | None]) -> Page:
        step, lessons = self.step, self.lessons
        first = Page(step.number, len(lessons.course), step.written.title)
        try:
            cited = lessons.cited(step)
            first = first._replace(cited=cited)
            page = first._replace(
                title=lessons.title(step),
                kind=step.kind,
                text=tuple(lessons.lines(step, step.written.text)),
                ask=lessons.ask(step),
                choices=lessons.choices(step),
                here=_here(step, model, runs, bool(self._waiting) and self._for == step.name),
            )
            if self.answered:
                answer, guess = lessons.answer(step), self._guesses[step.name]
                result = "" if guess is None else verdict(step.kind, guess, answer)
                after = tuple(lessons.lines(step, step.written.afterwards))
                page = page._replace(answer=answer, guess=guess, verdict=result, afterwards=after)
                if step.number == len(lessons.course):
                    page = page._replace(ladder=lessons.ladder())
        except Refused as refusal:
            return first._replace(problem=str(refusal))
        return page


def _here(step: CourseStep, model: Model, runs: Sequence[Run | None], more: bool) -> LocalAnswer | None:
    if not runs or runs[-1] is None:
        return None
    run = runs[-1]
    before = ComparedRun(model, runs[0]) if len(runs) > 1 and runs[0] is not None else None
    try:
        if run.state == "running" or more:
            raise Refused(f"{run.title} is running: {run.stage or 'starting'}")
        if run.state != "done":
            raise Refused(f"{run.title} was {run.state}")
        if run.wrong:
            raise Refused(f"{run.title} computed incorrect distances")
        if run.simulated:
            raise Refused("all distances are correct; the simulator runs each GPU thread in Python, so it measures no time")
        return LocalAnswer(run.n, step.kind.answer(ComparedRun(model, run), before))
    except Refused as refusal:
        return LocalAnswer(run.n, None, str(refusal))
