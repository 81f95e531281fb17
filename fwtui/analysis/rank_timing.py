"""Timing of distributed runs: per-rank times, load imbalance, broadcast bandwidth, and the speedup over one device."""

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

MAX_EXCHANGE_SHARE = 0.5  # share of a rank's time in the panel exchange above which the graph is too small for the ranks
UNEVEN = 1.1  # maximum / mean work of a rank above which the load counts as imbalanced
MAX_EXPOSED_SHARE = 0.02  # exchange time / work of the busiest rank up to which it counts as fully overlapped
MAX_PCIE_BANDWIDTH = 128e9  # bytes per second of PCIe 6; a faster link is NVLink
MIN_WAITING = 0.05  # share of a rank's time
LATE = "the owner rank produces the next panel too late"
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class RankTime(NamedTuple):
    """The per-phase times of one rank in the instrumented repetition."""

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
        """Seconds without broadcasts and waiting."""
        return sum(phase.seconds for phase in self.phases if phase.key not in (BROADCAST, WAIT))

    def share(self, key: str) -> float:
        """Return the share of the phase with that key in the rank's time."""
        return sum(phase.share for phase in self.phases if phase.key == key)


class Gain(NamedTuple):
    """The speedup of a distributed run over the fastest correct run on one device."""

    times: float
    devices: int
    one: str  # kind of device: GPU, machine or process
    reference: Run

    @property
    def efficiency(self) -> float | None:
        """Speedup / number of devices; None if the processes share the cores of one machine."""
        return self.times / self.devices if self.devices > 1 else None

    @property
    def text(self) -> str:
        """The speedup and its efficiency: 1.94x over one GPU (97 % efficiency)."""
        share = f" ({100 * self.efficiency:.0f} % efficiency)" if self.efficiency is not None else ""
        return f"{units.gain(self.times)} over one {self.one}{share}"


class LinkBandwidth(NamedTuple):
    """The bandwidth of a broadcast, from the instrumented repetition."""

    bytes_per_second: float  # to each receiving rank
    panel: float  # bytes
    seconds: float  # time of one broadcast
    over: str

    @property
    def rate(self) -> str:
        """The bandwidth as text: 298 GB/s over NVLink."""
        return f"{units.bandwidth(self.bytes_per_second)} {self.over}"

    def __str__(self) -> str:
        return f"{self.rate}, {units.memory(self.panel)} in {units.duration(self.seconds)} each"


def number_word(number: int) -> str:
    """Write a small number as a word."""
    return _COUNTS[number] if 0 <= number < len(_COUNTS) else f"{number:,}"


def whole_percent(share: float) -> str:
    """Format a share in whole percent; below 1 % with digits."""
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else units.percent(share)


def rank_times(run: Run) -> tuple[RankTime, ...]:
    """Return the times of every rank, in order; empty for a run on one device."""
    if len(run.ranks) < 2:
        return ()
    ranks = {rank.rank: rank for rank in run.ranks}
    phases = {one.rank: one for one in run.rank_phases if one.rank in ranks}
    return tuple(RankTime(ranks[number], run.timed(phases[number].parts)) for number in sorted(phases))


def imbalance(ranks: Sequence[RankTime]) -> float | None:
    """Return the maximum / mean work of the ranks; None if no rank worked."""
    work = [one.work for one in ranks]
    ratio = max(work) / fmean(work) if any(work) else 1.0
    return ratio if any(work) and isfinite(ratio) else None


def gain(model: Model, run: Run) -> Gain | None:
    """Return the speedup over the fastest correct run on one device with the same graph and data type, with any kernel."""
    if len(run.ranks) < 2 or not run.counts:
        return None
    names = {rank.name for rank in run.ranks if rank.name}
    baselines = model.once(_fastest_on_one_device).get(_work(run), {})
    # a GPU without a name may be of the same kind
    reference = min((one for name, one in baselines.items() if not (name and names) or name in names), key=_seconds, default=None)
    times = _seconds(reference) / _seconds(run) if reference is not None else 0.0
    if reference is None or not isfinite(times):
        return None
    one = "GPU" if run.backend == "cuda" else "machine" if run.device_count > 1 else "process"
    return Gain(times, run.device_count, one, reference)


def link_bandwidth(run: Run) -> LinkBandwidth | None:
    """Return the bandwidth of the broadcasts; None if it was not measured."""
    broadcast = next((phase for phase in run.phases if phase.key == BROADCAST), None)
    others = len(run.ranks) - 1
    if broadcast is None or others < 1 or not (broadcast.link_bytes and broadcast.launches and broadcast.seconds):
        return None
    panel, seconds = broadcast.link_bytes / others / broadcast.launches, broadcast.seconds / broadcast.launches
    rate = panel / seconds if seconds else 0.0
    return LinkBandwidth(rate, panel, seconds, _over(run, rate)) if rate and isfinite(rate) else None


def describe_waiting(model: Model, run: Run) -> str:
    """Describe the time that the panel exchange costs, and why; empty if it was not measured or is short."""
    ranks = rank_times(run)
    waiting, sending = (fmean(one.share(key) for one in ranks) if ranks else 0.0 for key in (WAIT, BROADCAST))
    both = waiting + sending
    if both >= MAX_EXCHANGE_SHARE:
        cost = f"waiting for panels and broadcasting them take {whole_percent(both)} of a rank's time"
        quiet = not disturbances(run, model.evidence(run))
        return f"the graph is too small for that many ranks: {cost}" if quiet else cost
    if waiting < MIN_WAITING:
        return ""
    return f"waiting for the panel takes {whole_percent(waiting)} of a rank's time: {_uneven(run, ranks) or LATE}"


def overlap_text(run: Run) -> str:
    """Describe how much of the exchange overlaps with work; empty if it was not measured."""
    ranks = rank_times(run)
    most = max((one.work for one in ranks), default=0.0)
    if not run.seconds or not most:
        return ""
    longer = run.seconds / most - 1
    if not isfinite(longer):
        return ""
    if longer < MAX_EXPOSED_SHARE:
        return "fully overlapped with work in the timed repetitions (look-ahead)"
    return f"timed repetitions take {whole_percent(longer)} longer than the work of the busiest rank"


def _uneven(run: Run, per_rank: Sequence[RankTime]) -> str:
    """Name the rank with the most work, and its rows if they are the reason; empty if the load is balanced."""
    ratio = imbalance(per_rank)
    if ratio is None or ratio < UNEVEN:
        return ""
    busiest = max(per_rank, key=lambda one: one.work)
    side, ranks = run.padded // max(run.experiment.tile, 1), len(run.ranks)
    rows = len(range(busiest.rank.rank, side, ranks))
    has = f"has {rows} of {side} rows of tiles" if rows * ranks > side else "is busy longest"
    return f"{busiest.name} {has}, {units.digits(ratio)}x the mean work"


def _over(run: Run, rate: float) -> str:
    if len({rank.host for rank in run.ranks}) > 1:
        return "between machines"
    if run.backend != "cuda":
        return "between processes"
    return "over NVLink" if rate > MAX_PCIE_BANDWIDTH else "between GPUs"


def _seconds(run: Run) -> float:
    return run.seconds or 0.0


def _work(run: Run) -> tuple[object, ...]:
    """Return a key of the graph, the data type and the kind of device."""
    return run.backend, run.n, run.experiment.dtype, run.experiment.graph


def _fastest_on_one_device(model: Model) -> dict[tuple[object, ...], dict[str, Run]]:
    """Map work and GPU name (empty if unknown) to the fastest correct run on one device."""
    found: dict[tuple[object, ...], dict[str, Run]] = {}
    for run in model.runs.values():
        if len(run.ranks) < 2 and run.counts:
            gpu = model.gpu_of(run) if run.backend == "cuda" else None
            fastest, name = found.setdefault(_work(run), {}), gpu.name if gpu is not None else ""
            if name not in fastest or _seconds(run) < _seconds(fastest[name]):
                fastest.pop(name, None)  # insertion order decides between equally fast runs: the first one counts
                fastest[name] = run
    return found
