"""Bottlenecks that measurements name: PC samples, hardware counters, telemetry."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

from fwtui.analysis.rank_timing import whole_percent
from fwtui.analysis.warps import (
    ISSUE,
    MEMORY_LATENCY,
    SCHEDULERS,
    SELECTED,
    WarpReason,
    fewest_instructions,
    loop_facts,
    main_samples,
    shares,
    warp_reason,
)
from fwtui.common import units
from fwtui.stream.events import WarpSamples
from fwtui.stream.model import Evidence
from fwtui.stream.quantity import GPM
from fwtui.stream.run import Run, of_phase

SATURATED_SHARE = 0.8  # a unit that is busy for this share of the time is saturated, as in Nsight Compute's rules
MIN_ISSUED_SHARE = 0.7  # share of the issue slots that the inner loop fills; instructions outside it fill further ones
BOTTLENECK_SHARE = 0.6  # smallest share of a roof, or of busy time, that makes a unit the bottleneck
MAX_UNIT_DIFFERENCE = 0.1  # two units whose busy shares differ by at most this are the bottleneck together
MIN_INTEGER_SHARE = 0.93  # GPM reads higher than the profiler: its 90 % was 59 % there (naive, int16, H200)
MAX_IDLE_SHARE = 0.1  # if DRAM is busy for a smaller share, caches serve nearly every request
MIN_LATENCY_HIDING = 0.3  # achieved occupancy below which few warps are left to hide latency
MAX_FILLED = 1.05  # share of the issue slots; a larger one shows that fewer warps were resident
MAX_SLOT_ERROR = 1.25  # ratio of the issue slots that a rate needs to those that PC samples show filled
LATENCY = "latency"
UNKNOWN = "unknown"  # bottleneck without proof
OWNER = "owner rank"  # bottleneck of waiting for a panel
COUNTERS = "counters"  # origin of numbers


class Bottleneck(NamedTuple):
    """The bottleneck of a phase, and the evidence for it."""

    what: str  # device memory, instruction issue, ...; "unknown" without proof
    because: str  # the evidence, with its numbers
    busy: str = ""  # throughput of that unit, reported with PC samples: both 95 % busy; DRAM throughput 45 % of peak
    place: str = ""  # source line with most of the PC samples
    source: str = ""  # origin of the numbers: counters, GPM or the kernel's cost model
    more: str = ""  # further evidence, from another source
    computes: bool = False  # PC samples show that the schedulers nearly always have an eligible warp

    def __str__(self) -> str:
        return self.text()

    @property
    def evidence(self) -> str:
        return "; ".join(filter(None, (self.busy, f"{self.because}{self.more}")))

    @property
    def short_evidence(self) -> str:
        """The evidence without the samples that Explain lists: for a saturated unit its counters and the hottest line."""
        return f"{self.busy}{f', most at {self.place}' * bool(self.place)}" if self.busy and self.computes else self.evidence

    @property
    def sourced(self) -> Bottleneck:
        """A copy whose evidence names the origin of its numbers."""
        counted = "busy" if self.busy else "because"
        return self._replace(**{counted: f"{getattr(self, counted)} ({self.source})"}, source="") if self.source else self

    def text(self, phase: str = "", busy_with: str = "") -> str:
        """Describe the bottleneck; `busy_with` names the instructions that keep a busy unit busy."""
        if self.what == OWNER:
            return self.because
        evidence = f"{self.short_evidence}{f', {busy_with}' * bool(busy_with)}"
        return f"{self.what}{f' in {phase}' * bool(phase)}{f': {evidence}' * bool(self.because)}"


class IssueSlots(NamedTuple):
    """The issue slots of all GPUs of a run."""

    per_second: float | None  # instructions of threads per second, if the schedulers issue one in every cycle
    occupancy: float | None = None  # achieved occupancy of the whole run, by GPM


def reason_of(run: Run, slots: IssueSlots, samples: WarpSamples) -> WarpReason:
    """Return the main warp state of a kernel function; warps compute only if counters or its loop show the issue slots full."""
    issue_slots = slots.per_second
    compute, each = counters_of(run, samples.op).get("compute_share"), loop_facts(samples).each
    slowest = max(run.phases, key=lambda phase: phase.seconds, default=None)
    rate = slowest.relaxations / slowest.seconds if slowest is not None and slowest.seconds > 0 else 0.0
    main = main_samples(run) is samples
    rate *= main
    needed = rate * each / issue_slots if rate and each and issue_slots else 1.0
    full = compute >= SATURATED_SHARE if compute is not None else needed >= MIN_ISSUED_SHARE
    reason = warp_reason(samples, run.listing(samples.op), full)
    if (filled := filled_slots(run, samples, slots.occupancy if main else None)) is None:
        return reason
    issued, warps, most = filled
    text = f"a warp issued in {units.percent(issued)} of its samples; with {most}{units.digits(warps)} warps per scheduler that "
    text += f"fills {most}{units.percent(min(issued * warps, 1.0))} of the issue slots"
    least = rate * (fewest_instructions(samples) or 0.0) / issue_slots if issue_slots else 0.0
    if not isfinite(least) or least <= MAX_SLOT_ERROR * issued * warps:
        part = f", {units.percent(needed)} by the inner loop" if needed < issued * warps and not loop_facts(samples).whole else ""
        if isfinite(least) and least > issued * warps:
            part = f"; the measured rate needs {units.percent(least)}, within the error of the samples"
        return reason._replace(slots=f"{text}{part}")
    text = f"samples contradict the measured rate: {text}, but {units.rate(rate)} needs at least {units.percent(least)}"
    return WarpReason(UNKNOWN, text, None, contradicts=True)


def filled_slots(run: Run, samples: WarpSamples, achieved: float | None) -> tuple[float, float, str] | None:
    """Return the share of the samples of a warp in which it issued, and the resident warps per scheduler; None if unknown.

    The warps are those that counters read, else those of the occupancy that the run `achieved`, else at most those of the
    theoretical occupancy, with "at most " as the third value.
    """
    one, issued = next((o for o in run.occupancies if o.op == samples.op), None), shares(samples.reasons).get(SELECTED)
    if one is None or not one.max_warps or not issued:
        return None
    known = counters_of(run, samples.op).get("occupancy", achieved)
    warps = (one.warps if known is None else known * one.max_warps) / SCHEDULERS
    return (issued, warps, "at most " * (known is None)) if issued * warps <= MAX_FILLED else None


def by_samples(
    sampled: WarpReason, counted: Bottleneck | None, counters: Mapping[str, float], dram: tuple[float | None, str]
) -> Bottleneck:
    """Return the bottleneck that PC samples name.

    Warps that compute or wait for memory are bound by the unit that the counters show saturated. A wait for device memory is
    latency unless DRAM is busy: `dram` is the result of dram_share().
    """
    what, because, busy, source = sampled.resource, str(sampled), "", COUNTERS
    if counted is not None and max(counters.get(f"{unit}_share", 0.0) for unit in ("memory", "compute")) >= SATURATED_SHARE:
        if sampled.computes or "memory" in what or "load" in what:
            what, busy = counted.what.replace(ISSUE, what if sampled.computes else ISSUE), counted.evidence
        else:
            because = f"{sampled}; {counted}"
    elif what == MEMORY_LATENCY:
        share, source = dram
        if share is not None:
            busy = f"DRAM throughput {whole_percent(share)} of peak"
            what = "device memory" if share >= BOTTLENECK_SHARE else what if share >= MAX_IDLE_SHARE else "cache latency"
    source *= bool(busy or because != str(sampled))
    return Bottleneck(what, because, busy, sampled.place, source, computes=sampled.computes)


def counters_of(run: Run, phase: str) -> Mapping[str, float]:
    """Return the hardware counters of the phase's kernel function; empty if none were read."""
    counted = of_phase(run.counted, phase)
    return counted.values if counted is not None else {}


def dram_share(run: Run, evidence: Evidence | None, *phases: tuple[str, float]) -> tuple[float | None, str]:
    """Return DRAM throughput / peak, and its source: GPM readings, else the counters of all phases (key, seconds), else None."""
    if evidence is not None and evidence.dram_utilisation is not None:
        return evidence.dram_utilisation, GPM
    shares = [share * seconds for key, seconds in phases if (share := counters_of(run, key).get("dram_share")) is not None]
    total = sum(seconds for _, seconds in phases)
    return sum(shares) / total if total > 0 and len(shares) == len(phases) else None, COUNTERS


def by_counters(counters: Mapping[str, float]) -> Bottleneck | None:
    """Return the busiest unit as the bottleneck; latency if all are below 60 % (Nsight Compute, "Speed of Light")."""
    dram, memory, compute = (counters.get(f"{name}_share") for name in ("dram", "memory", "compute"))
    if dram is None or memory is None or compute is None:
        return None
    if max(dram, memory, compute) < BOTTLENECK_SHARE:
        warps = counters.get("occupancy")
        few = f"; achieved occupancy only {whole_percent(warps)}" if warps is not None and warps < MIN_LATENCY_HIDING else ""
        both = f"compute {whole_percent(compute)} busy, memory {whole_percent(memory)} busy"
        return Bottleneck(LATENCY, both, source=COUNTERS, more=few)
    if dram >= BOTTLENECK_SHARE and dram >= memory - MAX_UNIT_DIFFERENCE:
        return Bottleneck("device memory", f"{whole_percent(dram)} busy", source=COUNTERS)
    shared, device_memory = (
        sum(counters.get(f"{kind}_{way}_bytes_per_second", 0.0) for way in ("load", "store")) for kind in ("shared", "global")
    )
    on_chip = "shared memory" if shared > device_memory else "caches"
    issue = ISSUE if compute >= SATURATED_SHARE else "compute throughput"
    if abs(memory - compute) <= MAX_UNIT_DIFFERENCE:
        same, two = f"both {whole_percent(memory)}", f"{whole_percent(compute)} and {whole_percent(memory)}"
        busy = f"{same if whole_percent(compute) == whole_percent(memory) else two} busy"
        return Bottleneck(f"{issue} and {on_chip}", busy, source=COUNTERS)
    what, share = (on_chip, memory) if memory > compute else (issue, compute)
    return Bottleneck(what, f"{whole_percent(share)} busy", source=COUNTERS)


def by_telemetry(evidence: Evidence | None) -> Bottleneck | None:
    """Return the bottleneck that GPM readings of the whole run prove; None if they prove none."""
    if evidence is None:
        return None
    if (dram := evidence.dram_utilisation or 0.0) >= BOTTLENECK_SHARE:
        return Bottleneck("device memory", f"{whole_percent(dram)} busy", source=GPM)
    if (integer := evidence.integer_utilisation or 0.0) >= MIN_INTEGER_SHARE:
        return Bottleneck("integer pipe", f"{whole_percent(integer)} busy", source=GPM)
    return None
