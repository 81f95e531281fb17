"""Steps that are finished when their launch returns: CPU kernels, and CUDA kernels in Numba's simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from fwtui.engine.engine import Check, Pass, Stretch, Tell
from kernels.plan import Buffers, Program, Step, Target


class HostEngine:
    """A step at a time on the calling thread, timed by the monotonic clock."""

    def __init__(self, target: Target, stream: Any = None):
        self.target = target
        self.stream = stream
        self.timed = target.backend == "cpu"
        self.fill = None

    def activate(self) -> None:
        pass  # there is one host

    def free_bytes(self) -> int | None:
        return None

    def synchronize(self) -> None:
        pass  # a launch returns when it is done

    def warm_up(self, program: Program, plan: Sequence[Step], buffers: Buffers, check: Check, tell: Tell) -> None:
        for index, step in enumerate(plan):
            check()
            program.launch(step, buffers, self.stream)
            tell(index + 1)

    def clean_pass(self, program: Program, plan: Sequence[Step], buffers: Buffers, mode: str) -> Pass:
        def run(check: Check) -> float:
            begin = time.perf_counter()
            for step in plan:
                check()
                program.launch(step, buffers, self.stream)
            return time.perf_counter() - begin

        return run

    def phase_pass(
        self, program: Program, parts: Sequence[Stretch], buffers: Buffers, mode: str
    ) -> Callable[[Check], list[float]]:
        def run(check: Check) -> list[float]:
            marks = [time.perf_counter()]
            for part in parts:
                for step in part.steps:
                    check()
                    program.launch(step, buffers, self.stream)
                marks.append(time.perf_counter())
            return [late - early for early, late in pairwise(marks)]

        return run
