"""Disturbances of a run's times: lowered clocks, other work on the machine, the overhead of timing phases."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.model import Evidence
from fwtui.stream.quantity import throttled
from fwtui.stream.run import Run

TAKEN = 0.1  # share of the run's cores used by other work: the operating system alone takes a few percent
GUIDE = 0.1  # of the total: timing phases costs a few percent; above this the phases differ from those of a clean pass
FAR = 3.0  # times; an equally busy program leaves a run half of its cores, and runs under load took up to 2.8x
MARGIN = FAR / 2  # times; runs took up to so much longer than by the share of their cores that was left


class Disturbance(NamedTuple):
    """A disturbance of a run, in one word and in detail; by what is known of it, the run took `cost` times as long."""

    word: str
    why: str
    cost: float = FAR / MARGIN

    def __str__(self) -> str:
        return f"{self.word}: {self.why}"


def disturbances(run: Run, evidence: Evidence | None) -> tuple[Disturbance, ...]:
    """What disturbed the run's clean passes, each word once, from telemetry and the passes with a clock at each phase."""
    causes, noisy = list[Disturbance](), list[Disturbance]()
    done = run.done
    if run.backend == "cpu" and done is not None and done.instrumentation is not None and run.seconds:
        less = -done.instrumentation / run.seconds
        if less > max(GUIDE, done.spread or 0.0):  # a clock only adds time; a GPU's leaves out the gaps between launches
            why = f"its passes with a clock at each phase took {100 * less:.0f} % less time"
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
        if needed - left > TAKEN * needed:
            cost = max([needed / left if left > 0 else inf, *(one.cost for one in noisy)])
            why = "; ".join((*(one.why for one in noisy), f"other work used {100 * others:.0f} % of the CPU"))
            return *causes, Disturbance("noisy", why, cost)
    return *causes, *noisy


def most_gained(slower: Run, faster: Run, of_slower: Sequence[Disturbance], of_faster: Sequence[Disturbance]) -> float:
    """How many times as great a ratio of times may be because of what disturbed the slower run; 1 if nothing did.

    Noise that hit both on the CPU cost the faster one time too, so that only the difference counts; the margin stays.
    A GPU computes on while its CPU is busy: what the faster one lost there is not known.
    """
    if not of_slower:
        return 1.0
    cost = max(one.cost for one in of_slower)
    if slower.backend == faster.backend == "cpu" and cost < inf:
        cost = max(1.0, cost / max((one.cost for one in of_faster), default=1.0))
    return MARGIN * cost


def instrumentation(run: Run) -> list[str]:
    """How much longer or shorter the phase pass took, if beyond the spread of the clean passes."""
    done = run.done
    if done is None or done.instrumentation is None:
        return []
    extra = done.instrumentation
    if run.seconds and done.spread is not None and abs(extra) <= done.spread * run.seconds:
        return ["instrumentation: nothing measurable"]
    share = f" ({100 * extra / run.seconds:+.1f} %)" if run.seconds else ""
    words = f"instrumentation {'-' if extra < 0 else '+'}{units.duration(abs(extra))}{share}"
    return [words, *["the phases' shares are approximate"] * bool(phases_doubt(run))]


def phases_doubt(run: Run) -> str:
    """Why the phases' shares are only approximate; empty if they are accurate."""
    done = run.done
    if done is None or done.instrumentation is None or not run.seconds:
        return ""
    extra = done.instrumentation / run.seconds
    if abs(extra) <= max(GUIDE, done.spread or 0.0):
        return ""
    how = f"{100 * abs(extra):.0f} % {'less' if extra < 0 else 'longer'}"
    return f"the passes with a clock at each phase took {how}; the phases' shares are approximate"
