"""Tuning results of each kernel on this device, by size and data type: the table for auto."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

import msgspec
from msgspec import Struct

from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, changed
from fwtui.machine import device_cache
from fwtui.stream import events
from fwtui.stream.run import Run, started

KIND = "tuned-1"
REACH = 4.0  # a size represents others down to this ratio; the largest represents all above it


class TuningResult(Struct, frozen=True, kw_only=True):
    """A configuration at one size; `seconds` is None if it could not run or was not verified."""

    n: int
    dtype: str
    nonnegative: bool
    kernel: str
    tile: int = 0
    options: dict[str, int] = {}
    launch: str = ""
    code: str = ""  # fingerprint of a user's kernel: a changed file is another kernel
    seconds: float | None = None
    note: str = ""

    @property
    def config(self) -> Config:
        return config_of(self)

    @property
    def run(self) -> Run:
        """Return the result as a run, for tables and estimates."""
        experiment = self.config.applied(Experiment(n=self.n, dtype=self.dtype))
        began = events.RunStarted(t=0, run=0, experiment=experiment, title="", backend="", phases=())
        return started(began).after(events.RunDone(t=0, run=0, outcome="done", median=self.seconds))


class Config(Struct, frozen=True, kw_only=True):
    """The choices of a kernel."""

    kernel: str
    tile: int = 0
    options: tuple[tuple[str, int], ...] = ()
    launch: str = ""
    code: str = ""

    def applied(self, experiment: Experiment) -> Experiment:
        fields = {"kernel": self.kernel, "code": self.code, "tile": self.tile, "launch": self.launch}
        return changed(experiment, **fields, options=dict(self.options))

    @property
    def label(self) -> str:
        """A label such as: tile 64, order 1, graph."""
        parts = [f"tile {self.tile}"] * bool(self.tile) + [f"{name} {value}" for name, value in self.options]
        return ", ".join([*parts, *([self.launch] if self.launch not in ("", "eager") else [])]) or "-"


def config_of(source: Experiment | TuningResult) -> Config:
    """Return the choices of a settled experiment or a tuning result."""
    options = tuple(sorted(source.options.items()))
    return Config(kernel=source.kernel, tile=source.tile, options=options, launch=source.launch, code=source.code)


def load(device: DeviceId) -> list[TuningResult]:
    """Return all results of this device."""
    return device_cache.read(KIND, device, msgspec.json.Decoder(list[TuningResult]).decode) or []


def save(results: Iterable[TuningResult], device: DeviceId) -> bool:
    """Store the results; return False if that failed."""
    return device_cache.write(KIND, device, msgspec.json.encode(list(results)))


def fastest(results: Iterable[TuningResult], n: int, dtype: str, nonnegative: bool) -> Sequence[TuningResult]:
    """Return the results for this size, fastest first: from the nearest measured size, weights of the same sign preferred."""
    timed = [t for t in results if t.dtype == dtype and t.seconds]
    timed = [t for t in timed if t.nonnegative == nonnegative] or timed
    most = max((t.n for t in timed), default=0)
    near = [t for t in timed if n > most or max(t.n, n) <= REACH * min(t.n, n)]
    best = min({t.n for t in near}, key=lambda size: abs(log2(size / n)), default=0)
    return sorted((t for t in near if t.n == best), key=lambda t: t.seconds or 0.0)
