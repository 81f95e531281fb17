"""One run from its request to its result, told as events."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from statistics import median

from fwtui import events
from fwtui.errors import Refused
from fwtui.experiment import SIMULATOR_MAX_N, Experiment, changed, kernel_named
from fwtui.graphs.bounds import check_range
from fwtui.graphs.canonical import canonical
from fwtui.graphs.files import read
from fwtui.graphs.generate import generate
from fwtui.graphs.graph import GraphInput
from fwtui.measure import statistics
from fwtui.measure.engine import Cancelled, Check, Engine, one_of_each_op, stretches
from fwtui.measure.memory import check_memory
from fwtui.measure.phases import parts_of, rounds_of
from fwtui.measure.resources import occupancies
from fwtui.verify import Verifier
from kernels.plan import Buffers, Kernel, Program, Shape, Step

Emit = Callable[[events.Event], None]
FULL_CHECK_CPU, FULL_CHECK_GPU = 512, 2048  # largest n compared with SciPy cell by cell unless asked otherwise
GENERATED_THERE = 4096  # smaller graphs are generated on the CPU before a GPU's generator is compiled
TELL_EVERY = 0.1  # seconds
PHASE_PASSES, PHASE_SECONDS = 5, 0.5  # at most so many phase passes, begun within so much time
MOST_CYCLE = 1000  # vertices told of a negative cycle: an event is one line of bounded length


class Runner:
    """Runs experiments on the engines it is given. Keeps the last graph, and what the verifier knows of it."""

    def __init__(self, emit: Emit, now: Callable[[], float], engine_for: Callable[[Kernel, Experiment], Engine]):
        self._emit = emit
        self._now = now
        self._engine_for = engine_for
        self._verifier = Verifier()
        self._graph: tuple[tuple[object, ...], GraphInput] | None = None

    def run(self, run: int, experiment: Experiment, check: Check) -> None:
        """Tell the whole run, its RunDone included. Only what breaks the worker is raised."""
        kernel = kernel_named(experiment.kernel)
        engine = self._engine_for(kernel, experiment)
        self._emit(
            events.RunStarted(
                t=self._now(),
                run=run,
                experiment=changed(experiment, file=Path(experiment.file).name),  # a path tells of its owner
                title=kernel.title,
                backend=engine.target.backend,
                phases=tuple(events.PhaseName(key, title) for key, title in kernel.phases.items()),
            )
        )
        samples: list[float] = []
        instrumentation = None
        outcome, message = "done", ""
        try:
            instrumentation = self._measure(run, experiment, kernel, engine, samples, check)
        except Cancelled:
            engine.synchronize()
            outcome, message = "cancelled", "cancelled"
        except Refused as refusal:
            outcome, message = "refused", str(refusal)
        timed = bool(samples) and engine.timed
        self._emit(
            events.RunDone(
                t=self._now(),
                run=run,
                outcome=outcome,
                message=message,
                median=median(samples) if timed else None,
                spread=statistics.spread(samples) if timed else None,
                count=len(samples) if timed else 0,
                indicative=timed and statistics.indicative(samples),
                instrumentation=instrumentation,
            )
        )

    def _measure(
        self, run: int, experiment: Experiment, kernel: Kernel, engine: Engine, samples: list[float], check: Check
    ) -> float | None:
        """Everything between RunStarted and RunDone; fills `samples`, returns the phase pass's extra seconds."""
        key, graph = self._input(run, experiment, kernel, engine, check)
        shape = experiment.shape(graph.n, nonnegative=graph.low is None or graph.low >= 0)
        plan = self._planned(run, kernel, shape)
        program = kernel.build(shape, engine.target)
        buffers = program.allocate()
        with self._stage(run, "load", shape.padded**2 * shape.itemsize):
            program.load(graph.matrix, buffers, engine.stream)
            engine.synchronize()
        if kernel.compiles and engine.target.backend != "simulator":
            self._compile(run, program, plan, buffers, engine)
        program.restore(buffers, engine.stream)
        engine.synchronize()
        begin = time.perf_counter()
        with self._stage(run, "warm-up"):
            engine.warm_up(program, plan, buffers, check, self._progress(run, plan, experiment))
        if engine.timed:
            self._clean(run, experiment, program, plan, buffers, engine, samples, time.perf_counter() - begin, check)
        self._verify(run, experiment, key, graph, shape, program, buffers, engine)
        check()
        return self._phases(run, experiment, kernel, program, plan, buffers, engine, samples, check) if engine.timed else None

    def _input(
        self, run: int, experiment: Experiment, kernel: Kernel, engine: Engine, check: Check
    ) -> tuple[tuple[object, ...], GraphInput]:
        most = SIMULATOR_MAX_N if engine.target.backend == "simulator" else kernel.max_n
        if not experiment.file:
            check_memory(experiment.shape(experiment.n), engine)
        with self._stage(run, "graph"):
            key = (*experiment.graph, experiment.dtype, *_file_stamp(experiment.file))
            if self._graph is None or self._graph[0] != key:
                self._graph = None  # so that two graphs are never held at once
                fill = engine.fill if experiment.n >= GENERATED_THERE else None
                graph = read(experiment.file, experiment.dtype, most) if experiment.file else generate(experiment, fill)
                self._graph = key, graph
            graph = self._graph[1]
            check()
            if experiment.file:
                check_memory(experiment.shape(graph.n), engine)
                refusal = kernel.refuses(experiment.shape(graph.n))
                if refusal:
                    raise Refused(refusal)
            proof = check_range(graph, experiment.dtype)
        self._emit(
            events.Graph(
                t=self._now(),
                run=run,
                vertices=graph.n,
                edges=graph.edges,
                low=graph.low,
                high=graph.high,
                negative_share=graph.negative_share,
                name=graph.name,
                note="; ".join(filter(None, (graph.note, f"range {proof}" if proof else ""))),
            )
        )
        # a graph is the same whatever type computes on it: checksums may be compared across types
        return (*experiment.graph, *_file_stamp(experiment.file)), graph

    def _planned(self, run: int, kernel: Kernel, shape: Shape) -> list[Step]:
        plan = list(kernel.plan(shape, False))
        self._emit(
            events.Planned(
                t=self._now(),
                run=run,
                n=shape.n,
                padded=shape.padded,
                steps=len(plan),
                relaxations=sum(s.cost.relaxations for s in plan),
                device_bytes=sum(s.cost.device_bytes for s in plan),
            )
        )
        return plan

    def _compile(self, run: int, program: Program, plan: Sequence[Step], buffers: Buffers, engine: Engine) -> None:
        with self._stage(run, "compile"):
            for step in one_of_each_op(plan):
                program.launch(step, buffers, engine.stream)
            engine.synchronize()
        for estimate in occupancies(program, engine.target):
            self._emit(events.Occupancy(t=self._now(), run=run, **estimate))

    def _clean(
        self,
        run: int,
        experiment: Experiment,
        program: Program,
        plan: Sequence[Step],
        buffers: Buffers,
        engine: Engine,
        samples: list[float],
        guess: float,
        check: Check,
    ) -> None:
        timed = engine.clean_pass(program, plan, buffers, experiment.launch)
        told = 0.0
        with self._stage(run, "clean"):
            while not statistics.enough(samples, experiment.repeats, experiment.budget):
                check()
                one = median(samples) if samples else guess
                left = statistics.expected_seconds(samples, one, experiment.repeats, experiment.budget)
                if not samples or self._now() - told > TELL_EVERY:
                    told = self._now()
                    done = sum(samples) / (sum(samples) + left + one)
                    self._emit(events.Progress(t=told, run=run, stage="clean", done=done, left=left + one))
                program.restore(buffers, engine.stream)
                engine.synchronize()
                since = self._now()
                samples.append(timed(check))
                if len(samples) <= events.SAMPLES_TOLD:
                    self._emit(events.Sample(t=self._now(), run=run, seconds=samples[-1], since=since))

    def _verify(
        self,
        run: int,
        experiment: Experiment,
        key: tuple[object, ...],
        graph: GraphInput,
        shape: Shape,
        program: Program,
        buffers: Buffers,
        engine: Engine,
    ) -> None:
        with self._stage(run, "unload", shape.n**2 * shape.itemsize):
            raw = program.unload(buffers, engine.stream)
        with self._stage(run, "verify"):
            distances = canonical(raw, graph, shape.dtype)
            limit = FULL_CHECK_GPU if engine.target.backend == "cuda" else FULL_CHECK_CPU
            finding = self._verifier.check(graph, key, distances, experiment.verify, limit, experiment.kernel)
        if len(finding.cycle) > MOST_CYCLE:
            how = f"{finding.how}; the first {MOST_CYCLE} of the cycle's {len(finding.cycle)} vertices are kept"
            finding = finding._replace(cycle=finding.cycle[:MOST_CYCLE], how=how)
        self._emit(events.Verdict(t=self._now(), run=run, **finding._asdict()))

    def _phases(
        self,
        run: int,
        experiment: Experiment,
        kernel: Kernel,
        program: Program,
        plan: Sequence[Step],
        buffers: Buffers,
        engine: Engine,
        samples: Sequence[float],
        check: Check,
    ) -> float:
        parts = stretches(plan)
        timed = engine.phase_pass(program, parts, buffers, experiment.launch)
        with self._stage(run, "phases"):
            passes: list[list[float]] = []
            while not passes or (len(passes) < PHASE_PASSES and sum(map(sum, passes)) < PHASE_SECONDS):
                program.restore(buffers, engine.stream)
                engine.synchronize()
                passes.append(timed(check))
            # one pass as it was, not a mixture: phases add up to its total
            seconds = sorted(passes, key=sum)[(len(passes) - 1) // 2]
        captured = experiment.launch == "graph"
        self._emit(
            events.Phases(
                t=self._now(),
                run=run,
                seconds=sum(seconds),
                parts=parts_of(parts, seconds, tuple(kernel.phases)),
                captured=captured,
                passes=len(passes),
            )
        )
        for index, first, row in rounds_of(parts, seconds, tuple(kernel.phases)):
            self._emit(events.Round(t=self._now(), run=run, index=index, first=first, seconds=row))
        return sum(seconds) - median(samples)

    def _progress(self, run: int, plan: Sequence[Step], experiment: Experiment) -> Callable[[int], None]:
        """Tells the warm-up's progress by relaxations, at most ten times a second."""
        done = list(accumulate(s.cost.relaxations for s in plan))
        begin = time.perf_counter()
        told = begin

        def tell(finished: int) -> None:
            nonlocal told
            clock = time.perf_counter()
            if clock - told < TELL_EVERY:
                return
            told = clock
            share = done[finished - 1] / done[-1]
            one = (clock - begin) / share
            left = (1 - share) * one + statistics.expected_seconds((), one, experiment.repeats, experiment.budget) + one
            self._emit(events.Progress(t=self._now(), run=run, stage="warm-up", done=share, step=finished - 1, left=left))

        return tell

    @contextmanager
    def _stage(self, run: int, name: str, size: int | None = None) -> Iterator[None]:
        """A part of the run that is told when it begins and, with its seconds, when it is over."""
        begin = self._now()
        self._emit(events.Stage(t=begin, run=run, name=name))
        yield
        end = self._now()
        self._emit(events.Stage(t=end, run=run, name=name, seconds=end - begin, bytes=size))


def _file_stamp(path: str) -> tuple[object, ...]:
    """What changes when a file does."""
    if not path:
        return (None, None)
    try:
        status = os.stat(path)
    except OSError:
        return (None, None)  # the reader says what is wrong with it
    return (status.st_mtime_ns, status.st_size)
