"""The steps of a run from its request to its result, reported as events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from fwtui.common.errors import Refused
from fwtui.engine.engine import Cancelled
from fwtui.engine.kernel_instance import load_kernel
from fwtui.engine.memory_check import check_memory
from fwtui.engine.verify import Verifier
from fwtui.experiment.experiment import FULL_CHECK
from fwtui.graphs.canonical import canonical
from fwtui.graphs.graph import GraphInput
from fwtui.measure import statistics
from fwtui.measure.inputs import Inputs, Key
from fwtui.measure.repetitions import Repetitions
from fwtui.measure.run_context import RunContext
from fwtui.measure.user_kernel_process import recorded_plan, source_lines
from fwtui.stream import events
from fwtui_kernels.parts import elimination

MAX_CYCLE = 1000  # vertices of a negative cycle in an event, whose line is bounded


class Runner:
    """Executes runs one after the other. Caches the last graph and the verifier's results for it."""

    def __init__(self) -> None:
        self._inputs = Inputs()
        self._verifier = Verifier()

    def run(self, context: RunContext, source: str = "") -> None:
        """Carry out a run and send all its events, including RunDone. Raises only what breaks the worker.

        `source` is the file of a user's kernel, whose lines are sent too.
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
        by_phase = None
        outcome, message = "done", ""
        try:
            with self.ready(context) as (key, graph, repetitions):
                one = repetitions.warm_up()
                if engine.timed:
                    repetitions.run_timed(samples, guess=one)
                self._verify(context, key, graph, repetitions.unload())
                context.check()
                if engine.timed:
                    by_phase = repetitions.run_instrumented()
        except Cancelled:
            engine.synchronize()
            outcome, message = "cancelled", "cancelled"
        except Refused as refusal:
            outcome, message = "refused", str(refusal)
        timed = bool(samples)
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
