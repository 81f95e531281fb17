"""Judges at work: a process for each submission, several at once for correctness, one at a time with a clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path
from random import Random
from threading import Event, Thread

import msgspec
import psutil

import fwtui
import fwtui_kernels
from fwtui.analysis import limits
from fwtui.campaigns.grading.points import Grade, grade, timeable
from fwtui.campaigns.grading.rubric import Rubric, Timing
from fwtui.common.child_process import ChildProcess, ModuleProcess
from fwtui.common.container import Container
from fwtui.common.text import clean
from fwtui.common.units import duration
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import MAX_SEED
from fwtui.experiment.own_kernels import name_for
from fwtui.live.judging import asked_for
from fwtui.live.watching import compile_kernel, compiler
from fwtui.stream import events
from fwtui.stream.grades import Judgement, JudgeRequest
from fwtui.stream.trials import NO_COMPILER, CompileRequest
from fwtui_kernels.own import files_of, is_still

SUSPENDED = 3  # looks at a judge, a second apart, that find it suspended before it is killed
GRACE = 5.0  # seconds that a judge has to end what it started
CLOCK_ROOM = 1.1  # times the measured limit: the clock of a device rises a little while it is cool
SET_ASIDE = ".set-aside"  # ends the name of what a submission put beside the code that judges
OWN_FOLDERS = (Path(fwtui.__file__).parent, Path(fwtui_kernels.__file__).parent)  # the code that judges
CODE = (".py", ".pyc", ".so", ".cu", ".cuh", ".cpp", ".hpp")
DIED = "the process that judges it died"


class Submission:
    """A file, and what is known of it so far."""

    def __init__(self, name: str, path: Path, unfit: str = ""):
        self.name, self.path = name, path
        self.judgement = Judgement(foul=unfit) if unfit else None
        self.timed: Judgement | None = None


class Grading:
    """Grades submissions on one device. Where another thread, or a signal, sets `stop`, what goes on is ended.

    `judge` are folders with code that no submission may change, besides the files of others.
    """

    def __init__(
        self,
        rubric: Rubric,
        device: DeviceId,
        clock: bool,
        say: Callable[[str], None],
        judge: Sequence[Path] = OWN_FOLDERS,
        container: Container | None = None,
    ):
        self._rubric, self._device, self._clock, self._say = rubric, device, clock, say
        self._container = container
        self._judge = judge
        for folder in judge:  # what Python compiles later would look like a change
            compile_dir(folder, quiet=2)
        self._files = {file: file.read_bytes() for file in code_in(judge)}  # and of all submissions, as they were handed in
        self._handed_in: list[Path] = []
        self._at_work: list[Submission] = []
        self.stop = Event()

    def correctness(self, submissions: Sequence[Submission], jobs: int) -> None:
        """Try all of them, that many at once."""
        kinds = tuple(kind.graphs() for kind in self._rubric.kinds)

        self._handed_in = [file for one in submissions if one.judgement is None for file in files_of(one.path)]
        self._files |= {file: file.read_bytes() for file in self._handed_in}

        def one(submission: Submission) -> None:
            if submission.judgement is None and not self.stop.is_set():
                self._at_work.append(submission)
                judgement = self._put_back(submission, self._judgement(submission, kinds=kinds), jobs)
                judgement = self._put_back(submission, self._compiled(submission, judgement), jobs)
                self._at_work.remove(submission)
                if not self.stop.is_set():
                    submission.judgement = judgement
                    self._say(f"{submission.name}: {self.grade(submission).verdict}")

        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(one, submissions))
            except BaseException:
                self.stop.set()
                raise

    def times(self, submissions: Sequence[Submission]) -> None:
        """Put the clock on those that are right, one after another."""
        timing = self._rubric.timing
        if timing is None or not self._clock:
            return
        for submission in submissions:
            if submission.judgement is not None and timeable(submission.judgement):
                self._say(f"{submission.name}: timing it against {timing.against}")
                seed = Random(self._rubric.seed).randrange(MAX_SEED)
                timed = self._judgement(submission, timed=timing.graph(seed))
                timed = floored(timed, timing, limits.load(CPU if timed.backend == "cpu" else self._device))
                submission.timed = self._put_back(submission, timed, 1)

    def grade(self, submission: Submission) -> Grade:
        """Its points as far as they are known."""
        judgement = submission.judgement or Judgement(foul="not tried")
        return grade(self._rubric, submission.name, judgement, submission.timed, self._clock)

    def _put_back(self, submission: Submission, judgement: Judgement, jobs: int) -> Judgement:
        """With what it did to its own files, to the judge's and to others', all of which are put back."""
        # who is at work answers for his own files at his end
        others = {one.path.with_suffix("") for one in self._at_work if one is not submission}
        files = ((path, text) for path, text in self._files.items() if path.with_suffix("") not in others)
        changed = [path for path, text in files if not is_still(path, text)]
        for path in changed:
            with suppress(OSError):
                path.write_bytes(self._files[path])
        # moved, never deleted: it may be work of a user, and no import finds the new name
        for path in [path for path in code_in(self._judge) if path not in self._files]:
            changed.append(path)
            with suppress(OSError):
                path.rename(path.with_name(f"{path.name}{SET_ASIDE}"))
        if not changed:
            return judgement
        what = " and ".join(clean(path.name) for path in changed)
        if jobs == 1 or all(path.with_suffix("") == submission.path.with_suffix("") for path in changed):
            return msgspec.structs.replace(judgement, foul=f"it deletes or changes {what}, which is put back")
        self._say(f"{what} was changed while {submission.name} and others ran, and is put back; grade again with --jobs 1")
        return judgement

    def _compiled(self, submission: Submission, judgement: Judgement) -> Judgement:
        """With what the compiler says of it: what cannot be compiled for a GPU gets nothing."""
        if judgement.foul or judgement.backend != "cuda":
            return judgement
        name, path = name_for(submission.path), submission.path
        within = self._container and self._container.with_files(files_of(path))
        capability = asked_for(path, name, str(self._device), None, 0, 0).capability
        request = CompileRequest(kernel=name, path=str(path), capability=capability)
        compiled = compile_kernel(request, self.stop, lambda: compiler(within))
        if compiled is not None and compiled.wrong:
            return msgspec.structs.replace(judgement, foul=clean(compiled.wrong))
        nothing = compiled is not None and not compiled.used and not compiled.lacking.startswith(NO_COMPILER)
        if nothing and self._rubric.require == "cuda":
            foul = "no function of it can be compiled for a GPU, which the rubric requires"
            return msgspec.structs.replace(judgement, foul=foul)
        return judgement

    def _judgement(self, submission: Submission, **fields: object) -> Judgement:
        own_files = files_of(submission.path)
        fields |= {"path": str(submission.path), "device": self._device, "container": self._container}
        fields["others"] = tuple(str(file) for file in self._handed_in if file not in own_files)
        request = JudgeRequest(limits=self._rubric.limits, **fields)  # type: ignore[arg-type]
        judge = _Judge()
        judge.watch()
        answer = judge.finish(inf, request, self.stop)
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(answer.stdout, type=Judgement)
        return Judgement(foul=f"{DIED} ({clean(answer.last_words)})")


def code_in(folders: Sequence[Path]) -> list[Path]:
    """All that this Python may run of what is in these folders, bytecode too; that of other versions may lie beside it."""
    files = [file for folder in folders for file in folder.rglob("*") if file.suffix in CODE and file.is_file()]
    return [file for file in files if file.parent.name != "__pycache__" or f".{sys.implementation.cache_tag}." in file.name]


def floored(timed: Judgement, timing: Timing, limit: events.Limits | None) -> Judgement:
    """Without a time in which the device cannot do that many relaxations; `limit` are its limits."""
    most = limits.most_relaxations(limit, timing.dtype, True) if limit is not None else None
    if timed.seconds is None or most is None:
        return timed
    least = timing.n**3 / most / CLOCK_ROOM
    if timed.seconds >= least:
        return timed
    words = f"{duration(timed.seconds)} is less than n = {timing.n} takes at the limit of this device, {duration(least)}"
    return Judgement(untimed=f"{words}: it does other work, or its clock is wrong", backend=timed.backend)


class _Judge(ModuleProcess):
    """The process that judges a submission."""

    def __init__(self) -> None:
        super().__init__("fwtui.measure.judge")

    def watch(self) -> None:
        """Kill it where a submission suspends it: nobody else would end that."""

        def look() -> None:
            stops = 0
            while self.exit_code is None and stops < SUSPENDED:
                with suppress(psutil.Error):
                    stops = stops + 1 if psutil.Process(self.pid).status() == psutil.STATUS_STOPPED else 0
                time.sleep(1.0)
            if stops >= SUSPENDED:
                ChildProcess.kill(self)

        Thread(target=look, daemon=True).start()

    def kill(self) -> None:
        """End it; it ends the submission's processes before."""
        if self.exit_code is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
            super().kill()
