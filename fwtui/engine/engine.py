"""What runs and times a plan's steps: the protocol of engines, the host's engine, and stretches of a plan that share a clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Protocol

from fwtui.experiment.device import DeviceId
from fwtui.experiment.generate import Fill
from kernels.plan import Buffers, Cost, Program, Step, Target


class Cancelled(Exception):
    """The user wants the run to end; raised between two steps."""


Check = Callable[[], None]  # raises Cancelled
Tell = Callable[[int], None]  # takes the number of steps that are certainly finished


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive steps of one phase: they share one pair of clock readings."""

    phase: str
    steps: tuple[Step, ...]

    @property
    def cost(self) -> Cost:
        return Cost.total(step.cost for step in self.steps)


def stretches(plan: Sequence[Step]) -> list[Stretch]:
    """The plan in serial order, cut where the phase changes."""
    return [Stretch(phase, tuple(steps)) for phase, steps in groupby(plan, key=lambda s: s.phase)]


# the whole plan once: seconds from the first step's start to the last one's end; raises Cancelled where that is possible
Pass = Callable[[Check], float]
PhasePass = Callable[[Check], list[float]]  # the same by stretch


class Engine(Protocol):
    """Where programs run. `timed` is False where a time would mean nothing (the simulator).

    Inherit from it: what has a value or a body here is right for an engine on the host.
    """

    device: DeviceId
    target: Target
    stream: Any
    timed: bool
    name: str = ""  # of its GPU
    fill: Fill | None = None  # a faster way to generate large graphs, if there is one

    def activate(self) -> None:
        """Make its device the one that this process works on."""

    def free_bytes(self) -> int | None:
        """Free device memory; None where programs live in the host's memory."""
        return None

    def synchronize(self) -> None:
        """Everything that was launched has finished."""

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, tell: Tell) -> None:
        """Run the plan once, untimed, telling how far it is."""

    def clean_pass(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> Pass:
        """The plan with a clock around all of it, launched as `mode` says."""
        ...

    def phase_pass(self, program: Program, parts: Sequence[Stretch], buffers: Buffers, mode: str) -> PhasePass:
        """The plan on one lane with a clock around each stretch; seconds per stretch."""
        ...


class HostEngine(Engine):
    """A step at a time on the calling thread: CPU kernels, and CUDA kernels in Numba's simulator, done when a launch returns."""

    def __init__(self, target: Target, stream: Any = None):
        self.device = DeviceId(target.backend)
        self.target = target
        self.stream = stream
        self.timed = target.backend == "cpu"

    @classmethod
    def of(cls, backend: str) -> HostEngine:
        """That of the CPU or of the simulator."""
        if backend == "cpu":
            return cls(Target(backend))
        from kernels.numba_door.device import cuda

        return cls(Target(backend), cuda.stream())

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, tell: Tell) -> None:
        for index, step in enumerate(plan):
            check()
            program.launch(step, buffers, self.stream)
            tell(index + 1)

    def clean_pass(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> Pass:
        timed = self.phase_pass(program, [Stretch("all", tuple(plan))], buffers, mode)
        return lambda check: timed(check)[0]

    def phase_pass(self, program: Program, parts: Sequence[Stretch], buffers: Buffers, mode: str) -> PhasePass:
        def run(check: Check) -> list[float]:
            marks = [time.perf_counter()]
            for part in parts:
                for step in part.steps:
                    check()
                    program.launch(step, buffers, self.stream)
                marks.append(time.perf_counter())
            return [late - early for early, late in pairwise(marks)]

        return run


def one_of_each_op(plan: Sequence[Step]) -> Iterable[Step]:
    """The first step of every op: launching them compiles everything."""
    first: dict[str, Step] = {}
    for step in plan:
        first.setdefault(step.op, step)
    return first.values()
