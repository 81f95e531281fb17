"""Runs that several ranks share: the time of each rank, how even their work is, the panel, and the gain over one device."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import fmean
from typing import NamedTuple

from fwtui.analysis.disturbances import disturbances
from fwtui.common import units
from fwtui.stream.events import RankOf
from fwtui.stream.model import Model
from fwtui.stream.run import BROADCAST, WAIT, PhaseTime, Run
from fwtui_kernels import registry

TOO_SMALL = 0.5  # of a rank's time in the exchange: more ranks then cost more than they do
UNEVEN = 1.1  # the most work of a rank over the mean, from which it counts
ALL_HIDDEN = 0.02  # of the busiest rank's work
PCIE_MOST = 128e9  # bytes per second that PCIe 6 carries at most: what carries more is NVLink
LATE = "the owner of the next row makes it late"
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class OfRank(NamedTuple):
    """One rank's phases in the phase pass."""

    rank: RankOf
    phases: tuple[PhaseTime, ...]

    @property
    def name(self) -> str:
        return str(self.rank)

    @property
    def seconds(self) -> float:
        return sum(phase.seconds for phase in self.phases)

    @property
    def work(self) -> float:
        """Seconds in which it computes."""
        return sum(phase.seconds for phase in self.phases if phase.key not in (BROADCAST, WAIT))

    def share(self, key: str) -> float:
        """Of its time."""
        return sum(phase.share for phase in self.phases if phase.key == key)


class Gain(NamedTuple):
    """A run's speed-up over the fastest right run on one device."""

    times: float
    devices: int
    one: str  # such a device
    reference: Run

    @property
    def efficiency(self) -> float | None:
        """Of what that many devices could gain; None if the processes share the cores of one machine."""
        return self.times / self.devices if self.devices > 1 else None

    @property
    def words(self) -> str:
        """What the number counts: times one GPU (97 % of two)."""
        share = f" ({100 * self.efficiency:.0f} % of {number_word(self.devices)})" if self.efficiency is not None else ""
        return f"times one {self.one}{share}"


class Carried(NamedTuple):
    """What a broadcast carries, by the clock of the phase pass."""

    bytes_per_second: float  # to each rank that receives it
    panel: float  # bytes
    seconds: float  # of one broadcast
    over: str

    @property
    def rate(self) -> str:
        """298 GB/s over NVLink"""
        return f"{units.bandwidth(self.bytes_per_second)} {self.over}"

    def __str__(self) -> str:
        return f"{self.rate}, {units.memory(self.panel)} in {units.duration(self.seconds)} each"


def number_word(number: int) -> str:
    """A small number as a word."""
    return _COUNTS[number] if 0 <= number < len(_COUNTS) else f"{number:,}"


def whole_percent(share: float) -> str:
    """In whole percents, but for a share of less than one."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else units.percent(share)


def of_ranks(run: Run) -> tuple[OfRank, ...]:
    """Every rank whose phases were timed, in order; empty for a run on one device."""
    if len(run.ranks) < 2:
        return ()
    ranks = {rank.rank: rank for rank in run.ranks}
    phases = {one.rank: one for one in run.rank_phases if one.rank in ranks}
    return tuple(OfRank(ranks[number], run.timed(phases[number].parts)) for number in sorted(phases))


def imbalance(ranks: Sequence[OfRank]) -> float | None:
    """The most work of a rank over the mean; None if none has any."""
    work = [one.work for one in ranks]
    ratio = max(work) / fmean(work) if any(work) else 1.0
    return ratio if any(work) and isfinite(ratio) else None


def gain(model: Model, run: Run) -> Gain | None:
    """What several devices gain: over the fastest right run of the same graph and number type on one, with any kernel."""
    if len(run.ranks) < 2 or not run.counts:
        return None
    names = {rank.name for rank in run.ranks if rank.name}
    alone = model.once(_fastest_alone).get(_work(run), {})
    # where a name is not known, it may be the same kind of GPU
    reference = min((one for name, one in alone.items() if not (name and names) or name in names), key=_seconds, default=None)
    times = _seconds(reference) / _seconds(run) if reference is not None else 0.0
    if reference is None or not isfinite(times):
        return None
    one = "GPU" if run.backend == "cuda" else "machine" if run.device_count > 1 else "process"
    return Gain(times, run.device_count, one, reference)


def how_to_compare(run: Run) -> str:
    """Which run would tell such a speed-up; empty for a run that has none."""
    if len(run.ranks) < 2 or not run.counts:
        return ""
    alone = [k for k in registry().values() if k.backend == run.backend and not k.ranked and run.experiment.dtype in k.dtypes]
    best = max(alone, key=lambda kernel: kernel.preference, default=None)
    one = "one GPU" if run.backend == "cuda" else "one process"
    return f"no run of this graph on {one} is here; run {best.id} on {one} for a speed-up" if best is not None else ""


def carried(run: Run) -> Carried | None:
    """What the broadcasts carry; None if that is not known."""
    broadcast = next((phase for phase in run.phases if phase.key == BROADCAST), None)
    others = len(run.ranks) - 1
    if broadcast is None or others < 1 or not (broadcast.link_bytes and broadcast.launches and broadcast.seconds):
        return None
    panel, seconds = broadcast.link_bytes / others / broadcast.launches, broadcast.seconds / broadcast.launches
    rate = panel / seconds if seconds else 0.0
    return Carried(rate, panel, seconds, _over(run, rate)) if rate and isfinite(rate) else None


def waits(model: Model, run: Run) -> str:
    """What the exchange of panels costs, and why; empty if it is not known, or costs nothing."""
    ranks = of_ranks(run)
    waiting, sending = (fmean(one.share(key) for one in ranks) if ranks else 0.0 for key in (WAIT, BROADCAST))
    both = waiting + sending
    if both >= TOO_SMALL:
        cost = f"waiting for panels and sending them take {whole_percent(both)} of a rank's time"
        quiet = not disturbances(run, model.evidence(run))
        return f"the graph is too small for that many ranks: {cost}" if quiet else cost
    if not waiting:
        return ""
    return f"waiting for the panel takes {whole_percent(waiting)} of a rank's time: {_uneven(run, ranks) or LATE}"


def hidden(run: Run) -> str:
    """How much longer a clean pass takes than the work in it; empty if it is not known."""
    ranks = of_ranks(run)
    most = max((one.work for one in ranks), default=0.0)
    if not run.seconds or not most:
        return ""
    longer = run.seconds / most - 1
    if not isfinite(longer):
        return ""
    if longer < ALL_HIDDEN:
        return "in the clean passes look-ahead hides all of it behind work"
    return f"clean passes take {whole_percent(longer)} longer than the busiest rank works"


def _uneven(run: Run, per_rank: Sequence[OfRank]) -> str:
    """Who has more work than others, and whether its rows are the reason; empty if the work is even."""
    ratio = imbalance(per_rank)
    if ratio is None or ratio < UNEVEN:
        return ""
    busiest = max(per_rank, key=lambda one: one.work)
    side, ranks = run.padded // max(run.experiment.tile, 1), len(run.ranks)
    rows = len(range(busiest.rank.rank, side, ranks))
    has = f"has {rows} of {side} rows of tiles" if rows * ranks > side else "is busy longest"
    return f"{busiest.name} {has}, {units.digits(ratio)} times the mean work"


def _over(run: Run, rate: float) -> str:
    if len({rank.host for rank in run.ranks}) > 1:
        return "between machines"
    if run.backend != "cuda":
        return "between processes"
    return "over NVLink" if rate > PCIE_MOST else "between GPUs"


def _seconds(run: Run) -> float:
    return run.seconds or 0.0


def _work(run: Run) -> tuple[object, ...]:
    """A key of what it computes, and with what kind of device."""
    return run.backend, run.n, run.experiment.dtype, run.experiment.graph


def _fastest_alone(model: Model) -> dict[tuple[object, ...], dict[str, Run]]:
    """The fastest right run on one device, by its work and the name of its GPU, which is empty if it is not known."""
    found: dict[tuple[object, ...], dict[str, Run]] = {}
    for run in model.runs.values():
        if len(run.ranks) < 2 and run.counts:
            gpu = model.gpu_of(run) if run.backend == "cuda" else None
            fastest, name = found.setdefault(_work(run), {}), gpu.name if gpu is not None else ""
            if name not in fastest or _seconds(run) < _seconds(fastest[name]):
                fastest.pop(name, None)  # they stay in the order of the runs: the first of equally fast ones counts
                fastest[name] = run
    return found
