"""Disturbances of a run's times: lowered clocks, other work on the machine, the overhead of timing phases."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.model import Evidence
from fwtui.stream.quantity import throttled
from fwtui.stream.run import Run

MAX_OTHER_SHARE = 0.1  # share of the run's cores that other work may use; an idle operating system uses a few percent
MIN_SUM = 0.99  # share of the median time from which a lower sum of the phases needs no reason
MAX_OVERHEAD = 0.1  # timer overhead / median time; above it, the phases differ from those of a timed repetition
MAX_SLOWDOWN = 3.0  # an equally busy program leaves a run half of its cores; runs under load took up to 2.8x
MARGIN = MAX_SLOWDOWN / 2  # runs under load took up to this factor longer than the share of cores left to them explains


class Disturbance(NamedTuple):
    """A disturbance of a run: one word, the evidence, and the factor `cost` by which it slowed the run down."""

    word: str
    why: str
    cost: float = MAX_SLOWDOWN / MARGIN

    def __str__(self) -> str:
        return f"{self.word}: {self.why}"


def disturbances(run: Run, evidence: Evidence | None) -> tuple[Disturbance, ...]:
    """Return the disturbances of the timed repetitions, from telemetry and the instrumented repetitions."""
    causes, noisy = list[Disturbance](), list[Disturbance]()
    done = run.done
    if run.backend == "cpu" and done is not None and done.instrumentation is not None and run.seconds:
        less = -done.instrumentation / run.seconds
        if less > max(MAX_OVERHEAD, done.spread or 0.0):  # timers only add time; on a GPU they skip the gaps between launches
            why = f"its instrumented repetitions took {100 * less:.0f} % less time"
            noisy.append(Disturbance("noisy", why, 1 / (1 - less) if less < 1 else inf))
    if evidence is None:
        return tuple(noisy)
    if run.backend == "cuda" and (reasons := throttled(evidence.throttle)):
        causes.append(Disturbance("throttled", ", ".join(reasons)))
    others, cores = evidence.other_cpu, evidence.cores
    if others is not None and cores:
        # a kernel on all cores loses to any other work; any other kernel needs one free core, also to launch on a GPU
        needed = cores if run.backend == "cpu" and run.experiment.options.get("cores") else 1
        left = cores - others * cores
        if needed - left > MAX_OTHER_SHARE * needed:
            cost = max([needed / left if left > 0 else inf, *(one.cost for one in noisy)])
            why = "; ".join((*(one.why for one in noisy), f"other processes used {100 * others:.0f} % of the CPU"))
            return *causes, Disturbance("noisy", why, cost)
    return *causes, *noisy


def max_interference_factor(
    slower: Run, faster: Run, of_slower: Sequence[Disturbance], of_faster: Sequence[Disturbance]
) -> float:
    """Return the largest factor by which disturbances of the slower run can have raised the ratio of times; 1 without any.

    If both runs on the CPU were noisy, only the difference in noise counts; the safety margin still applies. A GPU keeps
    computing while its CPU is busy, so the time that a faster GPU run lost is unknown.
    """
    if not of_slower:
        return 1.0
    cost = max(one.cost for one in of_slower)
    if slower.backend == faster.backend == "cpu" and cost < inf:
        cost = max(1.0, cost / max((one.cost for one in of_faster), default=1.0))
    return MARGIN * cost


def instrumentation(run: Run) -> list[str]:
    """Describe the timer overhead: the time of the instrumented minus that of the timed repetitions."""
    if (done := run.done) is None or (extra := done.instrumentation) is None:
        return []
    overhead = "timer overhead: not measurable"
    # on a CPU timers only add time, so a negative overhead is noise; on a GPU they skip the gaps between launches;
    # the noise of a single repetition is unknown
    beyond = run.backend == "cuda" or extra > 0
    if beyond and done.spread is not None and not (run.seconds and abs(extra) <= done.spread * run.seconds):
        share = f" ({100 * extra / run.seconds:+.1f} %)" if run.seconds else ""
        overhead = f"timer overhead {'-' if extra < 0 else '+'}{units.duration(abs(extra))}{share}"
    return [overhead, *["the per-phase times are approximate"] * bool(phase_times_warning(run))]


def timers_distort(run: Run) -> bool:
    """Return whether the timers of the instrumented repetition lengthened it by more than MAX_OVERHEAD and the spread.

    False for a run on several devices: there the instrumented repetition also waits for every broadcast.
    """
    return not run.ranks and _excess_overhead(run) > 0


def _excess_overhead(run: Run) -> float:
    """Return timer overhead / median time; 0 if it is unknown, or within MAX_OVERHEAD or the spread of the repetitions."""
    done = run.done
    if done is None or done.instrumentation is None or not run.seconds:
        return 0.0
    extra = done.instrumentation / run.seconds
    return extra if abs(extra) > max(MAX_OVERHEAD, done.spread or 0.0) else 0.0


def sum_notes(run: Run) -> tuple[str, ...]:
    """Explain per-phase times that do not add up to the median time, in a long and a short text.

    Empty if the sum is the median time, or less by at most 1 %.
    """
    total = sum(phase.seconds for phase in run.phases)
    sums, median = units.duration(total), units.duration(run.seconds)
    if not run.seconds or sums == median or MIN_SUM * run.seconds < total < run.seconds:
        return ()
    if total < run.seconds:
        return f"sum {sums}, from separate repetitions; median time {median}", f"sum {sums}, separate repetitions"
    overlap = f", and {'broadcasts' if run.ranks else 'phases'} without overlap" * (len(run.phases) > 1)
    return f"sum {sums}, with timers{overlap}; median time {median}", f"sum {sums}, timers included"


def phase_times_warning(run: Run) -> str:
    """Return why the per-phase times are only approximate; empty if they are accurate."""
    extra = _excess_overhead(run)
    if not extra:
        return ""
    how = f"{100 * abs(extra):.0f} % {'less' if extra < 0 else 'longer'}"
    return f"the instrumented repetitions took {how}; the per-phase times are approximate"
