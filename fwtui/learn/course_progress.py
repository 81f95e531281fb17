"""A user's way through the course: the step that is open, the guesses that were made, and the runs made on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fwtui.analysis.climb import Rung
from fwtui.analysis.compare import ComparedRun
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.learn.course import CourseStep
from fwtui.learn.lessons import Lessons
from fwtui.learn.questions import GuessChoice, QuestionAnswer, QuestionKind, numbered, parse_guess, pick, verdict
from fwtui.stream.events import Ordered
from fwtui.stream.model import Model
from fwtui.stream.run import Run

Guess = float | str | None  # a number, the key of a choice, or None if only the answer was wanted


class LocalAnswer(NamedTuple):
    """What a run of this machine says: an answer, or why there is none yet."""

    n: int
    answer: QuestionAnswer | None
    words: str = ""
    ordered: Ordered | None = None  # its supernodes, if it has some


class Page(NamedTuple):
    """All that is shown of a step; `answer` is set once the user has guessed."""

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
    climbed: tuple[Rung, ...] = ()  # at the end of the course
    problem: str = ""

    @property
    def asks(self) -> bool:
        """Whether its question has no answer yet."""
        return not self.problem and self.answer is None

    @property
    def hint(self) -> str:
        """What a guess looks like."""
        return numbered(self.choices) if self.choices else self.kind.hint if self.kind is not None else ""


class CourseProgress:
    """Where the user is in the course; guesses are kept for as long as the program runs."""

    def __init__(self, lessons: Lessons):
        self.lessons = lessons
        self.place = 0
        self._guesses: dict[str, Guess] = {}
        self._runs: dict[str, tuple[int, ...]] = {}  # by step: the runs of this machine, the one compared with first
        self._waiting: list[Experiment] = []
        self._begun: list[int] = []
        self._for = ""  # the step that is being run
        self._page: tuple[object, Page] | None = None

    @property
    def step(self) -> CourseStep:
        return self.lessons.course[self.place]

    @property
    def told(self) -> bool:
        """Whether the reader has seen the open step's answer."""
        return self.step.name in self._guesses

    def go(self, place: int) -> bool:
        """Open another step; returns whether it exists."""
        if not 0 <= place < len(self.lessons.course):
            return False
        self.place = place
        return True

    def guess(self, text: str) -> None:
        """Take a guess as it was typed; an empty one only shows the answer. Raises Refused."""
        guess: Guess = None
        if text.strip():
            choices = self.lessons.choices(self.step)
            guess = pick(choices, text) if choices else parse_guess(self.step.kind, text)
        self._guesses[self.step.name] = guess

    def runs(self, gpu: bool) -> tuple[Experiment, ...]:
        """What the open step runs on this machine. Raises Refused if it cannot run here."""
        return self.lessons.here(self.step, gpu)

    def simulates(self, gpu: bool) -> bool:
        """Whether the open step runs in the simulator on this machine. Raises Refused if it cannot run here."""
        return self.runs(gpu)[0].device_id.simulated

    def plan(self, gpu: bool) -> None:
        """Queue the open step's runs on this machine, for next_run(). Raises Refused if it cannot run here."""
        self._waiting = [*self.runs(gpu)]
        self._begun, self._for = [], self.step.name

    def next_run(self, model: Model) -> Experiment | None:
        """The next run to start when none is going; None once all are done, or after one that failed."""
        last = model.runs.get(self._begun[-1]) if self._begun else None
        if self._begun and (last is None or last.state != "done" or last.wrong):
            self.give_up()
        return self._waiting[0] if self._waiting else None

    def began(self, run: int) -> None:
        """Note that next_run()'s run was started as that one."""
        self._waiting.pop(0)
        self._begun.append(run)
        self._runs[self._for] = tuple(self._begun)

    def give_up(self) -> None:
        self._waiting = []

    def page(self, model: Model) -> Page:
        """What is shown now; `model` is that of the live session."""
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
            if self.told:
                answer, guess = lessons.answer(step), self._guesses[step.name]
                said = "" if guess is None else verdict(step.kind, guess, answer)
                after = tuple(lessons.lines(step, step.written.afterwards))
                page = page._replace(answer=answer, guess=guess, verdict=said, afterwards=after)
                if step.number == len(lessons.course):
                    page = page._replace(climbed=self.lessons.climbed())
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
            raise Refused(f"{run.title} has wrong distances")
        if run.simulated:
            raise Refused("every distance is right; the simulator runs each GPU thread in Python, so nothing is timed")
        return LocalAnswer(run.n, step.kind.answer(ComparedRun(model, run), before), "", run.ordered)
    except Refused as refusal:
        return LocalAnswer(run.n, None, str(refusal))
