"""Execution and timing of a plan's steps: the engine protocol, the host's engine, and timed stretches of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fwtui.experiment.device import DeviceId
from fwtui_kernels.plan import Buffers, Cost, Kernel, Program, Shape, Step, Target

if TYPE_CHECKING:  # `solve` does not need them
    from fwtui.experiment.generate import Fill
    from fwtui.stream.events import Device, RankOf


class Cancelled(Exception):
    """The user cancelled the run; raised between two steps."""


Check = Callable[[], None]  # raises Cancelled
Report = Callable[[int], None]  # takes the number of steps that have finished


@dataclass(frozen=True, slots=True)
class PhaseStretch:
    """Consecutive steps of one phase, timed by one pair of clock readings."""

    phase: str
    steps: tuple[Step, ...]

    @property
    def cost(self) -> Cost:
        return Cost.total([Cost(0, 0), *(step.cost for step in self.steps)])


def stretches(plan: Sequence[Step]) -> list[PhaseStretch]:
    """Return the plan in serial order, split at changes of phase."""
    return [PhaseStretch(phase, tuple(steps)) for phase, steps in groupby(plan, key=lambda s: s.phase)]


class StretchTimes(NamedTuple):
    """Seconds of each stretch of a plan; with several ranks their mean, and those of each rank."""

    seconds: list[float]
    ranks: tuple[list[float], ...] = ()
    cpu: list[float] | None = None  # CPU seconds of this process, if the plan runs on the CPU

    @property
    def total(self) -> float:
        return sum(self.seconds)


# runs the plan once: seconds from the first step's start to the last one's end; may raise Cancelled
TimedRun = Callable[[Check], float]
PhaseRun = Callable[[Check], StretchTimes]  # runs the plan once: seconds of each stretch


class Engine(Protocol):
    """Runs programs on one device. `timed` is False if times are meaningless (the simulator).

    Inherit from it: its defaults suit an engine on the host.
    """

    device: DeviceId
    target: Target
    stream: Any
    timed: bool
    name: str = ""  # name of the GPU
    fill: Fill | None = None  # a faster way to generate large graphs, if available
    ranks: tuple[RankOf, ...] = ()  # the processes that share a matrix, if there are several

    def activate(self) -> None:
        """Make its device current in this process."""

    def facts(self, t: float) -> Device | None:
        """Return the facts of its GPU as an event at `t`; None for a CPU."""
        return None

    def free_bytes(self) -> int | None:
        """Return the free device memory in bytes; None if programs use host memory."""
        return None

    def synchronize(self) -> None:
        """Wait until everything launched has finished."""

    def build(self, kernel: Kernel, shape: Shape) -> Program:
        """Build the kernel's program for its device. Raises Refused."""
        return kernel.build(shape, self.target)

    def compile(self, program: Program, plan: Sequence[Step], buffers: Buffers) -> None:
        """Launch one step of each op."""
        for step in one_of_each_op(plan):
            program.launch(step, buffers, self.stream)

    def stretches(self, plan: Sequence[Step]) -> list[PhaseStretch]:
        """Return the stretches of the plan that the instrumented repetition times."""
        return stretches(plan)

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, report: Report) -> None:
        """Run the plan once, untimed, with progress reports."""

    def timed_repetition(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> TimedRun:
        """Prepare the plan for timing as a whole, in that launch mode."""
        ...

    def instrumented_repetition(self, program: Program, parts: Sequence[PhaseStretch], buffers: Buffers, mode: str) -> PhaseRun:
        """Prepare the plan for timing each stretch, on one stream."""
        ...


class HostEngine(Engine):
    """Runs one step at a time on the calling thread: CPU kernels, and CUDA kernels in the simulator."""

    def __init__(self, target: Target, stream: Any = None):
        self.device = DeviceId(target.backend)
        self.target = target
        self.stream = stream
        self.timed = target.backend == "cpu"

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, report: Report) -> None:
        for index, step in enumerate(plan):
            check()
            program.launch(step, buffers, self.stream)
            report(index + 1)

    def timed_repetition(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> TimedRun:
        timed = self.instrumented_repetition(program, [PhaseStretch("all", tuple(plan))], buffers, mode)
        return lambda check: timed(check).total

    def instrumented_repetition(self, program: Program, parts: Sequence[PhaseStretch], buffers: Buffers, mode: str) -> PhaseRun:
        def run(check: Check) -> StretchTimes:
            marks = [(time.perf_counter(), time.process_time())]
            for part in parts:
                for step in part.steps:
                    check()
                    program.launch(step, buffers, self.stream)
                marks.append((time.perf_counter(), time.process_time()))
            passed, worked = zip(*((late[0] - early[0], late[1] - early[1]) for early, late in pairwise(marks)), strict=True)
            return StretchTimes([*passed], cpu=[*worked])

        return run


def one_of_each_op(plan: Sequence[Step]) -> Iterable[Step]:
    """Return the first step of every op: a launch of each compiles everything."""
    first: dict[str, Step] = {}
    for step in plan:
        first.setdefault(step.op, step)
    return first.values()
