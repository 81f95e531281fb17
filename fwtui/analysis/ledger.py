"""The speed-of-light ledger: what each phase would take at the device's limits, what it took, and what is in the way.

Expected times follow the roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009): the slowest of moving the
phase's bytes at peak bandwidth and doing its relaxations at the measured limit. Bytes are those of the kernel's own model.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple

from fwtui.analysis.data_sheet import shared_bytes_per_second
from fwtui.analysis.limits import limit_of
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import PhaseTime, Run
from kernels.plan import ITEMSIZE

NEAR = 0.6  # of a roof: from here on it is what limits
LAUNCH_SECONDS = 3e-6  # that the start of an empty kernel takes on current GPUs, about
LAUNCH_SHARE = 0.5  # of a phase's time: from here on launches are what limits
OPERANDS = 2  # read from shared memory for a relaxation whose result stays in a register


class Roofs(NamedTuple):
    """What a run's device can do at most; None where it is not known."""

    bytes_per_second: float | None = None  # device memory; of a CPU: a measured copy
    relaxations_per_second: float | None = None  # measured, for the run's number type and sign
    form: str = ""  # the instructions of that measurement
    shared_bytes_per_second: float | None = None
    multiprocessors: int | None = None


class Line(NamedTuple):
    """One phase, or all of them together; seconds are None where a roof is not known."""

    key: str
    title: str
    launches: int
    relaxations: int
    device_bytes: int
    seconds: float  # measured, in the phase pass
    by_bytes: float | None
    by_work: float | None
    by_shared: float | None  # two operands of each relaxation from shared memory, where the phase uses that
    limiter: str

    @property
    def expected(self) -> float | None:
        """Seconds at the lower of the known roofs."""
        return max((t for t in (self.by_bytes, self.by_work) if t is not None), default=None)

    @property
    def share(self) -> float | None:
        """How near to that it came; above 1 where caches gave what memory did not have to."""
        share = self.expected / self.seconds if self.expected is not None and self.seconds > 0 else inf
        return share if isfinite(share) else None


def roofs(model: Model, run: Run) -> Roofs:
    """The roofs of the device that the run ran on; none for the simulator."""
    if run.simulated:
        return Roofs()
    limit = limit_of(model, run)
    rate, form = (limit.relaxations_per_second, limit.form.title) if limit is not None else (None, "")
    if run.backend != "cuda":
        told = model.limits_of(run.backend, run.gpu)
        return Roofs(told and told.copy_bytes_per_second, rate, form)
    gpu = model.gpu_of(run)
    return Roofs(gpu and gpu.peak_bytes_per_second, rate, form, shared_bytes_per_second(gpu), gpu and gpu.multiprocessors)


def ledger(model: Model, run: Run) -> tuple[Line, ...]:
    """A line for each phase of the phase pass, and where there are several one for all; empty before there was one."""
    known = roofs(model, run)
    lines = [_line(run, known, phase) for phase in run.phases]
    if len(lines) > 1:
        amounts = (sum(getattr(phase, name) for phase in run.phases) for name in PhaseTime._fields[2:])
        total = _line(run, known, PhaseTime("", "all phases", *amounts))
        slowest = max(lines, key=lambda line: line.seconds)
        share = units.percent(slowest.seconds / total.seconds if total.seconds else None)
        lines.append(total._replace(limiter=f"mostly {slowest.title}: {share}"))
    return tuple(lines)


def _line(run: Run, known: Roofs, phase: PhaseTime) -> Line:
    key, title, seconds, _, launches, relaxations, moved = phase
    by_bytes, by_work = _over(moved, known.bytes_per_second), _over(relaxations, known.relaxations_per_second)
    shares = any(o.shared_bytes for o in run.occupancies if key in (o.op, "") or len(run.occupancies) == 1)
    fetched = OPERANDS * ITEMSIZE.get(run.experiment.dtype, 4) * relaxations
    by_shared = _over(fetched, known.shared_bytes_per_second) if shares else None
    line = Line(key, title, launches, relaxations, moved, seconds, by_bytes, by_work, by_shared, "")
    return line._replace(limiter=_limiter(run, known, line))


def _over(amount: float, rate: float | None) -> float | None:
    """Seconds; None without an amount or a rate, or where a made-up file has one that no time can be had from."""
    seconds = amount / rate if amount and rate else inf
    return seconds if isfinite(seconds) else None


def tiles_per_launch(run: Run, line: Line) -> float | None:
    """How many tiles a launch works on, from the relaxations that a tile has in a round; None for a kernel without tiles."""
    tile = run.experiment.tile
    return line.relaxations / line.launches / tile**3 if tile > 1 and line.launches and line.relaxations else None


def _limiter(run: Run, known: Roofs, line: Line) -> str:
    """What keeps the phase from being faster, in a few words; said to be unknown where the roofs are."""
    if line.seconds <= 0:
        return "too short to say"
    if line.by_bytes is not None and line.by_bytes > line.seconds:
        return "caches: they gave more bytes than memory can"
    cuda = run.backend == "cuda"
    if cuda and line.launches and line.launches * LAUNCH_SECONDS >= LAUNCH_SHARE * line.seconds:
        return f"launches: {line.launches:,} of {units.duration(line.seconds / line.launches)}"
    roofs = {"device memory" if cuda else "memory": line.by_bytes, "instructions": line.by_work, "shared memory": line.by_shared}
    reached = [(t / line.seconds, name) for name, t in roofs.items() if t is not None and t >= NEAR * line.seconds]
    if reached:
        return max(reached)[1]
    tiles = tiles_per_launch(run, line)
    if cuda and tiles is not None and known.multiprocessors and tiles < known.multiprocessors:
        count = f"{tiles:.0f} tile" + ("" if round(tiles) == 1 else "s")
        return f"too little at once: {count} for {known.multiprocessors} SM"
    if line.by_bytes is None and line.by_work is None:
        return "unknown: no roof is measured"
    if line.by_work is None:
        return "unknown: not memory; limit not measured"
    return "latency: no roof is near" if cuda else "neither: no roof is near"


def formula(known: Roofs, line: Line) -> str:
    """How the expected time comes about, with its numbers: max(34.1 GB / 4.81 TB/s, ...) = 7.08 ms."""
    parts = []
    if line.by_bytes is not None:
        parts.append((f"{units.scaled(line.device_bytes, 'B')} / {units.bandwidth(known.bytes_per_second)}", line.by_bytes))
    if line.by_work is not None:
        parts.append((f"{units.scaled(line.relaxations, 'relax')} / {units.rate(known.relaxations_per_second)}", line.by_work))
    if not parts:
        return "no roof is known for it"
    if len(parts) == 1:
        return f"{parts[0][0]} = {units.duration(parts[0][1])}"
    return f"max({', '.join(words for words, _ in parts)}) = max({', '.join(units.duration(t) for _, t in parts)})"
