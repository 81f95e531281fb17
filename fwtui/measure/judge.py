"""`python -P -m fwtui.measure.judge`: grade one submission, which runs in a process of its own within limits.

On stdin a JudgeRequest, on stdout a Judgement (fwtui.stream.grades). The submission gives distances and nothing else: the graphs,
and SciPy's distances, are made here, where its code never runs.

A pass is timed by two clocks: that of the submission's process, around its steps, and the one here, from before the graph is
copied in until the distances are out. What the second one shows more than it does of the rung was work, too, and counts.

Its memory is looked at and not limited by the system: CUDA reserves address space by the terabyte, so that RLIMIT_AS would stop
every kernel, and RLIMIT_DATA does not see what is shared or mapped.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from operator import itemgetter
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec
import numpy as np
import psutil
from msgspec.structs import replace

from fwtui.common.child_process import ChildProcess, ModuleProcess
from fwtui.common.container import Container
from fwtui.common.process_limits import ProcessLimits
from fwtui.common.serve import serve
from fwtui.common.signals import on_signals, stop
from fwtui.common.text import clean
from fwtui.engine.verify import Verifier, VerifierFinding
from fwtui.experiment.experiment import MAX_SEED, SIMULATOR_MAX_N, Experiment, changed
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import canonical, fletcher64
from fwtui.graphs.graph import GraphInput
from fwtui.measure.trial_cases import Case, affordable, ladder, runs_once, takes_time
from fwtui.stream.grades import Ask, GradedGraph, Judgement, JudgeRequest, SubmissionLimits, SubmissionReply, SubmissionRequest
from fwtui.stream.trials import RACY
from fwtui_kernels.own import files_of
from fwtui_kernels.plan import ITEMSIZE

RUNS, SIMULATED_RUNS = 3, 2  # of each graph: what races may be right once
SMALL_RUNS = 5  # of those of `fwtui watch`, where no GPU is simulated
LOADING_SECONDS = 30.0  # that loading may take at least: numba may have to be read from a cold disk
RUNG_LIMITS = SubmissionLimits(seconds=600, memory=1024, output=65536)
PASSES, WARM = 4, 2  # of a turn, each with another graph; before the first turn
NOISE, NOISE_SECONDS = 1.25, 0.002  # what copying in and out may take more than the rung's: a factor, and besides
NO_RESULT = "its process told what is no result"
LONGEST_HEAD = 64 * 1024  # bytes of an answer before its distances
LOOKS_EVERY = 0.1  # seconds between two looks at the memory
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Foul(Exception):
    """Why a submission's process was ended, or how it ended, in words."""


class SubmissionProcess(ModuleProcess):
    """The process that runs one kernel, and what it may take."""

    def __init__(
        self,
        submitted: SubmissionRequest,
        limits: SubmissionLimits,
        folder: Path,
        others: Sequence[ChildProcess] = (),
        within: Container | None = None,
    ):
        """Its graphs are in the folder."""
        self._seconds, self._limits = limits.seconds, ProcessLimits(memory=limits.memory, output=limits.output)
        self.graph = folder / "graph"
        self._spared = {other.pid for other in others}
        self._printed, self._looked, self._output = 0, 0.0, bytearray()
        super().__init__("fwtui.measure.submission", simulated=submitted.device.simulated, within=within)
        self.send(submitted)

    def answer(self, cell: int, cells: int, least_seconds: float = 0.0) -> tuple[SubmissionReply, bytearray]:
        """What it says, and its distances, that many cells of `cell` bytes, if it has them. Raises Foul."""
        seconds = max(self._seconds, least_seconds)
        end = time.monotonic() + seconds
        self._listen(lambda: b"\n" in self._output or len(self._output) > LONGEST_HEAD, end, seconds)
        head, _, rest = self._output.partition(b"\n")
        try:
            reply = msgspec.json.decode(head, type=SubmissionReply)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise Foul(NO_RESULT) from None
        self._output = bytearray(rest)
        size = cells * cell if reply.computed else 0
        self._listen(lambda: len(self._output) >= size, end, seconds)
        distances, self._output = self._output[:size], self._output[size:]
        return reply, distances

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """It and all that it started are paused meanwhile."""
        if self._within is not None:
            self._within.tell("pause", self._name)
            yield
            self._within.tell("unpause", self._name)
            return
        self._each(psutil.Process.suspend)
        yield
        self._each(psutil.Process.resume)

    def end(self) -> None:
        """Kill it and all that it started."""
        for _ in range(100):
            self.kill()
            if not any(map(_alive, self._family())):
                break
            self._each(psutil.Process.kill)
            for process in self._family():
                if process.pid != self.pid:  # it was handed to this process when its parent died
                    with suppress(ChildProcessError):
                        os.waitpid(process.pid, os.WNOHANG)
            time.sleep(0.01)
        self.reap()

    def _listen(self, enough: Callable[[], bool], end: float, seconds: float) -> None:
        while not enough():
            if time.monotonic() >= self._looked + LOOKS_EVERY:
                self._looked = time.monotonic()
                if excess := self._limits.excess(self._family(), self._printed):
                    raise Foul(f"it {excess}")
            left = end - time.monotonic()
            if left <= 0:
                raise Foul(f"no end within {seconds:g} s: a loop that never ends, or threads that wait for others")
            dead = self.exit_code is not None  # before the last that it said is read
            output = self.read(min(LOOKS_EVERY, left))
            if output is None or (dead and not any(output)):
                raise Foul(self._death())
            self._output += output.stdout
            self._printed += len(output.stderr)

    def _family(self) -> list[psutil.Process]:
        """Its process and all that come from it, those whose parent has died among them."""
        return [process for process in psutil.Process().children(recursive=True) if process.pid not in self._spared]

    def _each(self, act: Callable[[psutil.Process], object]) -> None:
        for process in self._family():
            with suppress(psutil.Error):
                act(process)

    def _death(self) -> str:
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return "it closes the pipe on which it must answer"
        if code > 128 and self._within is not None:  # as a shell says it
            code = 128 - code
        if code < 0:
            return f"its process died of {signal.Signals(-code).name}"
        return f"it ends its own process, with exit code {code}"


class Judge:
    """Tries one file. Its processes are ended by `close()`."""

    def __init__(self, request: JudgeRequest, folder: str):
        self._request, self._folder, self._folders = request, Path(folder), count()
        self._contestants: list[SubmissionProcess] = []
        self._verifier = Verifier()
        self._loaded = SubmissionReply()  # what the submission's process says of it
        self._simulated, self._simulates, self._ran = False, True, False
        self._rungs = set[str]()

    def close(self) -> None:
        for contestant in self._contestants:
            contestant.end()
        self._contestants.clear()

    def tried(self) -> Judgement:
        """What comes of each graph. What ends the process costs the rest of that kind; the next begins in a new one."""
        kinds: list[tuple[GradedGraph, ...]] = []
        contestant: SubmissionProcess | None = None
        for graphs in self._request.kinds:
            results: list[GradedGraph] = []
            try:
                contestant = contestant or self._begun(self._request.path, "", self._request.limits)
            except Foul as foul:
                return self._judgement(foul=clean(str(foul)))
            for experiment in graphs:
                if why := self._why_left_out(experiment.n):
                    results.append(GradedGraph(None, f"{words(experiment)}: left out: {why}"))
                    continue
                try:
                    runs = SIMULATED_RUNS if self._simulated else RUNS
                    results.append(self._result(contestant, Case(words(experiment), experiment), runs))
                except Foul as foul:
                    self.close()
                    contestant = None
                    results.append(GradedGraph(False, f"{words(experiment)}: {clean(str(foul))}"))
                    results += [GradedGraph(False, "not tried after that")] * (len(graphs) - len(results))
                    break
            kinds.append(tuple(results))
        if self._loaded.plan:
            return self._judgement(kinds=tuple(kinds), foul=clean(f"the plan is wrong: {self._loaded.plan}"))
        worst = self._worst_of_watch(contestant)
        right = contestant is not None and not worst.sentence and all(one.right is not False for kind in kinds for one in kind)
        foul = worst.sentence if worst.races else self._elsewhere(contestant) if contestant and right else ""
        return self._judgement(kinds=tuple(kinds), foul=foul, unlike_watch=worst.sentence)

    def timed(self, experiment: Experiment) -> Judgement:
        """How long a pass takes, and how long one of the rung: each pass has another graph, and the same ones for both.

        A turn of the rung is over before anything of the submission runs, which could hold it up; the better turn of each counts.
        """
        draw = Random(experiment.seed)
        warm, first, second = (
            [changed(experiment, seed=draw.randrange(MAX_SEED)) for _ in range(m)] for m in (WARM, PASSES, PASSES)
        )
        right: dict[int, str] = {}  # checksums by seed

        def turn(process: SubmissionProcess, whose: str, graphs: Sequence[Experiment]) -> tuple[float, float]:
            by_own_clock, whole = zip(*(self._pass(process, whose, graph, right) for graph in graphs), strict=True)
            return median(by_own_clock), median(whole)

        try:
            rung = self._begun("", experiment.kernel, RUNG_LIMITS)
            turn(rung, experiment.kernel, warm)
            alone = turn(rung, experiment.kernel, first)
        except Foul as foul:
            return Judgement(untimed=f"{experiment.kernel} could not be timed: {clean(str(foul))}")
        try:
            contestant = self._begun(self._request.path, "", self._request.limits, [rung])
            turn(contestant, "submission", warm)
            first_seconds = turn(contestant, "submission", first)
            with contestant.stopped():
                between = turn(rung, experiment.kernel, second)
            by_own_clock, whole = min(first_seconds, turn(contestant, "submission", second), key=itemgetter(1))
        except Foul as foul:
            return self._judgement(untimed=f"n = {experiment.n}: {clean(str(foul))}")
        rung_seconds, rung_whole = min(alone, between)
        seconds = max(by_own_clock, whole - NOISE * (rung_whole - rung_seconds) - NOISE_SECONDS)
        return self._judgement(seconds=seconds, own_seconds=by_own_clock, rung_seconds=rung_seconds)

    def _judgement(self, **fields: Any) -> Judgement:
        return Judgement(simulated=self._simulated, backend=self._loaded.backend, rungs=tuple(sorted(self._rungs)), **fields)

    def _begun(self, path: str, rung: str, limits: SubmissionLimits, others: Sequence[ChildProcess] = ()) -> SubmissionProcess:
        """Its process, in a folder of its own, once the kernel is loaded there. Raises Foul."""
        folder = self._folder / str(next(self._folders))
        folder.mkdir()
        within = self._request.container
        if within is not None:
            within = replace(within.with_files([*(files_of(Path(path)) if path else ()), folder]), memory=limits.memory)
        place = "" if within is not None else str(folder)
        submitted = SubmissionRequest(
            path=path, rung=rung, device=self._request.device, folder=place, others=self._request.others if path else ()
        )
        contestant = SubmissionProcess(submitted, limits, folder, others, within)
        self._contestants.append(contestant)
        reply, _ = contestant.answer(0, 0, LOADING_SECONDS)
        if reply.wrong or not reply.backend or not reply.dtypes:
            raise Foul(reply.wrong or NO_RESULT)
        if path:
            self._simulated = reply.backend == "cuda" and submitted.device.simulated
            self._simulates, self._loaded = reply.simulates or not self._simulated, reply
        return contestant

    def _why_left_out(self, n: int) -> str:
        """Why a graph cannot be tried here; empty if it can be."""
        if self._simulated and n > SIMULATOR_MAX_N:
            return f"the simulator takes at most {SIMULATOR_MAX_N} vertices"
        return "the simulator does not run this kernel; it takes a GPU" if self._simulated and not self._simulates else ""

    def _worst_of_watch(self, contestant: SubmissionProcess | None) -> GradedGraph:
        """The first of the small graphs of `fwtui watch` that is not right; without a sentence if there is none.

        Which they are follows from what the kernel says that it takes.
        """
        kernel, tile = self._loaded, self._loaded.tile
        dtypes = tuple(
            dtype for dtype in kernel.dtypes if any(one.dtype == dtype for kind in self._request.kinds for one in kind)
        )
        if not dtypes or not self._simulates:
            return GradedGraph(None)
        cases = list(ladder(msgspec.structs.replace(kernel, dtypes=dtypes), tile, self._simulated))
        slow = self._simulated and takes_time(self._request.path)
        for case in affordable(cases, tile) if slow else cases:
            once = slow and runs_once(case.graph.n, tile)
            runs = 1 if once else SIMULATED_RUNS if self._simulated else SMALL_RUNS
            try:
                contestant = contestant or self._begun(self._request.path, "", self._request.limits)
                result = self._result(contestant, case, runs, watched=True)
            except Foul as foul:
                self.close()
                return GradedGraph(False, clean(f"{case.name}: {foul}"))
            if result.right is False:
                return result
        return GradedGraph(None)

    def _result(self, contestant: SubmissionProcess, case: Case, runs: int, watched: bool = False) -> GradedGraph:
        name, experiment = case
        graph, order = generate(experiment), np.arange(experiment.n)
        cyclic, checksums = graph.may_have_negative_cycles, set[str]()
        for run in range(runs):
            reply, raw = self._distances(contestant, graph, order, watched=watched and not run and not cyclic)
            if raw is None:
                if watched:  # it may take what the rubric asks for and no more
                    return GradedGraph(None)
                # that this machine cannot run it holds for all graphs, and is known with the first one
                self._simulates &= reply.simulates or not self._simulated or self._ran
                return GradedGraph(False if self._simulates else None, f"{name}: {clean(reply.refused)}")
            self._ran = True
            outcome, misuse = reply.misuse
            if misuse:
                return GradedGraph(False, clean(f"{name}: {misuse}"), races=outcome == RACY)
            finding = self._verified(graph, experiment, raw)
            if finding.verdict not in ("verified", "negative cycle"):
                return GradedGraph(False, clean(f"{name}: {finding.how}"))
            checksums.add(finding.checksum)
            # the same graph with other numbers for its vertices, which no answer to it that is kept fits
            order = np.random.default_rng((experiment.seed, run)).permutation(experiment.n)
        # around a negative cycle any numbers will do that say so
        if len(checksums) > 1 and graph.exact_sums and not cyclic:
            return GradedGraph(False, f"{name}: ran {runs} times, {len(checksums)} different answers: it races", races=True)
        return GradedGraph(True, f"{name}: right")

    def _elsewhere(self, contestant: SubmissionProcess) -> str:
        """Why its distances do not come from its steps: on one cycle through all vertices they need every one of them."""
        graphs = [one for kind in self._request.kinds for one in kind if not self._why_left_out(one.n)]
        largest = max(graphs, key=lambda one: one.n, default=None)
        if largest is None or largest.n < 3:
            return ""
        experiment = Experiment(n=largest.n, dtype=largest.dtype, density=0.0, connected=True, seed=largest.seed)
        graph = generate(experiment)
        for half in ("first", "last"):
            try:
                _, raw = self._distances(contestant, graph, half=half)
            except Foul:  # of a plan that is not carried out to its end nothing can be said
                return ""
            if raw is not None and self._verified(graph, experiment, raw).verdict == "verified":
                return "its distances are right although half of its steps were not launched: they are not computed by them"
        return ""

    def _pass(self, process: SubmissionProcess, whose: str, experiment: Experiment, right: dict[int, str]) -> tuple[float, float]:
        """The seconds of one pass by both clocks, its own first, if its distances are right. Raises Foul.

        What is not already known to be right, by its checksum, is compared with SciPy's in part.
        """
        graph = generate(experiment)
        begun = time.monotonic()
        reply, raw = self._distances(process, graph)
        whole = time.monotonic() - begun
        if raw is None:
            raise Foul(reply.refused)
        if not reply.seconds > 0:
            raise Foul("its process told no time")
        distances = canonical(raw, graph, experiment.dtype)
        if fletcher64(distances) != right.get(experiment.seed):
            finding = self._verifier.check(graph, experiment.graph, distances, "sample", experiment.n, whose)
            if finding.verdict != "verified":
                raise Foul(finding.how)
            right[experiment.seed] = finding.checksum
        return reply.seconds, whole

    def _verified(self, graph: GraphInput, experiment: Experiment, raw: np.ndarray) -> VerifierFinding:
        return self._verifier.check(
            graph, experiment.graph, canonical(raw, graph, experiment.dtype), "full", experiment.n, "submission"
        )

    def _distances(
        self,
        contestant: SubmissionProcess,
        graph: GraphInput,
        order: np.ndarray | None = None,
        half: Literal["", "first", "last"] = "",
        watched: bool = False,
    ) -> tuple[SubmissionReply, np.ndarray | None]:
        """What comes of the graph, whose vertices are given in that order; None if it is refused. Raises Foul."""
        matrix = graph.matrix if order is None else graph.matrix[np.ix_(order, order)]
        matrix.tofile(contestant.graph)
        contestant.send(Ask(graph.n, graph.dtype, graph.nonnegative, str(contestant.graph), half, watched))
        reply, answer = contestant.answer(ITEMSIZE[graph.dtype], graph.n**2)
        self._rungs.update(map(clean, reply.rungs))
        contestant.graph.unlink(missing_ok=True)  # a rung's graphs come to the submission later
        if reply.wrong:
            raise Foul(reply.wrong)
        if reply.refused:
            return reply, None
        if not answer:
            raise Foul(NO_RESULT)
        raw = np.frombuffer(answer, graph.dtype).reshape(graph.n, graph.n)
        if order is not None:
            back = np.argsort(order)
            raw = raw[np.ix_(back, back)]
        return reply, raw


def words(experiment: Experiment) -> str:
    """The graph, as far as it tells one of a kind from the others."""
    return f"n = {experiment.n}, seed {experiment.seed}"


def judged(request: JudgeRequest) -> Judgement:
    # what it leaves there may be anything
    with TemporaryDirectory(prefix="fwtui-", ignore_cleanup_errors=True) as folder, closing(Judge(request, folder)) as judge:
        return judge.timed(request.timed) if request.timed is not None else judge.tried()


def _alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _ready() -> None:
    on_signals(stop)
    if sys.platform == "linux":  # what outlives its parent is handed to this process, and found
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


if __name__ == "__main__":
    serve(JudgeRequest, lambda request, parent: parent.send(judged(request)), ready=_ready)
