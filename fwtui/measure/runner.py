"""The steps of a run from its request to its result, reported as events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

import msgspec
import numpy as np

from fwtui.analysis.answers import RIGHT, stated
from fwtui.common.errors import Refused
from fwtui.common.units import LARGEST
from fwtui.engine.engine import Cancelled
from fwtui.engine.kernel_instance import load_kernel
from fwtui.engine.memory_check import check_memory
from fwtui.engine.verify import Verifier
from fwtui.experiment.experiment import FULL_CHECK
from fwtui.graphs.canonical import canonical, fletcher64, no_distance
from fwtui.graphs.graph import GraphInput, blocks
from fwtui.graphs.summary import summarise
from fwtui.graphs.vertices import Vertices
from fwtui.measure import statistics
from fwtui.measure.inputs import Inputs, Key
from fwtui.measure.repetitions import Repetitions
from fwtui.measure.run_context import RunContext
from fwtui.measure.user_kernel_process import recorded_plan, source_lines
from fwtui.stream import events
from fwtui_kernels.parts import elimination

ALWAYS = 512  # vertices up to which every run is summarised: takes some milliseconds
MAX_CACHED_BYTES = 1 << 30  # maximum bytes of distances cached until a user requests a summary
MAX_CYCLE = 1000  # vertices of a negative cycle in an event, whose line is bounded


@dataclass(frozen=True)
class Distances:
    """The canonical distances of a run, and the names of its vertices."""

    run: int
    cells: np.ndarray
    vertices: Vertices
    checksum: str


class Runner:
    """Executes runs one after the other. Caches the last graph and the verifier's results for it."""

    def __init__(self) -> None:
        self._inputs = Inputs()
        self._verifier = Verifier()
        self._distances: Distances | None = None  # distances of the last run, until the next one begins

    def run(self, context: RunContext, brief: bool = False, source: str = "") -> None:
        """Carry out a run and send all its events, including RunDone. Raises only what breaks the worker.

        `brief` skips the instrumented repetitions, and the warm-up unless something compiles; `source` is the file of a user's
        kernel, whose lines are sent too.
        """
        experiment, engine = context.experiment, context.engine
        context.emit_event(
            events.RunStarted,
            experiment=experiment.without_path,
            title=context.kernel.title,
            backend=engine.device.backend,
            phases=tuple(events.PhaseName(key, title) for key, title in context.phases.items()),
            gpu=engine.device.index,
            ranks=engine.ranks,
        )
        if source:
            for part in source_lines(Path(source)):
                context.emit_event(events.Source, **part)
        samples = statistics.Samples()
        by_phase = self._distances = None
        outcome, message = "done", ""
        try:
            with self.ready(context) as (key, graph, repetitions):
                one = repetitions.warm_up() if context.kernel.compiles or not brief else experiment.budget
                if engine.timed:
                    repetitions.run_timed(samples, guess=one)
                self._verify(context, key, graph, repetitions.unload())
                context.check()
                if engine.timed and not brief:
                    by_phase = repetitions.run_instrumented()
        except Cancelled:
            engine.synchronize()
            outcome, message = "cancelled", "cancelled"
        except Refused as refusal:
            outcome, message = "refused", str(refusal)
        timed = bool(samples)
        if outcome == "done" and not brief and self._distances is not None and len(self._distances.cells) <= ALWAYS:
            context.emit(msgspec.structs.replace(distance_summary(self._distances), t=context.now()))
        context.emit_event(
            events.RunDone,
            outcome=outcome,
            message=message,
            median=median(samples) if timed else None,
            spread=statistics.spread(samples) if timed else None,
            count=len(samples),
            indicative=timed and statistics.has_low_confidence(samples),
            instrumentation=by_phase - median(samples) if by_phase is not None else None,
            passes=statistics.spread_evenly(samples, events.MAX_SAMPLES) if len(samples) > events.MAX_SAMPLES else (),
        )

    def answer(self, context: RunContext, checksum: str) -> None:
        """Summarise the distances of a finished run, recomputed with progress unless it was the last one.

        The checksum is that of the run's verdict: different distances are rejected.
        """
        begin, solved = context.now(), None
        distances = self._distances if self._distances is not None and self._distances.run == context.run else None
        if distances is None:
            try:
                distances = self._distances = self._again(context)
            except (Refused, Cancelled) as why:
                context.emit_event(events.Answers, note=str(why) or "cancelled")
                return
            solved = context.now() - begin
        if distances.checksum == checksum:
            context.emit(msgspec.structs.replace(distance_summary(distances), t=context.now(), solved=solved))
        else:
            context.emit_event(events.Answers, note=f"the distances are no longer those of run {context.run}: run it again")

    def _again(self, context: RunContext) -> Distances:
        """Recompute the distances of a run with its kernel, reporting only progress. Raises Refused and Cancelled."""

        def tell_progress(event: events.Event) -> None:
            if isinstance(event, events.Progress):
                context.emit(msgspec.structs.replace(event, stage="answers", step=None))

        self._distances = None
        try:
            with self.ready(replace(context, emit=tell_progress)) as (_, graph, repetitions):
                repetitions.warm_up(is_last=True)
                distances = canonical(repetitions.unload(), graph, context.experiment.dtype)
        except Cancelled:
            context.engine.synchronize()
            raise
        return _of_run(context.run, distances, graph, fletcher64(distances))

    @contextmanager
    def ready(self, context: RunContext) -> Iterator[tuple[Key, GraphInput, Repetitions]]:
        """Yield the graph, its key, and a compiled program with the graph in its buffers. Raises Refused."""
        kernel, engine = context.kernel, context.engine
        key, graph, shape = self._inputs.graph(context)
        if kernel.ordered is not None:
            with context.stage("order"):
                shape = kernel.ordered(shape, graph.matrix)
            order = shape.order
            sizes, parents, above = tuple(zip(*order.supernodes, strict=True)) if order is not None else ((), (), ())
            context.emit_event(
                events.Ordered,
                sizes=sizes,
                parents=parents,
                above=above,
                directed=order is None or order.directed,
                fill=elimination.fill(shape),
            )
            check_memory(kernel, shape, engine, context.experiment.verify == "full")  # the padding is now available
        plan = list(kernel.plan(shape, False))
        context.emit_event(
            events.Planned,
            n=shape.n,
            padded=shape.padded,
            steps=len(plan),
            relaxations=sum(s.cost.relaxations for s in plan),
            device_bytes=sum(s.cost.device_bytes for s in plan),
        )
        if context.experiment.code:
            for part in recorded_plan(kernel, shape):
                context.emit_event(events.Plan, **part)
        with load_kernel(kernel, shape, engine, plan=plan, stage=context.stage) as it:
            repetitions = Repetitions(context, it)
            compiles = kernel.compiles and engine.target.backend != "simulator"
            # compile the copies' kernels before the copies are timed; some programs have no buffers before the matrix
            first = compiles and it.program.in_parts
            if first:
                repetitions.compile()
            repetitions.load(graph.matrix)
            if compiles and not first:
                repetitions.compile()
            yield key, graph, repetitions

    def _verify(self, context: RunContext, key: Key, graph: GraphInput, raw: np.ndarray) -> None:
        experiment = context.experiment
        limit = FULL_CHECK.get(context.engine.target.backend, FULL_CHECK["cpu"])
        tile = f"tile {experiment.tile}" if experiment.tile else ""
        options = (f"{name} {value}" for name, value in sorted(experiment.options.items()))
        form = " ".join(filter(None, (tile, *options, experiment.dtype, experiment.memory)))  # all that changes its code
        with context.stage("verify"):
            distances = canonical(raw, graph, experiment.dtype)
            finding = self._verifier.check(graph, key, distances, experiment.verify, limit, experiment.kernel, form)
        if len(finding.cycle) > MAX_CYCLE:
            how = f"{finding.how}; the first {MAX_CYCLE} of the cycle's {len(finding.cycle)} vertices are listed"
            finding = finding._replace(cycle=finding.cycle[:MAX_CYCLE], how=how)
        context.emit_event(events.Verdict, **finding._asdict())
        if finding.verdict in RIGHT and distances.nbytes <= MAX_CACHED_BYTES:
            self._distances = _of_run(context.run, distances, graph, finding.checksum)


def _of_run(run: int, cells: np.ndarray, graph: GraphInput, checksum: str) -> Distances:
    return Distances(run, cells, graph.vertices or Vertices(range(graph.n)), checksum)


def distance_summary(distances: Distances) -> events.Answers:
    """Return the event without its time; `seconds` is the time to compute it. Without a summary, its note gives the reason."""
    begin = perf_counter()
    if any(no_distance(distances.cells[rows]).any() for rows in blocks(distances.cells)):
        note = "some distances are NaN; run it again with verification"
    else:
        summary = summarise(distances.cells, events.BINS, events.CELLS, events.CELLS)
        if max(map(abs, (summary.edges[0], summary.edges[-1]))) <= LARGEST:
            event = stated(summary, distances.vertices, run=distances.run, checksum=distances.checksum)
            return msgspec.structs.replace(event, seconds=perf_counter() - begin)
        note = f"distances beyond {LARGEST:g} are not summarised; scale the weights down"
    return events.Answers(t=0.0, run=distances.run, checksum=distances.checksum, note=note)
