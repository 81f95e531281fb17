"""The ladder: among kernels with identical distances, those that are faster than every earlier rung."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fwtui.analysis.sparsity import reduction
from fwtui.stream.run import Run
from fwtui_kernels import registry


class Rung(NamedTuple):
    """A rung, with its speedup over the first rung and over the previous one of the whole ladder."""

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


def best_rates(runs: Iterable[Run], rungs: Sequence[Rung]) -> dict[str, float]:
    """Map each kernel to its best rate in verified runs of any graph with the data type of the ladder."""
    rates: dict[str, float] = {}
    for run in runs:
        if run.counts and rungs and run.experiment.dtype == rungs[0].run.experiment.dtype:
            rates[run.experiment.kernel] = max(run.rate or 0.0, rates.get(run.experiment.kernel, 0.0))
    return rates


def select_rungs(rungs: Sequence[Rung], most: int, marked: int = 0) -> tuple[Rung, ...]:
    """Return the first rung, the last, the one at `marked`, and those with the largest gains, at most `most` (at least two)."""
    always = {0, len(rungs) - 1, marked} if rungs else set[int]()
    others = sorted(set(range(len(rungs))) - always, key=lambda place: -rungs[place].gain)
    return tuple(rungs[place] for place in sorted((*always, *others[: max(0, most - len(always))])))


def _rungs(runs: Sequence[Run]) -> tuple[Rung, ...]:
    rungs: list[Rung] = []
    for run in runs:
        seconds = run.seconds or 0.0
        if not rungs:
            rungs.append(Rung(run))
        elif seconds < (before := rungs[-1].run.seconds or 0.0):
            rungs.append(Rung(run, (rungs[0].run.seconds or 0.0) / seconds, before / seconds))
    return tuple(rungs)
