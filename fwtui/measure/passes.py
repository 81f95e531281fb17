"""The passes of one run over its plan: compiling, warming up, timed clean, timed by phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fwtui.analysis.occupancy import occupancy
from fwtui.engine.engine import Check, Engine, one_of_each_op, stretches
from fwtui.experiment.experiment import Experiment
from fwtui.measure import statistics
from fwtui.measure.events_out import Teller
from fwtui.measure.phases import parts_of, rounds_of
from fwtui.measure.statistics import Samples
from fwtui.stream import events
from fwtui.stream.stages import PHASE_PASSES, PHASE_SECONDS
from kernels.plan import WARP, Buffers, Copied, Kernel, Program, Step, Target

TELL_EVERY = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Passes:
    """A program with its buffers loaded, and everything that running it takes."""

    teller: Teller
    experiment: Experiment
    kernel: Kernel
    engine: Engine
    program: Program
    plan: Sequence[Step]
    buffers: Buffers
    check: Check  # raises Cancelled

    def compile(self) -> None:
        """Launch each op once, on whatever is in the buffers, and tell what the compiler made of it."""
        with self.teller.stage("compile"):
            if isinstance(self.program, Copied):
                self.program.prepare(self.buffers, self.engine.stream)
            for step in one_of_each_op(self.plan):
                self.program.launch(step, self.buffers, self.engine.stream)
            self.engine.synchronize()
        for estimate in occupancies(self.program, self.engine.target):
            self.teller.tell(events.Occupancy, **estimate)

    def warm_up(self, alone: bool = False) -> float:
        """One pass, untimed but told as it goes; returns roughly what it took. `alone`: no timed ones come after it."""
        self._restore()
        begin = time.perf_counter()
        with self.teller.stage("warm-up"):
            self.engine.warm_up(self.program, self.plan, self.buffers, self.check, self._progress(begin, alone))
        return time.perf_counter() - begin

    def clean(self, samples: Samples, guess: float) -> None:
        """Timed passes until there are enough; fills `samples`, so that a cancelled run keeps what it has."""
        e = self.experiment
        timed = self.engine.clean_pass(self.program, self.plan, self.buffers, e.launch)
        begin = self.teller.now()
        told = begin - 2 * TELL_EVERY
        with self.teller.stage("clean"):
            while not statistics.enough(samples, e.repeats, e.budget, self.teller.now() - begin):
                self.check()
                if self.teller.now() - told > TELL_EVERY:
                    told = self.teller.now()
                    self._tell_clean(samples, guess, told - begin)
                self._restore()
                since = self.teller.now()
                samples.take(timed(self.check))
                if len(samples) <= events.SAMPLES_TOLD:
                    self.teller.tell(events.Sample, seconds=samples[-1], since=since)

    def _tell_clean(self, samples: Samples, guess: float, wall: float) -> None:
        one = samples.middle if samples else guess
        left = statistics.expected_seconds(samples, one, self.experiment.repeats, self.experiment.budget) + one
        done = samples.total / (samples.total + left)
        # what lies between the passes takes time too
        left *= wall / samples.total if samples.total else 1.0
        self.teller.tell(events.Progress, stage="clean", done=done, left=left)

    def by_phase(self) -> float:
        """Passes with a clock around each phase; tells the middle one and returns its total."""
        parts = stretches(self.plan)
        phases = tuple(self.kernel.phases)
        timed = self.engine.phase_pass(self.program, parts, self.buffers, self.experiment.launch)
        with self.teller.stage("phases"):
            passes: list[list[float]] = []
            while not passes or (len(passes) < PHASE_PASSES and sum(map(sum, passes)) < PHASE_SECONDS):
                self._restore()
                passes.append(timed(self.check))
            # one pass as it was, not a mixture: phases add up to its total
            seconds = sorted(passes, key=sum)[(len(passes) - 1) // 2]
        self.teller.tell(
            events.Phases,
            seconds=sum(seconds),
            parts=parts_of(parts, seconds, phases),
            captured=self.experiment.launch == "graph",
            passes=len(passes),
        )
        for index, first, row in rounds_of(parts, seconds, phases):
            self.teller.tell(events.Round, index=index, first=first, seconds=row)
        return sum(seconds)

    def _restore(self) -> None:
        self.program.restore(self.buffers, self.engine.stream)
        self.engine.synchronize()

    def _progress(self, begin: float, alone: bool) -> Callable[[int], None]:
        """Tells the warm-up's progress by relaxations, at most ten times a second."""
        done = list(accumulate(s.cost.relaxations for s in self.plan))
        told = begin

        def tell(finished: int) -> None:
            nonlocal told
            clock = time.perf_counter()
            if clock - told < TELL_EVERY:
                return
            told = clock
            share = done[finished - 1] / done[-1]
            one = (clock - begin) / share
            left = (1 - share) * one
            if not alone:
                left += statistics.expected_seconds(Samples(), one, self.experiment.repeats, self.experiment.budget) + one
            self.teller.tell(events.Progress, stage="warm-up", done=share, step=finished - 1, left=left)

        return tell


def occupancies(program: Program, target: Target) -> Iterator[dict[str, Any]]:
    """Fields of an events.Occupancy for every op that the compiler says something about: blocks from the driver's calculator,
    limiters from the table.
    """
    for op, got in program.resources().items():
        table = occupancy(target.cc, got.threads, got.registers, got.shared_bytes)
        blocks = got.blocks_per_multiprocessor
        if blocks is None:
            if table is None:
                continue
            blocks = table.blocks
        # a driver that knows better than the table also knows another limiter
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
