"""The process that tests a kernel: it loads the kernel, checks its plan, and runs it on small graphs.

`python -P -m fwtui.measure.kernel_test_process [DEVICE]` prepares the device and waits for a KernelTestRequest on stdin. It
writes a JSON line to stdout for each case that begins and for each finding; the kernel file prints to stderr. Its parent reports
a crash or a hang (fwtui.live.kernel_test).
"""

from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fwtui.analysis.plan_checks import check_plan, describe_rect, step_names
from fwtui.common.child_protocol import Parent, serve
from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.common.units import counted
from fwtui.engine.engine import Engine
from fwtui.engine.engine_for import engine_for
from fwtui.engine.kernel_instance import DeviceUnavailable, LoadedKernel, UnsupportedShape, load_kernel
from fwtui.engine.verify import Verifier, number_text, scipy_distances
from fwtui.experiment.device import CPU, DeviceId
from fwtui.experiment.experiment import FULL_CHECK, kernel_named
from fwtui.graphs.canonical import NO_DISTANCE, canonical, fletcher64
from fwtui.graphs.graph import GraphInput
from fwtui.measure.first_difference import first_difference
from fwtui.measure.kernel_test_cases import (
    Case,
    describe_failure,
    find_misuse,
    graph_and_shape,
    kernel_test_ladder,
    runs_once,
    select_affordable,
    tile_of,
    watch_accesses,
)
from fwtui.stream.kernel_tests import (
    BROKEN,
    LEFT_OUT,
    LOADING,
    OVER,
    PLANNING,
    RACY,
    RIGHT,
    UNRELIABLE,
    WRONG,
    Begun,
    Finding,
    KernelTestRequest,
    Where,
)
from fwtui_kernels.own import LOOKED_AT, NoTrial, load
from fwtui_kernels.plan import Kernel, Rect, Shape

REHEARSED = "naive"  # the kernel that warms up a device
BRIEF = 5  # graphs of a brief test
REPEATS, SIMULATED_REPEATS = 5, 3  # runs of a case; a case that is correct in the simulator runs twice
NAN = "some distances are NaN, the result of infinity minus infinity"
WRAPPED = "some distances are negative and no weight is: a sum wrapped around; is the sentinel too large to be added?"
Emit = Callable[[Finding | Begun], None]


class Failure(NamedTuple):
    """The first wrong result of a case."""

    how: str
    distances: np.ndarray
    raw: np.ndarray  # the distances as the kernel wrote them
    odd: str  # a value that no relaxation gives


class CaseResult(NamedTuple):
    """The results of several repetitions on one graph."""

    checksums: list[str]
    seconds: float | None  # the fastest repetition, without the first one
    failed: Failure | None
    log: Any = None  # log of the first repetition, in the simulator (fwtui_kernels.compiled.simulator_races)

    @property
    def harmful_races(self) -> list[str]:
        """The race that may explain different distances, if one was detected."""
        return [str(race) for race in self.log.races if race.harms][:1] if self.log is not None else []

    @property
    def warning(self) -> str:
        """A description of a harmless race; empty if there is none."""
        races = self.log.races if self.log is not None else ()
        what = "harmless only if the write repeats the stored value"
        return next((f"{race}: {'the distances are correct nevertheless' if race.harms else what}" for race in races), "")


class KernelTest:
    """A test of one kernel on one device."""

    def __init__(self, request: KernelTestRequest, emit: Emit):
        self._request = request
        self._emit = emit
        self._verifier = Verifier()
        self._explained = request.brief  # only the first wrong case is analysed
        self._warning = ""
        self._accesses: Counter[Any] = Counter()  # memory accesses by function, in the simulator

    def run(self, most: int | None = None) -> None:
        """Report every finding, or those of the first `most` graphs.

        Ends early if a case breaks the kernel: the GPU's context is lost, or the next case would fail too.
        """
        kernel = self._guarded(Begun(LOADING), self._load)
        if kernel is None:
            return
        if self._guarded(Begun(PLANNING), lambda: self._plan(kernel)) is None:
            return
        engine = self._guarded(Begun(LOADING), lambda: self._engine(kernel))
        if engine is None:
            return
        simulated = engine.target.backend == "simulator"
        tile, fine = self._request.tile or tile_of(kernel, simulated), True
        cases = list(
            islice(kernel_test_ladder(kernel, tile, simulated, self._request.sizes), BRIEF if self._request.brief else most)
        )
        graphs = select_affordable(cases, tile) if simulated else cases
        for number, case in enumerate(graphs, 1):
            begun = Begun(case.name, number, len(graphs))
            finding = self._guarded(begun, lambda case=case: self._run_case(kernel, engine, case, tile))
            if finding is None:
                return
            self._emit(finding)
            fine = fine and finding.fine
        if len(graphs) < len(cases):
            names = "; ".join(case.name for case in cases if case not in graphs)
            sentence = (
                f"skipped: tiles of {tile} take the simulator too long for {names}; add a smaller simulator_tiles to KERNEL"
            )
            self._emit(Finding(case="others", outcome=LEFT_OUT, sentence=sentence))
        if fine and self._warning:
            self._emit(Finding(case="races", outcome=UNRELIABLE, sentence=self._warning))

    def _guarded(self, begun: Begun, work: Callable[[], Any]) -> Any:
        """Return the result of `work`; None if it raised, which is reported as a finding."""
        case = begun.case
        self._emit(begun)
        try:
            return work()
        except (DeviceUnavailable, NoTrial) as lacking:
            self._emit(Finding(case="all graphs", outcome=LEFT_OUT, sentence=f"all graphs: skipped: {lacking}"))
        except (Exception, SystemExit) as error:
            sentence = describe_failure(error, Path(self._request.path) if self._request.path else None)
            where = "" if case in (LOADING, PLANNING) or isinstance(error, Refused) else f"{case}: "
            self._emit(Finding(case=case, outcome=BROKEN, sentence=f"{where}{sentence}"))
        return None

    def _load(self) -> Kernel:
        if self._request.path:
            return load(Path(self._request.path), self._request.kernel)
        return kernel_named(self._request.kernel)

    def _engine(self, kernel: Kernel) -> Engine:
        """Return the engine that runs the kernel. Raises NoTrial if that is the simulator and the kernel needs a GPU."""
        device = CPU if kernel.backend == "cpu" else self._request.device
        if device.simulated and not kernel.simulates:
            raise NoTrial("the simulator does not support this kernel; it needs a GPU")
        return engine_for(device)

    def _plan(self, kernel: Kernel) -> bool:
        """Report mistakes of the plan. A wrong plan may still run, and the outcome of a run is more specific."""
        complaints = check_plan(kernel)
        if not complaints:
            sentence = "the plan does every relaxation once, and its launches do not race (threads within one: not checked here)"
            self._emit(Finding(case=PLANNING, outcome=RIGHT, sentence=sentence, phases=self._phases(kernel)))
        for sentence in complaints:
            self._emit(Finding(case=PLANNING, outcome=WRONG, sentence=f"the plan is wrong: {sentence}"))
        return True

    def _phases(self, kernel: Kernel) -> tuple[str, ...]:
        """Return the phases of the plan's steps; KERNEL may list more."""
        tile = kernel.tile_for(0) or 1
        shape = Shape(3 * tile, tile, kernel.dtypes[0], options=kernel.defaults)
        if kernel.refuses(shape):
            return ()
        return tuple(dict.fromkeys(sanitise(step.phase) for step in islice(kernel.plan(shape, False), LOOKED_AT)))

    def _run_case(self, kernel: Kernel, engine: Engine, case: Case, tile: int) -> Finding:
        random.seed(1)  # the simulator's order of threads must not depend on earlier cases
        graph, shape = graph_and_shape(kernel, case.graph, tile, engine)
        about = {"case": case.name, "n": graph.n, "tile": tile if tile > 1 else 0, "dtype": case.graph.dtype}
        try:
            with load_kernel(kernel, shape, engine, graph.matrix) as it:
                result = self._repeat(it, graph, case)
        except DeviceUnavailable:
            raise
        except UnsupportedShape as refusal:
            return Finding(outcome=LEFT_OUT, sentence=f"{case.name}: skipped: {refusal}", **about)
        # around a negative cycle, any distances that reveal it are correct
        cyclic = graph.may_have_negative_cycles
        different = 1 if cyclic else len(set(result.checksums))
        outcome, misuse = find_misuse(result.log, result.failed is not None)
        again = "it races again" if outcome == RACY else "the same mistake again"
        sentences = [(again if self._explained else misuse)] if misuse else []
        if different > 1 and not misuse and not (result.failed is not None and result.failed.odd):
            outcome = RACY
            sentences = [f"ran {len(result.checksums)} times, {different} different results: it races", *result.harmful_races]
        where = None
        if result.failed is not None:
            outcome, explanation = outcome or WRONG, result.failed.how
            if not self._explained and not cyclic and graph.n <= _full_check(engine):
                self._explained = True
                where, explanation = self._locate(kernel, shape, engine, graph, result.failed, misuse)
            sentences.append(explanation)
        elif not outcome and not self._warning:
            self._warning = result.warning
        sentence = sanitise(f"{case.name}: {'; '.join(sentences) or 'right'}")
        return Finding(outcome=outcome or RIGHT, sentence=sentence, seconds=result.seconds, where=where, **about)

    def _repeat(self, it: LoadedKernel, graph: GraphInput, case: Case) -> CaseResult:
        engine, simulated = it.engine, it.engine.target.backend == "simulator"
        checksums: list[str] = []
        seconds, failed, log = None, None, None
        slow = simulated and runs_once(graph.n, it.program.shape.tile)
        for repeat in range(1 if self._request.brief or slow else SIMULATED_REPEATS if simulated else REPEATS):
            # distances around a negative cycle vary between repetitions
            with watch_accesses(simulated and not repeat and not graph.may_have_negative_cycles, self._accesses) as access_log:
                took = it.run()
            log = log or access_log
            if repeat and engine.timed:
                seconds = took if seconds is None else min(seconds, took)
            raw = it.result()
            distances = canonical(raw.copy(), graph, it.program.shape.dtype)
            checksums.append(fletcher64(distances))
            if failed is None:
                limit = _full_check(engine)
                finding = self._verifier.check(graph, case.graph.graph, distances, "auto", limit, it.kernel.id)
                if finding.verdict not in ("verified", "negative cycle"):
                    failed = Failure(finding.how, distances, raw, _odd(raw, graph))
            if simulated and repeat and (failed is None or self._explained):
                break
        return CaseResult(checksums, seconds, failed, log)

    def _locate(
        self, kernel: Kernel, shape: Shape, engine: Engine, graph: GraphInput, failed: Failure, misuse: str
    ) -> tuple[Where, str]:
        """Return the wrong cells with the step that wrote them, and their description; `misuse` was already reported."""
        expected = scipy_distances(graph, graph.potentials)
        mask = failed.distances != expected
        row, column = map(int, np.argwhere(mask)[0])
        got = failed.distances[row, column].item()
        where = Where(
            row=row,
            column=column,
            count=int(np.count_nonzero(mask)),
            n=graph.n,
            got=f"{failed.raw[row, column].item():.9g}".replace("nan", "NaN") if got == NO_DISTANCE else number_text(got),
            wanted=number_text(expected[row, column].item()),
            mask=np.packbits(mask).tobytes(),
            cause=misuse or failed.odd,
        )
        place = (
            f"wrong at row {row}, column {column}: {where.got}, expected {where.wanted} ({counted(where.count, 'wrong cell')})"
        )
        # distances may come out correct under the slower comparison if threads race
        candidates = (first_difference(kernel, shape, graph, engine) for _ in range(REPEATS))
        if (difference := next((one for one in candidates if one is not None), None)) is not None:
            plan = list(kernel.plan(shape, True))
            step, number = plan[difference.step], [number for number, _ in kernel.rounds(plan)][difference.step]
            i, j = map(int, np.argwhere(difference.got != difference.expected)[0])
            top, left, side = i // shape.tile * shape.tile, j // shape.tile * shape.tile, shape.tile
            where = msgspec.structs.replace(
                where,
                cause=where.cause or difference.cause,
                step=difference.step,
                op=sanitise(step.op),
                round=number,
                phase=sanitise(kernel.phases.get(step.phase, step.phase)),
                writes=(writes := kernel.places(step.writes)),
                rect=next((w for w in writes if w.top <= i < w.bottom and w.left <= j < w.right), None),
                block=Rect(top, left, min(top + side, graph.n), min(left + side, graph.n)) if side > 1 else None,
            )
            names = step_names(kernel, plan)
            first, last = names[difference.earliest], names[difference.step]
            began = f"in {last}" if difference.earliest == difference.step else f"between {first} and {last}"
            at = f", where the first wrong cells are in {describe_rect(where.block)}" if where.block is not None else ""
            place += f"; it began {began} (step {difference.step + 1} of {len(plan)}){at}"
        return where, place if misuse or not where.cause else f"{place}: {where.cause}"


def _full_check(engine: Engine) -> int:
    """Return the largest n at which all distances are compared with SciPy's."""
    return FULL_CHECK.get(engine.target.backend, FULL_CHECK["cpu"])


def rehearse(device: DeviceId) -> None:
    """Import, load and open everything that a test on that device needs; the test itself reports errors.

    It runs only one vertex, so that freed memory does not hold correct distances of a test.
    """
    KernelTest(KernelTestRequest(kernel=REHEARSED, device=device), lambda message: None).run(most=1)
    if not device.simulated:  # the kernel's code came from a cache; a user's kernel has to be compiled
        with suppress(Exception):
            from fwtui_kernels.compiled.compiler import compiled

            compiled(_nothing, ("array(int32, 2d, C)",), engine_for(device).target.cc or (9, 0))


def _nothing(distance: Any) -> None:
    distance[0, 0] = distance[0, 0]


def _odd(raw: np.ndarray, graph: GraphInput) -> str:
    """Describe values that no relaxation can produce; empty if there are none."""
    if raw.dtype.kind == "f":
        return NAN if np.isnan(raw).any() else ""
    return WRAPPED if (raw < 0).any() and graph.nonnegative else ""


def _send_line(path: str, frame: FrameType | None, parent: Parent) -> None:
    """Send the number of the line of that file that runs; nothing between two simulated threads."""
    while frame is not None and frame.f_code.co_filename != path:
        frame = frame.f_back
    if frame is not None:
        parent.write(b"%d\n" % frame.f_lineno)


def _ready() -> None:
    np.seterr(all="ignore")
    if len(sys.argv) > 1:
        rehearse(DeviceId.parse(sys.argv[1]))


def _answer(request: KernelTestRequest, parent: Parent) -> None:
    def emit(message: Finding | Begun) -> None:
        with suppress(Exception):  # the user's file may have closed it
            sys.stdout.flush()  # printed text comes first
        parent.send(message)

    signal.signal(signal.SIGUSR1, lambda _, frame: _send_line(request.path, frame, parent))  # the kernel hangs
    KernelTest(request, emit).run()
    parent.send(Begun(OVER))
    if request.brief:  # the sanitizer needs a normal shutdown
        raise SystemExit


if __name__ == "__main__":
    serve(KernelTestRequest, _answer, ready=_ready)
