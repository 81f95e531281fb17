"""Judges at work: a process for each submission, several at once for correctness, one at a time with a clock."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Event

import msgspec

from fwtui.campaigns.grading.points import Grade, grade, timeable
from fwtui.campaigns.grading.rubric import Rubric
from fwtui.common.child_process import ModuleProcess
from fwtui.common.text import clean
from fwtui.experiment.device import DeviceId
from fwtui.stream.grades import Judgement, JudgeRequest

GRACE = 5.0  # seconds that a judge has to end what it started
DIED = "the process that judges it died"


class Submission:
    """A file, and what is known of it so far."""

    def __init__(self, shown: str, path: Path, unfit: str = ""):
        self.shown, self.path = shown, path
        self.judgement = Judgement(foul=unfit) if unfit else None
        self.timed: Judgement | None = None


class Grading:
    """Grades submissions on one device. Where another thread, or a signal, sets `stop`, what goes on is ended."""

    def __init__(self, rubric: Rubric, device: DeviceId, clock: bool, say: Callable[[str], None]):
        self._rubric, self._device, self._clock, self._say = rubric, device, clock, say
        self.stop = Event()

    def correctness(self, submissions: Sequence[Submission], jobs: int) -> None:
        """Try all of them, that many at once."""
        kinds = tuple(kind.graphs() for kind in self._rubric.kinds)

        def one(submission: Submission) -> None:
            if submission.judgement is None and not self.stop.is_set():
                judgement = self._judgement(submission, kinds=kinds)
                if not self.stop.is_set():
                    submission.judgement = judgement
                    self._say(f"{submission.shown}: {self.grade(submission).verdict}")

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
                self._say(f"{submission.shown}: timing it against {timing.against}")
                submission.timed = self._judgement(submission, timed=timing.graph())

    def grade(self, submission: Submission) -> Grade:
        """Its points as far as they are known."""
        judgement = submission.judgement or Judgement(foul="not tried")
        return grade(self._rubric, submission.shown, judgement, submission.timed, self._clock)

    def _judgement(self, submission: Submission, **asked: object) -> Judgement:
        request = JudgeRequest(path=str(submission.path), device=self._device, limits=self._rubric.limits, **asked)  # type: ignore[arg-type]
        answer = _Judge().finish(inf, request, self.stop)
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(answer.stdout, type=Judgement)
        return Judgement(foul=f"{DIED} ({clean(answer.last_words)})")


class _Judge(ModuleProcess):
    """The process that judges a submission."""

    def __init__(self) -> None:
        super().__init__("fwtui.measure.judge")

    def kill(self) -> None:
        """End it; it ends the submission's processes before."""
        if self.exit_code is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
            super().kill()
