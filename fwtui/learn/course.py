"""The course: ordered steps, each with a text, a kernel, a recorded run, and a question that the run answers.

A step is a file `sessions/course/NN-name.toml`; sessions/README.md defines its fields.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from fwtui.common.errors import Refused, as_refused
from fwtui.common.text import quoted, suggest
from fwtui.experiment.experiment import Experiment, changed
from fwtui.learn.prompts import Prompt
from fwtui.learn.questions import KINDS, QuestionKind
from fwtui.sessions.folders import shipped_folder

FOLDER = "course"
MAX_COLUMNS = 72  # the width of a step's text
TERM = re.compile(r"\*([^*]+)\*")  # a term in the sentence that explains it
DEFAULTS = Experiment()


class RecordedRun(Struct, frozen=True, forbid_unknown_fields=True):
    """The recorded run of a step: the fastest verified run of its kernel in the named session, with these values."""

    session: str
    n: int = 0  # 0: any
    tile: int = 0
    launch: str = ""
    dtype: str = ""


class LocalRun(Struct, frozen=True, forbid_unknown_fields=True):
    """The run on this machine: smaller, or of other kernels, if the step's kernel needs hardware that few machines have."""

    n: int
    kernels: tuple[str, ...] = ()  # replace the step's kernel; the baseline is first
    devices: str = ""  # the devices of the last kernel
    kind: str = ""  # the kind of the graph

    def experiments(self, budget: float = DEFAULTS.budget) -> tuple[Experiment, ...]:
        """Return the runs of `kernels`."""
        kind, last = self.kind or DEFAULTS.kind, len(self.kernels) - 1
        pairs = [(kernel, self.devices if place == last else "") for place, kernel in enumerate(self.kernels)]
        return tuple(changed(Experiment(kernel=k, n=self.n, devices=on, budget=budget), kind=kind) for k, on in pairs)


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    ask: str = ""  # default: the question of the kind
    against: str = ""  # name of the step that is the baseline; default: the previous step
    kernel: str = ""  # a baseline instead of `against`: the run of this kernel on the same graph in the same session


class StepFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A step's file."""

    title: str
    kernel: str
    text: str
    recorded: RecordedRun
    question: Question
    afterwards: str = ""
    live: LocalRun | None = None
    follow: int = 8  # vertices of the small graph of the step-by-step view
    prompts: tuple[Prompt, ...] = ()  # ordered changes to a kernel of the student


class CourseStep(NamedTuple):
    """A step. `against` is the index of its baseline step."""

    number: int  # from 1
    name: str
    written: StepFile
    against: int | None

    @property
    def kind(self) -> QuestionKind:
        return KINDS[self.written.question.kind]

    @property
    def ask(self) -> str:
        return self.written.question.ask or self.kind.ask


Course = tuple[CourseStep, ...]


def course_folder() -> Path:
    """Return the folder of the course that ships with the program."""
    return shipped_folder() / FOLDER


def load_course(folder: Path | None = None) -> Course:
    """Read all steps of a folder in the order of the file names. Raises Refused if one cannot be read.

    The tests check that the texts, kernels and runs of the shipped steps are valid.
    """
    steps: Course = ()
    with as_refused("the course cannot be read", "install the program again", ValueError, msgspec.MsgspecError):
        for path in sorted(path for path in (folder or course_folder()).iterdir() if path.suffix == ".toml"):
            written = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), StepFile)
            steps += (CourseStep(len(steps) + 1, path.stem.partition("-")[2], written, _against(written, steps)),)
    return steps


def step_named(course: Course, name: str) -> CourseStep:
    """Return the step with that number or name. Raises Refused if the course does not have it."""
    for step in course:
        if name.strip().lower() in (step.name, str(step.number)):
            return step
    hint = suggest(name, (s.name for s in course))
    offered = hint if hint.endswith("?") else f"choose one of {', '.join(f'{s.number} {s.name}' for s in course)}"
    raise Refused(f"the course has no step {quoted(name)}; {offered}")


def prompts_of(course: Course) -> tuple[Prompt, ...]:
    """Return the prompts of the first step that has some."""
    return next(step.written.prompts for step in course if step.written.prompts)


def paragraphs(text: str) -> list[str]:
    """Split a text at empty lines into paragraphs of one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _against(written: StepFile, before: Sequence[CourseStep]) -> int | None:
    """Return the index of the baseline step: the named one, else the previous one. Raises ValueError for an unknown name."""
    if written.question.against:
        return [step.name for step in before].index(written.question.against)
    return len(before) - 1 if before else None
