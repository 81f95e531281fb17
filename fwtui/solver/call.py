"""The options of one call of solve, and the clock of its stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, suggest
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO
from fwtui_kernels.plan import Kernel


class Clock:
    """Seconds of wall-clock time by stage, without gaps; compiling or loading code during launches is "compile"."""

    compiling = 0.0  # seconds that launches compiled since the last lap of any clock

    def __init__(self, ago: float = 0.0, now: Callable[[], float] = time.perf_counter):
        """Start with that many seconds already elapsed."""
        self._now = now
        self.seconds: dict[str, float] = {}
        self._last = now() - ago
        Clock.compiling = 0.0  # discards the time of earlier calls

    def lap(self, stage: str) -> None:
        """Assign the time since the last call to that stage, except for compiling."""
        now = self._now()
        self._add(stage, now - self._last - Clock.compiling)
        if Clock.compiling:
            self._add("compile", Clock.compiling)
        self._last, Clock.compiling = now, 0.0

    def take(self, stage: str, seconds: float) -> None:
        """Assign that many seconds of another clock to that stage; the rest since the last call is "prepare"."""
        self._add(stage, seconds)
        self._last += seconds
        self.lap("prepare")

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the stages that another clock measured since the last call of this one."""
        for stage, spent in seconds.items():
            self._add(stage, spent)
        self._last, Clock.compiling = self._now(), 0.0

    def _add(self, stage: str, seconds: float) -> None:
        # a device's clock and this one may differ slightly
        self.seconds[stage] = self.seconds.get(stage, 0.0) + max(0.0, seconds)


@dataclass(frozen=True)
class Call:
    """The options of one call of solve, its clock, and a function that receives the share of the work that is done."""

    dtype: str | None = None
    predecessors: bool = False
    kernel: str = AUTO.id
    device: str | int | None = None
    keep_on_device: bool = False  # leave the distances of a graph in host memory on the GPU
    report_progress: Callable[[float], None] = lambda share: None
    clock: Clock = field(default_factory=Clock)

    @cached_property
    def named(self) -> Kernel | None:
        """The chosen kernel; None for auto. Raises Refused for an unknown id."""
        name = str(self.kernel)
        if name == AUTO.id:
            return None
        kernel = registry().get(name)
        if kernel is None:
            raise Refused(f"there is no kernel {quoted(name)}; {suggest(name, (AUTO.id, *registry()))}")
        return kernel

    @property
    def is_free(self) -> bool:
        """Return whether the call uses no option that only kernels support."""
        return self.named is self.device is None and not self.keep_on_device
