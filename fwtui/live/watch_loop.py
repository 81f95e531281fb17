"""The check of each save: compile, test and time a kernel's file, and report each result as soon as it exists.

`WatchLoop` is the loop of `fwtui watch` and of the dashboard's screen, each in one thread. Code of the user runs only in
separate processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

from fwtui.analysis.causes import hints
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.explanation import explain
from fwtui.common import units
from fwtui.common.child_process import STOP_CHECK_SECONDS, Supervised
from fwtui.common.errors import Refused
from fwtui.experiment.device import CPU, FIRST_GPU, DeviceId
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment, Settled, identity, kernel_named
from fwtui.experiment.user_kernel_registry import register_kernel
from fwtui.live.kernel_test import KernelTestProcess, run_kernel_test
from fwtui.live.protocols import finish
from fwtui.live.samplers import OFF
from fwtui.live.sanitizer import run_sanitizer
from fwtui.live.session import Live
from fwtui.live.watch_events import (
    CASE,
    COMPILED,
    HINT,
    LINE,
    NOTE,
    PLAN,
    REASON,
    TIME,
    VERDICT,
    Activity,
    CheckEnd,
    CheckStart,
    FileWatcher,
    Report,
    SaveEvent,
    Superseded,
    WatchUpdate,
    architecture,
    compile_kernel,
    compile_reports,
    compiler,
    derived_reports,
    hotspot,
)
from fwtui.machine import hardware
from fwtui.stream.kernel_tests import (
    BROKEN,
    LEFT_OUT,
    LOADING,
    PLANNING,
    PRINTED,
    RIGHT,
    TIMED_OUT,
    UNRELIABLE,
    WRONG,
    Begun,
    Compiled,
    CompileRequest,
    Finding,
    KernelTestRequest,
    verdict,
)
from fwtui.stream.run import Run
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO
from fwtui_kernels.own import begun_from, text_of

BASELINES = {"cuda": "naive", "cpu": "serial"}  # baseline of a file that does not name the rung that it was copied from
DEFAULT_N = 512  # default number of vertices of a timed run
BUDGET = 0.5  # seconds of repetitions of one timed run
TIMED_SECONDS = 60.0  # limit of a timed run, including the generation and the verification of its graph
MAX_HINTS = 3


class WatchRequest(NamedTuple):
    """The watched file, and the settings of its checks."""

    path: Path
    name: str
    device: DeviceId
    capability: tuple[int, int]  # compute capability of the GPU to compile for
    n: int = 0  # 0: DEFAULT_N on devices with a clock
    tile: int = 0

    @property
    def simulated(self) -> bool:
        return self.device.simulated


class TimedSave(NamedTuple):
    """A correct save, and the seconds of one repetition."""

    number: int
    seconds: float


class Benchmarks:
    """Times of the kernel and of its rivals, in a separate live session whose worker stays warm."""

    def __init__(
        self, request: WatchRequest, live: Callable[[], Live], busy: Callable[[], bool] = lambda: False, samples: str = OFF
    ):
        """`busy()` is True while something else is timed: both timings would be disturbed.

        `samples` is the setting of that name for the kernel's PC samples.
        """
        self._request = request
        self._make = live
        self._busy = busy
        self._samples = samples
        self._noted = ""  # the reason for missing samples, reported once
        self._live: Live | None = None
        self._rivals: dict[tuple[object, ...], Run] = {}

    def close(self) -> None:
        if self._live is not None:
            self._live.close()

    def reports(self, last: TimedSave | None, parent: str, stop: Event) -> Iterator[Report]:
        """Time the kernel at n, and compare it with its last timed save, the rung that it was copied from and the best rung."""
        kernel = kernel_named(register_kernel(self._request.path))
        device = CPU if kernel.backend == "cpu" else self._request.device
        if device.simulated:
            return
        if self._busy():
            yield Report(NOTE, "not timed: another run is in progress; save again after it has ended")
            return
        mine = Experiment(
            kernel=kernel.id,
            n=self._request.n or DEFAULT_N,
            dtype="float32" if "float32" in kernel.dtypes else kernel.dtypes[0],
            tile=self._request.tile if kernel.tiles else 0,
            budget=BUDGET,
            device=str(device) if device.backend == "cuda" else "auto",
        )
        self._source.samples = self._samples
        run = self._run(self._source.settled(mine), stop, lambda run: run.finished is not None)
        if run is None:
            return
        if run.wrong or run.seconds is None:
            how = run.verdict.how if run.verdict is not None and run.wrong else run.done.message if run.done else "it did not end"
            sentence = f"n = {mine.n}: {how}"
            yield Report(CASE, sentence, Finding(case=f"n = {mine.n}", outcome=WRONG, sentence=sentence, n=mine.n), right=False)
            return
        text = f"n = {mine.n}: {units.duration(run.seconds)}, {units.rate(run.rate)}"
        if last is not None:
            text += f"; {units.gain(last.seconds / run.seconds)} speedup over save {last.number}"
        seconds = run.seconds
        yield Report(TIME, text, seconds=seconds)
        run = self._with_samples(run, stop)
        if stop.is_set():
            return
        yield from self._lines(run)
        first = parent if parent in registry() and registry()[parent].backend == kernel.backend else BASELINES[kernel.backend]
        baseline = None
        for name, what in ((first, "the rung it was copied from" if first == parent else ""), (AUTO.id, "the fastest rung here")):
            rival = self._rival(Experiment(kernel=name, n=mine.n, dtype=mine.dtype, budget=BUDGET, device=mine.device), stop)
            if rival is None or rival.seconds is None:
                continue
            baseline = baseline or rival
            rival_name = f"{rival.experiment.kernel}{f', {what}' if what else ''}"
            gained, took = rival.seconds / seconds, f" ({units.duration(rival.seconds)})"
            factor = f"{units.gain(gained)} speedup over" if gained >= 1 else f"{units.gain(1 / gained)} slower than"
            yield Report(TIME, f"{factor} {rival_name}{took}")
        model = self._source.model
        why = explain(ComparedRun(model, run), ComparedRun(model, baseline) if baseline is not None else None).sentence()
        if why:
            yield Report(REASON, why)
        for hint in hints(model, run)[:MAX_HINTS]:
            yield Report(HINT, str(hint._replace(source="")))

    def _with_samples(self, run: Run, stop: Event) -> Run:
        """Wait for the PC samples of the run or for `stop`, and return the run. Later runs are not sampled."""
        live, end = self._source, time.monotonic() + TIMED_SECONDS
        finish(live, lambda: live.cancel() if stop.is_set() or time.monotonic() > end else None)
        live.samples = OFF
        return live.model.runs[run.id]

    def _lines(self, run: Run) -> Iterator[Report]:
        """Yield the line of the user's file with the most samples, or the reason why there is none."""
        if (line := hotspot(run, self._request.path)) is not None:
            yield Report(LINE, line)
        elif run.sampled is not None and run.sampled.note not in ("", self._noted):
            self._noted = run.sampled.note
            yield Report(NOTE, f"not sampled: {self._noted}")

    def _rival(self, experiment: Experiment, stop: Event) -> Run | None:
        """Return the run of a rung, measured at the first call; None if the rung does not support the graph."""
        with suppress(Refused):
            settled = self._source.settled(experiment)
            key = identity(settled)
            if key not in self._rivals:
                run = self._run(settled, stop)
                if run is None or run.seconds is None:
                    return None
                self._rivals[key] = run
            return self._rivals[key]
        return None

    @property
    def _source(self) -> Live:
        if self._live is None:
            self._live = self._make()
            self._live.record_source = True  # the source is shown only to its owner, and never stored
        return self._live

    def _run(self, experiment: Settled, stop: Event, enough: Callable[[Run], bool] = lambda run: False) -> Run | None:
        """Return the run at its end, or once `enough(run)`; None if it was stopped. Raises Refused."""
        live, stopped, end = self._source, False, time.monotonic() + TIMED_SECONDS
        if live.busy:  # an earlier run still samples, and its samples are no longer needed
            live.cancel()
            finish(live)

        def on_wait() -> None:
            nonlocal stopped
            if not stopped and (stop.is_set() or time.monotonic() > end):
                stopped = True
                live.cancel()

        number = live.start(experiment)
        finish(live, on_wait, lambda: number in live.model.runs and enough(live.model.runs[number]))
        return None if stopped else live.model.runs.get(number)


class CheckProcesses:
    """Compilation and tests of the file, each in a process that was started in advance and ends with its request."""

    def __init__(self, request: WatchRequest):
        self._request = request
        path, sizes = str(request.path), (request.n,) if request.n else ()
        self._test = KernelTestRequest(kernel=request.name, path=path, device=request.device, tile=request.tile, sizes=sizes)
        self._compilers = Supervised(compiler)
        self._trials = Supervised(lambda: KernelTestProcess(request.device))

    def prepare(self) -> None:
        """Start processes for the next save: they take longer to start than to work."""
        self._compilers.prepare()
        self._trials.prepare()

    def close(self) -> None:
        self._compilers.close()
        self._trials.close()

    def compiled(self, stop: Event, listing: bool = False) -> Compiled | None:
        one = self._test
        request = CompileRequest(
            kernel=one.kernel, path=one.path, capability=self._request.capability, tile=one.tile, listing=listing
        )
        return compile_kernel(request, stop, self._compilers.take)

    def findings(self, stop: Event, begun: Callable[[Begun], object]) -> Iterator[Finding]:
        return run_kernel_test(self._test, stop=stop, start=self._trials.take, begun=begun)

    def run_sanitizer(self, stop: Event) -> Iterator[Finding]:
        """Yield races and accesses out of bounds, if there is a GPU."""
        request = self._request
        if not request.simulated and kernel_named(register_kernel(request.path)).backend != "cpu":
            yield from run_sanitizer(self._test, stop)


class WatchLoop:
    """The loop over the saves of one file."""

    def __init__(
        self, request: WatchRequest, times: Benchmarks, watched: FileWatcher | None = None, checks: CheckProcesses | None = None
    ):
        self.request = request
        self.watched = watched or FileWatcher(request.path)
        self._last: TimedSave | None = None
        self._times = times
        self._checks = checks or CheckProcesses(request)

    def run(self, ended: Event, once: bool = False) -> Generator[WatchUpdate, None, None]:
        """Check the present file, then each save, until `ended` is set; with `once`, only the present file."""
        for number in count(1):
            self._checks.prepare()
            if not self.watched.wait(ended):
                return
            yield CheckStart(number)
            yield from self._check_save(number, ended, once)
            if once and not self.watched.changed:
                return

    def close(self) -> None:
        self._checks.close()
        self._times.close()

    def _check_save(self, number: int, ended: Event, once: bool) -> Iterator[WatchUpdate]:
        stop = SaveEvent(self.watched, ended)
        request, parent, last = self.request, "", self._last
        with suppress(OSError):  # the compiler reports a file that cannot be read
            parent = begun_from(text_of(request.path))
        findings: list[Finding] = []
        seconds, right, compiled = None, False, False
        for report in self._test_save(stop, ended):
            yield report
            if isinstance(report, Report):
                compiled = compiled or report.used is not None
                findings += [report.finding] if report.finding is not None else []
        if not stop.is_set():
            sentence, right = verdict(findings), _right(findings)
            yield Report(VERDICT, sentence, right=right if _has_outcome(findings) else None)
            for report in self._timed(last, parent, stop) if right else ():
                yield report
                seconds = report.seconds or seconds
                if report.finding is not None:
                    findings.append(report.finding)
        if stop.is_set():
            if not ended.is_set():
                yield Superseded()
            return
        if right and not _right(findings):
            yield Report(VERDICT, verdict(findings), right=False)
        sentence, right = verdict(findings), _right(findings)
        if right and seconds is not None:
            self._last = TimedSave(number, seconds)
        if compiled and (right or not _has_outcome(findings)):  # lines on a wrong kernel would hide its first mistake
            yield from derived_reports(self._checks.compiled(stop, listing=True), request.capability)
        yield CheckEnd(sentence, right, _has_outcome(findings), seconds if right else None)
        if not once:  # the slow start must not delay the next save
            self._checks.prepare()
        if not _launched(findings):
            return
        with suppress(Refused):  # the test run has already reported it
            for finding in self._checks.run_sanitizer(stop):
                yield Report(CASE, finding.sentence, finding, right=None if finding.outcome == UNRELIABLE else finding.fine)
                findings.append(finding)
        if right and not _right(findings):
            sentence = verdict(findings)
            self._last = last
            yield Report(VERDICT, sentence, right=False)
            yield CheckEnd(sentence, False, True)

    def _test_save(self, stop: Event, ended: Event) -> Iterator[Report | Activity]:
        """Compile and test the file at the same time, and yield each result as soon as it exists.

        Only mistakes that the test finds wait for the compiler, because its error would be their cause.
        """
        request, enough = self.request, SaveEvent(self.watched, ended)
        arch = architecture(request.capability)
        results: SimpleQueue[Finding | Begun | None] = SimpleQueue()  # None: a thread has ended
        answers, held = list[Compiled | None](), list[Finding]()

        def test() -> None:
            for finding in self._checks.findings(enough, results.put):
                results.put(finding)

        compiling = _thread("compiler", lambda: answers.append(self._checks.compiled(stop)), results)
        testing = _thread("kernel test", test, results)
        yield Activity(f"importing, and compiling for {arch}")
        compiling.join(STOP_CHECK_SECONDS)  # the lines of a fast compiler come first
        running, waiting = 2, True
        while True:
            if answers:
                waiting, compiled = False, answers.pop()
                if compiled is not None and compiled.wrong:
                    enough.set()
                    finding = Finding(case=LOADING, outcome=BROKEN, sentence=compiled.wrong)
                    yield Report(COMPILED, compiled.wrong, finding, right=False)
                    testing.join()
                    return
                if not stop.is_set():
                    yield from compile_reports(compiled, request.capability)
                    of_gpu = compiled is not None and compiled != Compiled()
                    if of_gpu and request.simulated and request.n > SIMULATOR_MAX_N:
                        limits = f"the simulator takes at most {SIMULATOR_MAX_N} vertices and has no clock"
                        yield Report(NOTE, f"n = {request.n} is skipped: {limits}")
                yield from map(_report, held)
            if not running:
                return
            match results.get():
                case None:
                    running -= 1
                    if running and waiting:
                        yield Activity(f"compiling for {arch}")
                case Begun(case=case, number=number, count=cases) if number:
                    yield Activity(f"case {number} of {cases}: {case}")
                case Finding() as finding if waiting and (held or not finding.fine):
                    held.append(finding)
                case Finding() as finding:
                    yield _report(finding)

    def _timed(self, last: TimedSave | None, parent: str, stop: Event) -> Iterator[Report]:
        try:
            yield from self._times.reports(last, parent, stop)
        except Refused as refusal:
            yield Report(NOTE, f"not timed: {refusal}")


def _right(findings: Sequence[Finding]) -> bool:
    """Return True if graphs were tested, and no problem was found."""
    return any(finding.n and finding.outcome == RIGHT for finding in findings) and all(finding.fine for finding in findings)


def _has_outcome(findings: Sequence[Finding]) -> bool:
    """Return True if the kernel is proved right or wrong."""
    return _right(findings) or any(not finding.fine for finding in findings)


def _launched(findings: Sequence[Finding]) -> bool:
    """Return True if the kernel ran on a graph without hanging."""
    ran = any(finding.case not in (LOADING, PLANNING) and finding.outcome != LEFT_OUT for finding in findings)
    return ran and all(finding.outcome != TIMED_OUT for finding in findings)


def _report(finding: Finding) -> Report:
    about = NOTE if finding.outcome == PRINTED else PLAN if finding.case in (PLANNING, LOADING) else CASE
    right = None if finding.outcome in (UNRELIABLE, PRINTED, LEFT_OUT) else finding.fine
    return Report(about, finding.sentence, finding, right=right)


def _thread(name: str, work: Callable[[], object], results: SimpleQueue[Any]) -> Thread:
    """Start a thread, whose end is a None in `results`."""

    def run() -> None:
        try:
            work()
        finally:
            results.put(None)

    thread = Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def resolve_watch_request(
    path: Path, name: str, device: str, capability: tuple[int, int] | None, n: int, tile: int
) -> WatchRequest:
    """Return the request, by default for this machine's GPU, else for the simulator and sm_90."""
    device_id = DeviceId.parse(device)
    if device_id.backend == "auto":
        device_id = FIRST_GPU if hardware.gpu_present() else DeviceId("simulator")
    if capability is None:
        gpus = hardware.gpus().gpus if device_id.backend == "cuda" else ()
        detected = gpus[device_id.index].compute_capability if device_id.index < len(gpus) else None
        capability = detected or (9, 0)
    return WatchRequest(path, name, device_id, capability, n, tile)
