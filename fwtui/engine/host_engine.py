"""Steps that are finished when their launch returns: CPU kernels, and CUDA kernels in Numba's simulator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fwtui.engine.engine import Check, Engine, Pass, PhasePass, Stretch, Tell
from kernels.plan import Buffers, Program, Step, Target


class HostEngine(Engine):
    """A step at a time on the calling thread, timed by the monotonic clock."""

    def __init__(self, target: Target, stream: Any = None):
        self.target = target
        self.stream = stream
        self.timed = target.backend == "cpu"

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
