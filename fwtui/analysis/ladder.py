"""Kernels as a staircase: among runs with the same distances, those faster than every earlier rung."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fwtui.stream.run import Run
from fwtui_kernels import registry


class Rung(NamedTuple):
    """One step, with its speed-up over the first step and over the one before it."""

    run: Run
    times: float = 1.0
    gain: float = 1.0


def build_ladder(runs: Iterable[Run]) -> tuple[Rung, ...]:
    """The steps of the graph and number type with the most of them (the largest graph, if several): each kernel's fastest
    verified run in ladder order."""
    answers: dict[tuple[int, str, str], dict[str, Run]] = {}
    for run in runs:
        if run.counts and run.seconds and run.verdict is not None and run.verdict.checksum:
            best = answers.setdefault((run.n, run.verdict.checksum, run.experiment.dtype), {})
            kernel = run.experiment.kernel
            if kernel not in best or run.seconds < (best[kernel].seconds or 0.0):
                best[kernel] = run
    climbs = [_rising([best[kernel] for kernel in registry() if kernel in best]) for best in answers.values()]
    return max(climbs, key=lambda rungs: (len(rungs), rungs[0].run.n if rungs else 0), default=())


def best_rates(runs: Iterable[Run], rungs: Sequence[Rung]) -> dict[str, float]:
    """By kernel the best rate of a verified run, of any graph, with the number type of these steps."""
    rates: dict[str, float] = {}
    for run in runs:
        if run.counts and rungs and run.experiment.dtype == rungs[0].run.experiment.dtype:
            rates[run.experiment.kernel] = max(run.rate or 0.0, rates.get(run.experiment.kernel, 0.0))
    return rates


def select_rungs(rungs: Sequence[Rung], most: int, marked: int = 0) -> tuple[Rung, ...]:
    """At most that many of the steps (at least two): the first, the last, the one at `marked`, and the highest of the others."""
    runs = {rung.run.experiment.kernel: rung.run for rung in rungs}
    always = {rungs[place].run.experiment.kernel for place in (0, -1, marked)} if rungs else set[str]()
    while len(runs) > max(most, len(always)):
        gains = {rung.run.experiment.kernel: rung.gain for rung in _rising(tuple(runs.values()))}
        del runs[min(gains.keys() - always, key=gains.__getitem__)]
    return _rising(tuple(runs.values()))


def _rising(runs: Sequence[Run]) -> tuple[Rung, ...]:
    rungs: list[Rung] = []
    for run in runs:
        seconds = run.seconds or 0.0
        if not rungs:
            rungs.append(Rung(run))
        elif seconds < (before := rungs[-1].run.seconds or 0.0):
            rungs.append(Rung(run, (rungs[0].run.seconds or 0.0) / seconds, before / seconds))
    return tuple(rungs)
