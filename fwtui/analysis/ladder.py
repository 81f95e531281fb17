"""The ladder: among kernels with identical distances, those that are faster than every earlier rung."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fwtui.analysis.sparsity import reduction
from fwtui.stream.run import Run
from fwtui_kernels import registry

BASELINE = "naive"
ALWAYS = (BASELINE, "katz-kider")  # the kernels of every lecture


class Rung(NamedTuple):
    """A rung, with its speedup over the baseline and over the previous rung of the whole ladder."""

    run: Run
    times: float = 1.0
    gain: float = 1.0


def build_ladder(runs: Iterable[Run]) -> tuple[Rung, ...]:
    """Return the longest ladder of one graph and data type (of several, that of the largest graph).

    A kernel's rung is its fastest verified run; kernels that are not faster than an earlier rung are omitted, and so are runs
    that skip relaxations, because their rates do not compare.
    """
    kernels: dict[tuple[int, str, str], dict[str, Run]] = {}
    for run in runs:
        if run.counts and run.seconds and reduction(run) == 1 and run.verdict is not None and run.verdict.checksum:
            best = kernels.setdefault((run.n, run.verdict.checksum, run.experiment.dtype), {})
            kernel = run.experiment.kernel
            if kernel not in best or run.seconds < (best[kernel].seconds or 0.0):
                best[kernel] = run
    ladders = [_rungs([best[kernel] for kernel in registry() if kernel in best]) for best in kernels.values()]
    return max(ladders, key=lambda rungs: (len(rungs), rungs[0].run.n if rungs else 0), default=())


def best_rates(runs: Iterable[Run], rungs: Sequence[Rung]) -> dict[str, tuple[float, int]]:
    """Map each kernel to its best rate in verified runs of any graph with the data type of the ladder, and the n of that run."""
    rates: dict[str, tuple[float, int]] = {}
    for run in runs:
        if run.counts and rungs and run.experiment.dtype == rungs[0].run.experiment.dtype:
            rates[run.experiment.kernel] = max((run.rate or 0.0, run.n), rates.get(run.experiment.kernel, (0.0, 0)))
    return rates


def baseline(runs: Sequence[Run]) -> Run:
    """Return the run that all speedups of a ladder refer to: that of Naive, or of the first rung if Naive is not on it."""
    return next((run for run in runs if run.experiment.kernel == BASELINE), runs[0])


def select_rungs(rungs: Sequence[Rung], most: int, marked: int = 0) -> tuple[Rung, ...]:
    """Return at most `most` rungs (at least two).

    Return the first, the last and the one at `marked`, then those of ALWAYS, then those with the largest gains.
    """
    always = {0, len(rungs) - 1, marked} if rungs else set[int]()

    def order(place: int) -> tuple[bool, float]:
        return rungs[place].run.experiment.kernel not in ALWAYS, -rungs[place].gain

    others = sorted(set(range(len(rungs))) - always, key=order)
    return tuple(rungs[place] for place in sorted((*always, *others[: max(0, most - len(always))])))


def _rungs(runs: Sequence[Run]) -> tuple[Rung, ...]:
    faster: list[Run] = []
    for run in runs:
        if not faster or (run.seconds or 0.0) < (faster[-1].seconds or 0.0):
            faster.append(run)
    seconds = [run.seconds or 0.0 for run in faster]
    base = (baseline(faster).seconds or 0.0) if faster else 0.0
    before = [*seconds[:1], *seconds]
    return tuple(Rung(run, base / now, last / now) for run, last, now in zip(faster, before, seconds, strict=False))
