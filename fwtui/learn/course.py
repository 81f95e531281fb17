"""The course: ordered steps, each with a text, a kernel, a recorded run, and a question that the run answers.

A step is a file `sessions/course/NN-name.toml`; sessions/README.md defines its fields.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from fwtui.common.errors import Refused, as_refused, os_error_reason
from fwtui.common.text import quoted, sanitise, suggest
from fwtui.experiment.experiment import Experiment, changed, settle
from fwtui.learn import placeholders
from fwtui.learn.prompts import CHECKS, Prompt
from fwtui.learn.questions import KINDS, QuestionKind
from fwtui.learn.stepping import MAX_N
from fwtui.sessions.folders import shipped_folder
from fwtui_kernels import registry
from fwtui_kernels.plan import ITEMSIZE

FOLDER = "course"
LARGEST_FILE = 2**16  # bytes
MAX_LINES, MAX_COLUMNS = 10, 72  # of a step's text
MAX_AFTERWARDS = 4  # lines of the text after the answer
MAX_STEPS = 99
_FILE = re.compile(r"(\d{2})-([a-z][a-z0-9-]{0,40})\.toml", re.ASCII)
_DTYPES = re.compile(rf"\b(?:{'|'.join(ITEMSIZE)})\b")
_NUMBER_OR_BRACE = re.compile(r"[\d{}]")
TERM = re.compile(r"\*([^*]+)\*")  # a term in the sentence that explains it
DEFAULTS = Experiment()
Text = Annotated[str, Meta(max_length=2000)]
Size = Annotated[int, Meta(ge=0, le=65536)]


class RecordedRun(Struct, frozen=True, forbid_unknown_fields=True):
    """The recorded run of a step: the fastest verified run of its kernel in the named session, with these values."""

    session: Text
    n: Size = 0  # 0: any
    tile: Size = 0
    launch: Text = ""
    dtype: Text = ""


class LocalRun(Struct, frozen=True, forbid_unknown_fields=True):
    """The run on this machine: smaller, or of other kernels, if the step's kernel needs hardware that few machines have."""

    n: Size
    kernels: tuple[Text, ...] = ()  # replace the step's kernel; the baseline is first
    devices: Text = ""  # of the last kernel
    kind: Text = ""  # of the graph

    def experiments(self, budget: float = DEFAULTS.budget) -> tuple[Experiment, ...]:
        """Return the runs of `kernels`. Raises Refused for a kind that does not exist."""
        kind, last = self.kind or DEFAULTS.kind, len(self.kernels) - 1
        pairs = [(kernel, self.devices if place == last else "") for place, kernel in enumerate(self.kernels)]
        return tuple(changed(Experiment(kernel=k, n=self.n, devices=on, budget=budget), kind=kind) for k, on in pairs)


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    kind: Text
    ask: Text = ""  # default: the question of the kind
    against: Text = ""  # name of the step that is the baseline; default: the previous step
    kernel: Text = ""  # a baseline instead of `against`: the run of this kernel on the same graph in the same session


class StepFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A step's file."""

    title: Text
    kernel: Text
    text: Text
    recorded: RecordedRun
    question: Question
    afterwards: Text = ""
    live: LocalRun | None = None
    follow: Size = 8  # vertices of the small graph of the step-by-step view
    prompts: tuple[Prompt, ...] = ()  # ordered changes to a kernel of the student


class CourseStep(NamedTuple):
    """A step, checked as far as possible without a recording. `against` is the index of its baseline step."""

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
    """Read all steps of a folder in the order of the file names. Raises Refused with the file's name."""
    folder = folder or course_folder()
    with as_refused(f"the course in {sanitise(folder.name)} cannot be read", "install the program again"):
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    if not 1 <= len(paths) <= MAX_STEPS:
        raise Refused(f"the folder {sanitise(folder.name)} has {len(paths)} steps; a course has 1 to {MAX_STEPS}")
    steps: Course = ()
    for path in paths:
        steps += (_step(path, steps),)
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
    """Return the prompts of the first step that has some. Raises Refused if none has."""
    for step in course:
        if step.written.prompts:
            return step.written.prompts
    raise Refused("no step of the course has prompts; install the program again")


def paragraphs(text: str) -> list[str]:
    """Split a text at empty lines into paragraphs of one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _step(path: Path, before: Sequence[CourseStep]) -> CourseStep:
    file = sanitise(path.name)
    named = _FILE.fullmatch(path.name)
    if named is None:
        raise Refused(f"{file} is not the name of a step; rename it to two digits and a name, such as 03-blocked.toml")
    written = _read(path, file)
    if any(step.name == named[2] for step in before):
        raise Refused(f"{file} has the name of an earlier step, {named[2]}; choose another name")
    for problem in _problems(written):
        raise Refused(f"{file} {problem}")
    return CourseStep(len(before) + 1, named[2], written, _against(written, file, before))


def _read(path: Path, file: str) -> StepFile:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise Refused(f"{file} is larger than {LARGEST_FILE // 1024} KiB, the limit for a step; shorten its text")
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), StepFile)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {os_error_reason(error)}; check its permissions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"{file} is not TOML: {sanitise(str(error))}; correct that line") from None
    except msgspec.ValidationError as error:
        raise Refused(f"{file} does not have the fields of a step: {sanitise(str(error))}; see sessions/README.md") from None


def _problems(written: StepFile) -> Iterator[str]:
    """Yield the errors of a step's file, each as the rest of a sentence that begins with its name."""
    kernels, question, live = registry(), written.question, written.live
    if written.kernel not in kernels:
        yield f"has the kernel {quoted(written.kernel)}, which does not exist; `fwtui kernels` lists them"
    if question.kind not in KINDS:
        yield f"has the question {quoted(question.kind)}, which is not a kind of question; choose {', '.join(KINDS)}"
    if question.kernel and question.kernel not in kernels:
        yield f"compares with the kernel {quoted(question.kernel)}, which does not exist; `fwtui kernels` lists them"
    if not 1 <= written.follow <= MAX_N:
        yield f"follows a graph of {written.follow} vertices; choose 1 to {MAX_N}"
    if live is not None:
        most = kernels[written.kernel].max_n
        if not 1 <= live.n <= most:
            yield f"has n = {live.n} for the run on this machine; choose 1 to {most}"
        if (live.devices or live.kind) and not live.kernels:
            yield "has [live] devices or a kind without kernels; add `kernels`"
        try:
            for experiment in live.experiments():
                settle(experiment)
        except Refused as refusal:
            yield f"has a [live] run that is not possible: {refusal}"
    for what, text in (("title", written.title), ("text", written.text)):
        if not text.strip():
            yield f"has no {what}; write one"
    for prompt in written.prompts:
        if prompt.until not in CHECKS:
            yield f"has a prompt until {quoted(prompt.until)}, which is not a check; choose {', '.join(CHECKS)}"
        if "{" in prompt.say:
            yield "has a brace in a prompt; prompts have no placeholders, so remove it"
    prompts = (prompt.say for prompt in written.prompts)
    for text in (written.title, written.text, written.afterwards, question.ask, *prompts):
        if sanitise(text.replace("\n", " ")) != text.replace("\n", " "):
            yield "has control or invisible characters in a text; remove them"
        for unknown in (name for name in placeholders.names(text) if not placeholders.exists(name)):
            yield f"has {{{unknown}}}, which is not a placeholder; choose one of {', '.join(placeholders.FILLED)}"
        if "*" in TERM.sub("", text):
            yield "has a single star; write a term between two, such as *warp*"
        plain = _DTYPES.sub("", placeholders.NAMED.sub("", text))
        if (found := _NUMBER_OR_BRACE.search(plain)) is not None:
            near = plain[max(0, found.start() - 10) : found.end() + 10]
            yield f"has a number or a single brace near {quoted(near)}; write a placeholder, such as {{time}}"


def _against(written: StepFile, file: str, before: Sequence[CourseStep]) -> int | None:
    """Return the index of the baseline step. Raises Refused if a named one does not exist."""
    if name := written.question.against:
        names = [step.name for step in before]
        if name not in names:
            raise Refused(f"{file} compares with {quoted(name)}, which is not an earlier step; choose one of {', '.join(names)}")
        return names.index(name)
    if not before and KINDS[written.question.kind].compares:
        raise Refused(f"{file} is the first step, so it has no baseline for a speedup; choose another kind of question")
    return len(before) - 1 if before else None
