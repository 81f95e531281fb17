"""The steps of the course beside the recordings that they cite: texts with their numbers, answers, and what is missing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path

from fwtui.analysis.climb import Rung, climb
from fwtui.analysis.compare import ComparedRun
from fwtui.common.errors import Refused, refusing
from fwtui.common.text import clean, shown
from fwtui.experiment.experiment import Experiment, changed
from fwtui.learn import placeholders
from fwtui.learn.course import (
    MOST_AFTERWARDS,
    MOST_COLUMNS,
    MOST_LINES,
    Course,
    CourseStep,
    LocalRun,
    course_folder,
    load_course,
    paragraphs,
)
from fwtui.learn.questions import GuessChoice, QuestionAnswer
from fwtui.learn.stepping import FIRST, PLAYED_SECONDS, stepping
from fwtui.sessions.folders import PACKED, SUFFIX, stem
from fwtui.sessions.library import load_model
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels import registry

BUDGET = 2.0  # seconds of timed passes of a step's run on this machine
WORDS_PER_SECOND = 200 / 60  # that a student reads
QUESTION_SECONDS = 30.0  # for a guess, and for what the run says to it


class Lessons:
    """A course and the folder of its recordings. Raises Refused, in one sentence, for what a recording lacks."""

    def __init__(self, course: Course, sessions: Path, read: Callable[[Path], Model] | None = None):
        """`read` gives the model of a recording, by default the file's, read once as long as it does not change."""
        self.course = course
        self._sessions, self._read = sessions, read or _model

    @property
    def name(self) -> str:
        """From 2.53 billion to 16.3 trillion relaxations a second: what the first step's run does, and the fastest one."""
        rates = [self.cited(step).run.rate or 0.0 for step in self.course]
        return f"From {placeholders.counted(rates[0])} to {placeholders.counted(max(rates))} relaxations a second"

    def cited(self, step: CourseStep) -> ComparedRun:
        wanted = step.written.recorded
        path = session_path(self._sessions, wanted.session)
        model = self._read(path)
        fitting = [run for run in model.runs.values() if _fits(run, step)]
        return ComparedRun(model, _fastest(fitting, step, "cites", step.written.kernel, wanted.session), stem(path))

    def climbed(self) -> tuple[Rung, ...]:
        """The recorded runs that climb."""
        return climb(self.cited(step).run for step in self.course)

    def before(self, step: CourseStep) -> ComparedRun | None:
        """The recorded run that this one is compared with."""
        if kernel := step.written.question.kernel:
            entrant = self.cited(step)
            wanted = kernel, entrant.run.experiment.graph
            there = [r for r in entrant.model.runs.values() if r.counts and (r.experiment.kernel, r.experiment.graph) == wanted]
            return entrant._replace(run=_fastest(there, step, "compares with", kernel, entrant.session))
        return self.cited(self.course[step.against]) if step.against is not None else None

    def lines(self, step: CourseStep, text: str) -> list[str]:
        """A text of the step, its numbers filled in; an empty line between paragraphs."""
        entrant = self.cited(step)
        compares = any(name == "speedup" or name.startswith(placeholders.BEFORE) for name in placeholders.names(text))
        before = self.before(step) if compares else None
        filled = (clean(placeholders.fill(part, entrant, before)) for part in paragraphs(text))
        return [line for part in filled for line in ("", part)][1:]

    def title(self, step: CourseStep) -> str:
        return " ".join(self.lines(step, step.written.title))

    def ask(self, step: CourseStep) -> str:
        return " ".join(self.lines(step, step.ask))

    def choices(self, step: CourseStep) -> tuple[GuessChoice, ...]:
        return step.kind.choices(self.cited(step))

    def answer(self, step: CourseStep) -> QuestionAnswer:
        return step.kind.answer(self.cited(step), self.before(step) if step.kind.compares else None)

    def here(self, step: CourseStep, gpu: bool) -> tuple[Experiment, ...]:
        """What to run on this machine, first the run it is compared with; without a GPU, its kernels run in the simulator.

        Raises Refused if it cannot run here.
        """
        live = step.written.live
        if live is not None and live.kernels:
            if live.devices:
                _check_devices(live)
            return live.experiments(BUDGET)
        own = registry()[step.written.kernel]
        steps = [step] if not step.kind.compares or step.against is None else [self.course[step.against], step]
        lacking = [s.written.kernel for s in steps if registry()[s.written.kernel].backend == "cuda" and not gpu]
        if own.id in lacking and own.simulates:
            tile = own.simulator_tiles[0] if own.tiles else 0
            return (Experiment(kernel=own.id, n=step.written.follow, tile=tile, device="simulator"),)
        if lacking:
            raise Refused(f"{lacking[0]} needs a GPU, and none is here; the recorded run answers")
        n = live.n if live is not None else self.cited(step).run.n
        return tuple(Experiment(kernel=s.written.kernel, n=n, budget=BUDGET, tile=s.written.recorded.tile) for s in steps)

    def seconds(self, step: CourseStep) -> float:
        """How long a student takes for a step: reading, the question, the matrix played once, and the runs made here."""
        written = step.written
        said = (written.title, written.text, step.ask, written.afterwards, *(c.words for c in self.choices(step)))
        words = sum(len(text.split()) for text in said)
        played = stepping(changed(FIRST, kernel=written.kernel, n=written.follow)).trace.moments
        runs = BUDGET * (1 + step.kind.compares)
        return words / WORDS_PER_SECOND + QUESTION_SECONDS + PLAYED_SECONDS * len(played) + runs

    @cached_property
    def minutes(self) -> int:
        """How long a student takes for all steps."""
        return ceil(sum(map(self.seconds, self.course)) / 60)

    def problems(self) -> Iterator[tuple[CourseStep, str]]:
        """What is wrong between the steps and their recordings; empty if nothing."""
        for step in self.course:
            try:
                self._check(step)
            except Refused as refusal:
                yield step, str(refusal)

    def _check(self, step: CourseStep) -> None:
        for said in (self.title, self.ask, self.choices, self.answer):
            said(step)
        for what, lines, most in (
            ("text", self.lines(step, step.written.text), MOST_LINES),
            ("text after the answer", self.lines(step, step.written.afterwards), MOST_AFTERWARDS),
        ):
            wrapped = [line for part in lines for line in (textwrap.wrap(part, MOST_COLUMNS) or [""])]
            if len(wrapped) > most:
                raise Refused(
                    f"step {step.number}'s {what} has {len(wrapped)} lines of {MOST_COLUMNS} columns; {most} are the most"
                )


def lessons(folder: Path | None = None) -> Lessons:
    """The course of a folder (by default the one that ships), with the sessions of the folder around it. Raises Refused."""
    folder = folder or course_folder()
    return Lessons(load_course(folder), folder.parent)


def session_path(folder: Path, name: str) -> Path:
    """The session of that name, also with a date before or after it; of several the last one. Raises Refused."""
    with refusing("the sessions of the course cannot be read", "check their folder"):
        stems = {stem(path): path for path in folder.iterdir() if path.name.endswith((SUFFIX, PACKED))}
    if name in stems:
        return stems[name]
    dated = sorted(there for there in stems if there.startswith(f"{name}-") or there.endswith(f"-{name}"))
    if not dated:
        raise Refused(f"the course cites the session {shown(name)}, which is not here; record it or install the program again")
    return stems[dated[-1]]


def recorded_words(cited: ComparedRun) -> str:
    """Katz-Kider, n 4096, recorded on NVIDIA H200, 2026-11-20"""
    header = cited.model.header
    day = f", {clean(header.created[:10])}" if header is not None and header.created else ""
    where = f"recorded on {clean(cited.device) or 'a machine without a name'}{day}"
    return f"{clean(cited.run.title)}, n {cited.run.n}, {where}"


def listed(all_of_it: Lessons) -> list[tuple[str, ...]]:
    """One row for each step: number, name, title, kernel, run, question, and its answer or what is missing."""
    rows = [("step", "name", "title", "kernel", "run", "asks", "state")]
    problems = {step.number: words for step, words in all_of_it.problems()}
    for step in all_of_it.course:
        problem, title, run = problems.get(step.number, ""), step.written.title, ""
        if not problem:
            cited, title = all_of_it.cited(step), all_of_it.title(step)
            run = f"{clean(cited.session)}, n {cited.run.n}"
        rows.append((str(step.number), step.name, title, step.written.kernel, run, step.kind.name, problem or "ready"))
    return rows


def _check_devices(live: LocalRun) -> None:
    """Raises Refused if there can be no ranks on the devices that it names."""
    from fwtui.live.rank_job import check_job  # only here: it starts processes

    try:
        check_job(live.devices)
    except Refused as refusal:
        raise Refused(f"{refusal}; without it the picture of the recorded run shows the plan") from None


def _fastest(runs: Sequence[Run], step: CourseStep, says: str, kernel: str, session: str) -> Run:
    if not runs:
        raise Refused(f"step {step.number} {says} a run of {kernel} that {session} does not have; record it")
    return min(runs, key=lambda run: run.seconds or 0.0)


def _fits(run: Run, step: CourseStep) -> bool:
    wanted, e = step.written.recorded, run.experiment
    told = ((wanted.n, run.n), (wanted.tile, e.tile), (wanted.launch, e.launch), (wanted.dtype, e.dtype))
    return e.kernel == step.written.kernel and run.counts and all(want in (0, "", has) for want, has in told)


def _model(path: Path) -> Model:
    return _read_once(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read_once(path: Path, changed: int) -> Model:
    return load_model(path)[0]
