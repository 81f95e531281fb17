"""The stages of a program in one run: compile, load, warm up, timed repetitions, instrumented repetitions, unload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median
from time import process_time
from typing import Any

from fwtui.analysis.occupancy import occupancy
from fwtui.common.cores import usable_cores
from fwtui.engine.distributed_engine import stretch_of_rank
from fwtui.engine.engine import PhaseStretch, StretchTimes
from fwtui.engine.kernel_instance import LoadedKernel
from fwtui.measure import statistics
from fwtui.measure.cpu_loops import inner_loops
from fwtui.measure.run_context import PROGRESS_SECONDS, RunContext
from fwtui.measure.statistics import Samples
from fwtui.stream import events
from fwtui.stream.stages import PHASE_PASSES, PHASE_SECONDS
from fwtui_kernels.plan import WARP, Cost, Program, Step, Target
from fwtui_kernels.probes.probe_cpu import clock_mhz

MAX_ROUNDS = 64  # rounds recorded of one run
MAX_COPIES, COPY_SECONDS = 5, 0.1  # maximum number and time of the copies of which the median is reported


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The compilation and repetitions of a run."""

    context: RunContext
    instance: LoadedKernel

    def compile(self) -> None:
        """Launch each op once on arbitrary data, and report its compiled resources."""
        engine = self.context.engine
        with self.context.stage("compile"):
            if self.instance.program.in_parts:
                self.instance.program.prepare(self.instance.buffers, engine.stream)
            engine.compile(self.instance.program, self.instance.plan, self.instance.buffers)
            if self._on_this_cpu:
                for op, loop in inner_loops(self.instance, cached=not self.context.experiment.code):
                    self.context.emit_event(events.CpuLoop, op=op, **loop._asdict())
        for estimate in occupancies(self.instance.program, engine.target):
            self.context.emit_event(events.Occupancy, **estimate)

    @property
    def _on_this_cpu(self) -> bool:
        """Return True if this process computes the whole run on the CPU."""
        engine = self.context.engine
        return engine.target.backend == "cpu" and not engine.ranks

    def load(self, matrix: Any) -> None:
        """Load the graph for restore(); the copy is reported separately from reordering."""
        program, buffers, stream = self.instance.program, self.instance.buffers, self.context.engine.stream
        size = program.shape.padded**2 * program.shape.itemsize
        if not (program.in_parts and program.repeatable):
            with self.context.stage("load", size):
                self.instance.load(matrix)
            return
        self._copied("load", size, lambda: program.copy_in(matrix, buffers, stream))
        if program.reorders:
            with self.context.stage("reorder"):
                program.pack(buffers, stream)

    def unload(self) -> Any:
        """Return the result in the shape of the input, as a host array."""
        program, buffers, stream = self.instance.program, self.instance.buffers, self.context.engine.stream
        size = program.shape.n**2 * program.shape.itemsize
        if not (program.in_parts and program.repeatable):
            with self.context.stage("unload", size):
                return program.unload(buffers, stream)
        if program.reorders:
            with self.context.stage("reorder back"):
                program.unpack(buffers, stream)
        return self._copied("unload", size, lambda: program.copy_out(buffers, stream))

    def _copied(self, name: str, size: int, copy: Callable[[], Any]) -> Any:
        """Return the result of the copy, and report the median of several: the first includes the driver's one-time work."""
        self.context.emit_event(events.Stage, name=name)
        seconds: list[float] = []
        copied = None
        while not seconds or (len(seconds) < MAX_COPIES and sum(seconds) < COPY_SECONDS):
            copied = None  # never two results in memory
            begin = self.context.now()
            copied = copy()
            seconds.append(self.context.now() - begin)
        self.context.emit_event(events.Stage, name=name, seconds=median(seconds), bytes=size)
        return copied

    def warm_up(self) -> float:
        """Run one untimed repetition with progress; return its approximate seconds."""
        self.instance.restore()
        begin = self.context.now()
        with self.context.stage("warm-up"):
            it = self.instance
            self.context.engine.warm_up(it.program, it.plan, it.buffers, self.context.check, self.progress(begin))
        return self.context.now() - begin

    def run_timed(self, samples: Samples, guess: float) -> None:
        """Run timed repetitions until there are enough; fill `samples`, so that a cancelled run retains them."""
        context, e = self.context, self.context.experiment
        timed = context.engine.timed_repetition(self.instance.program, self.instance.plan, self.instance.buffers, e.launch)
        begin = context.now()
        last_report, done, used = begin - 2 * PROGRESS_SECONDS, 0.0, 0.0
        with context.stage("clean"):
            while not statistics.is_converged(samples, e.repeats, e.budget, context.now() - begin):
                context.check()
                if context.now() - last_report > PROGRESS_SECONDS:
                    last_report = context.now()
                    done = self._report_progress(samples, guess, last_report - begin, done)
                self.instance.restore()
                since, before = context.now(), process_time()
                samples.take(timed(context.check))
                used += process_time() - before
                if len(samples) <= events.MAX_SAMPLES:
                    context.emit_event(events.Sample, seconds=samples[-1], since=since)
        if self._on_this_cpu and (seconds := sum(samples)):
            each = used / len(samples)
            context.emit_event(events.CpuUse, busy=used / seconds, each=each, usable=len(usable_cores()), clock_mhz=clock_mhz())

    def _report_progress(self, samples: Samples, guess: float, wall: float, least: float) -> float:
        """Report the share of the repetitions done, never less than before, and return it."""
        one = samples.middle if samples else guess
        left = self._until_enough(samples, one, wall)
        done = max(least, wall / (wall + left))
        self.context.emit_event(events.Progress, stage="clean", done=done, left=left + one)  # plus the instrumented repetition
        return done

    def _until_enough(self, samples: Samples, one: float, wall: float = 0.0) -> float:
        """Estimate the seconds until the last timed repetition ends: at least those of one repetition."""
        e = self.context.experiment
        return max(one, statistics.expected_seconds(samples, one, e.repeats, e.budget, wall))

    def run_instrumented(self) -> float:
        """Run instrumented repetitions; report the middle one and return its total."""
        context, launch = self.context, self.context.experiment.launch
        parts = context.engine.stretches(self.instance.plan)
        phases = tuple(context.phases)
        run = context.engine.instrumented_repetition(self.instance.program, parts, self.instance.buffers, launch)
        with context.stage("phases"):
            repetitions: list[StretchTimes] = []
            while not repetitions or (
                len(repetitions) < PHASE_PASSES and sum(timed.total for timed in repetitions) < PHASE_SECONDS
            ):
                self.instance.restore()
                repetitions.append(run(context.check))
            # one actual repetition, not a mixture: its phases add up to its total
            middle = sorted(repetitions, key=lambda timed: timed.total)[(len(repetitions) - 1) // 2]
        total, seconds = middle.total, middle.seconds
        timed_phases = phase_parts(parts, seconds, phases, middle.cpu if self._on_this_cpu else None)
        context.emit_event(events.Phases, seconds=total, parts=timed_phases, captured=launch == "graph", passes=len(repetitions))
        for rank, rank_parts in enumerate(middle.ranks):
            of_rank = phase_parts([stretch_of_rank(part, rank) for part in parts], rank_parts, phases)
            context.emit_event(events.RankPhases, rank=rank, seconds=sum(rank_parts), parts=of_rank)
        for index, first, row in sample_rounds(parts, seconds, phases):
            context.emit_event(events.Round, index=index, first=first, seconds=row)
        return total

    def progress(self, begin: float) -> Callable[[int], None]:
        """Return a function that reports the warm-up's progress by relaxations, at most ten times a second."""
        done = list(accumulate(s.cost.relaxations for s in self.instance.plan))
        last_report = begin

        def report(finished: int) -> None:
            nonlocal last_report
            clock = self.context.now()
            if clock - last_report < PROGRESS_SECONDS:
                return
            last_report = clock
            share = done[finished - 1] / done[-1]
            one = (clock - begin) / share
            left = (1 - share) * one + (self._until_enough(Samples(), one) + one if self.context.engine.timed else 0.0)
            self.context.emit_event(events.Progress, stage="warm-up", done=share, step=finished - 1, left=left)

        return report


def occupancies(program: Program, target: Target) -> Iterator[dict[str, Any]]:
    """Yield the fields of an events.Occupancy for every op with known resources: blocks from the driver's calculator, limiters
    from the table.
    """
    for op, got in program.resources().items():
        table = occupancy(target.cc, got.threads, got.registers, got.shared_bytes)
        blocks = got.blocks_per_multiprocessor
        if blocks is None:
            if table is None:
                continue
            blocks = table.blocks
        # if the driver disagrees with the table, the table's limiter is wrong
        agreed = table is not None and table.blocks == blocks
        yield {
            "op": op,
            "threads": got.threads,
            "registers": got.registers,
            "shared_bytes": got.shared_bytes,
            "spill_bytes": got.spill_bytes,
            "blocks": blocks,
            "warps": blocks * -(-got.threads // WARP),
            "max_warps": table.max_warps if table is not None else 0,
            "limiters": table.limiters if table is not None and agreed else (),
            "source": "table" if got.blocks_per_multiprocessor is None else "driver",
        }


def phase_parts(
    parts: Sequence[PhaseStretch], seconds: Sequence[float], phases: Sequence[str], cpu: Sequence[float] | None = None
) -> tuple[events.Part, ...]:
    """Return one Part per phase, in the kernel's order; `cpu` are the CPU seconds of each stretch."""
    worked = cpu or [0.0] * len(parts)
    timed_phases = (
        events.Part(
            phase=phase,
            seconds=sum(s for p, s in zip(parts, seconds, strict=True) if p.phase == phase),
            launches=sum(len(p.steps) for p in parts if p.phase == phase),
            cpu_seconds=sum(s for p, s in zip(parts, worked, strict=True) if p.phase == phase),
            **Cost.total(p.cost for p in parts if p.phase == phase)._asdict(),
        )
        for phase in phases
        if any(p.phase == phase for p in parts)
    )
    return tuple(part for part in timed_phases if part.launches or part.seconds)


def sample_rounds(
    parts: Sequence[PhaseStretch], seconds: Sequence[float], phases: Sequence[str]
) -> list[tuple[int, int, tuple[float, ...]]]:
    """Return at most 64 evenly spaced rounds: (index, relaxations before it, seconds per phase). Each begins at the first phase.

    Empty if the plan has only one round, which would equal the sum.
    """
    starts = [i for i, p in enumerate(parts) if p.phase == phases[0]]
    if len(starts) < 2:
        return []
    before = list(accumulate((part.cost.relaxations for part in parts), initial=0))
    every = -(-len(starts) // MAX_ROUNDS)
    rounds = list(enumerate(pairwise([*starts, len(parts)])))[::every]
    return [
        (index, before[begin], tuple(sum(seconds[i] for i in range(begin, end) if parts[i].phase == phase) for phase in phases))
        for index, (begin, end) in rounds
    ]


def representatives(plan: Sequence[Step]) -> dict[int, str]:
    """Map the plan index of one launch to each op: the middle one of its launches with the most relaxations."""
    most: dict[str, int] = {}
    for step in plan:
        most[step.op] = max(most.get(step.op, 0), step.cost.relaxations)
    largest: dict[str, list[int]] = {op: [] for op in most}
    for index, step in enumerate(plan):
        if step.cost.relaxations == most[step.op]:
            largest[step.op].append(index)
    return {indices[len(indices) // 2]: op for op, indices in largest.items()}
