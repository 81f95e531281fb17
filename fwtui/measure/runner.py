"""One run from its request to its result, told as events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from fwtui import events
from fwtui.errors import Refused
from fwtui.experiment import Experiment, changed, kernel_named
from fwtui.graphs.canonical import canonical
from fwtui.graphs.graph import GraphInput
from fwtui.measure import copies, statistics
from fwtui.measure.engine import Cancelled, Check, Engine
from fwtui.measure.inputs import Inputs, Key
from fwtui.measure.passes import Passes
from fwtui.measure.teller import Teller
from fwtui.verify import Verifier
from kernels.plan import Copied, Kernel, Shape, Step

FULL_CHECK_CPU, FULL_CHECK_GPU = 512, 2048  # largest n compared with SciPy cell by cell unless asked otherwise
MOST_CYCLE = 1000  # vertices told of a negative cycle: an event is one line of bounded length


class Runner:
    """Runs experiments on the engines it is given. Keeps the last graph, and what the verifier knows of it."""

    def __init__(
        self,
        emit: Callable[[events.Event], None],
        now: Callable[[], float],
        engine_for: Callable[[Kernel, Experiment], Engine],
    ):
        self._emit = emit
        self._now = now
        self._engine_for = engine_for
        self._inputs = Inputs()
        self._verifier = Verifier()

    def run(self, run: int, experiment: Experiment, check: Check, brief: bool = False) -> None:
        """Tell the whole run, its RunDone included. Only what breaks the worker is raised.

        `brief` leaves out the phase passes, and the warm-up of what compiles nothing.
        """
        kernel = kernel_named(experiment.kernel)
        engine = self._engine_for(kernel, experiment)
        teller = Teller(run, self._emit, self._now)
        teller.tell(
            events.RunStarted,
            experiment=changed(experiment, file=Path(experiment.file).name),  # a path tells of its owner
            title=kernel.title,
            backend=engine.target.backend,
            phases=tuple(events.PhaseName(key, title) for key, title in kernel.phases.items()),
        )
        samples = statistics.Samples()
        by_phase = None
        outcome, message = "done", ""
        try:
            by_phase = self._measure(teller, experiment, kernel, engine, samples, check, brief)
        except Cancelled:
            engine.synchronize()
            outcome, message = "cancelled", "cancelled"
        except Refused as refusal:
            outcome, message = "refused", str(refusal)
        timed = bool(samples)
        teller.tell(
            events.RunDone,
            outcome=outcome,
            message=message,
            median=median(samples) if timed else None,
            spread=statistics.spread(samples) if timed else None,
            count=len(samples),
            indicative=timed and statistics.indicative(samples),
            instrumentation=by_phase - median(samples) if by_phase is not None else None,
        )

    def _measure(
        self,
        teller: Teller,
        experiment: Experiment,
        kernel: Kernel,
        engine: Engine,
        samples: statistics.Samples,
        check: Check,
        brief: bool,
    ) -> float | None:
        """Everything between RunStarted and RunDone; fills `samples`, returns the phase pass's total."""
        key, graph = self._inputs.graph(teller, experiment, kernel, engine, check)
        shape = experiment.shape(graph.n, nonnegative=graph.low is None or graph.low >= 0)
        refusal = kernel.refuses(shape) or kernel.lacks(shape, engine.target)
        if refusal:
            raise Refused(refusal)
        plan = _planned(teller, kernel, shape)
        program = kernel.build(shape, engine.target)
        with teller.stage("allocate"):
            buffers = program.allocate()
            engine.synchronize()
        passes = Passes(teller, experiment, kernel, engine, program, plan, buffers, check)
        compiles = kernel.compiles and engine.target.backend != "simulator"
        # what is compiled for the copies is not charged to them; other programs may have no buffers before the matrix
        first = compiles and isinstance(program, Copied)
        if first:
            passes.compile()
        copies.load(teller, engine, program, shape, graph.matrix, buffers)
        if compiles and not first:
            passes.compile()
        one = passes.warm_up() if kernel.compiles or not brief else experiment.budget
        if engine.timed:
            passes.clean(samples, guess=one)
        raw = copies.unload(teller, engine, program, shape, buffers)
        self._verify(teller, experiment, engine, key, graph, raw)
        check()
        return passes.by_phase() if engine.timed and not brief else None

    def _verify(
        self, teller: Teller, experiment: Experiment, engine: Engine, key: Key, graph: GraphInput, raw: np.ndarray
    ) -> None:
        limit = FULL_CHECK_GPU if engine.target.backend == "cuda" else FULL_CHECK_CPU
        with teller.stage("verify"):
            distances = canonical(raw, graph, experiment.dtype)
            asked = experiment.kernel, _form(experiment)
            finding = self._verifier.check(graph, key, distances, experiment.verify, limit, *asked)
        if len(finding.cycle) > MOST_CYCLE:
            how = f"{finding.how}; the first {MOST_CYCLE} of the cycle's {len(finding.cycle)} vertices are kept"
            finding = finding._replace(cycle=finding.cycle[:MOST_CYCLE], how=how)
        teller.tell(events.Verdict, **finding._asdict())


def _form(experiment: Experiment) -> str:
    """What decides a kernel's code and data, in words: its tile, its options, its type and where its matrix is."""
    tile = f"tile {experiment.tile}" if experiment.tile else ""
    options = (f"{name} {value}" for name, value in sorted(experiment.options.items()))
    return " ".join(filter(None, (tile, *options, experiment.dtype, experiment.memory)))


def _planned(teller: Teller, kernel: Kernel, shape: Shape) -> list[Step]:
    plan = list(kernel.plan(shape, False))
    teller.tell(
        events.Planned,
        n=shape.n,
        padded=shape.padded,
        steps=len(plan),
        relaxations=sum(s.cost.relaxations for s in plan),
        device_bytes=sum(s.cost.device_bytes for s in plan),
    )
    return plan
