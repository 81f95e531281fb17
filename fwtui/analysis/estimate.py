"""Estimates how long a run will take, from the session's most similar runs, and how far one is that does not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import FULL_CHECK, Experiment, changed, kernel_named
from fwtui.stream.events import Progress
from fwtui.stream.model import Model
from fwtui.stream.run import Run, same
from fwtui.stream.stages import ENOUGH_PASSES, ENOUGH_SECONDS, PHASE_PASSES, PHASE_SECONDS, STAGES

LAUNCH_BOUND = 1024  # below this size, time on a GPU grows more slowly than n^3
RATES = {"cpu": 1e9, "cuda": 2e11}  # relaxations/s of a kernel that has not run yet
ORDERED_RATES = {"cpu": 1e10, "cuda": 1e13}  # of one for sparse graphs, whose product is that of the fastest rung
FIRST_COMPILE = 2.0
GROWING = tuple(stage.key for stage in STAGES.values() if stage.grows)
REFERENCE = 1e-9  # seconds that SciPy takes per relaxation, once per graph
ONLY_OVERHEAD = 256  # vertices up to which stage times are constant
SILENT = 1.0  # seconds since a run told its progress, from which it is estimated
NEARLY = 0.99  # the most that an estimate says is done


class Expected(NamedTuple):
    """The estimated seconds of a run."""

    one: float  # of one pass
    total: float  # from start to end
    compiling: float  # part of the total, if no similar run is known


def expect(
    model: Model, experiment: Experiment, brief: bool = False, rates: Mapping[str, float] = RATES, earlier: Sequence[Run] = ()
) -> Expected:
    """Passes by the run's own rules, stages growing with n^2, verification, and compilation unless it is known.

    A brief run has no phase passes. `earlier` runs are used in addition to those of the model.
    """
    runs, backend = [*earlier, *_timed(model)], kernel_named(experiment.kernel).backend
    alike = _alike(runs, experiment)
    nearest = _nearest(alike, experiment.n)
    if nearest is None:
        one = experiment.n**3 / rates[backend]
    else:
        known = median(run.seconds or 0.0 for run in alike if run.n == nearest.n)
        one = seconds_at(known, nearest.n, experiment.n, backend)
    compiling = FIRST_COMPILE * (not _repeats(runs, experiment))
    stages = _grown(_nearest(alike or runs, experiment.n), experiment, *GROWING)
    return Expected(one, _passes(one, experiment, brief) + stages + _checking(runs, experiment) + compiling, compiling)


def foreseen(model: Model, run: Run) -> float:
    """Seconds of a pass of that run, whose plan is known: at the rate of its kernel's last run, else of its device's best one."""
    done = [r for r in _timed(model) if r.device == run.device and r.relaxations and r.id != run.id]
    same_kernel = [r.relaxations / (r.seconds or 1.0) for r in done if r.experiment.kernel == run.experiment.kernel]
    best = max((r.relaxations / (r.seconds or 1.0) for r in done), default=0.0)
    best = best or (RATES if run.ordered is None else ORDERED_RATES)[run.backend if run.backend in RATES else "cuda"]
    return run.relaxations / (same_kernel[-1] if same_kernel else best)


def seconds_at(seconds: float, n: int, to_n: int, backend: str) -> float:
    """Seconds of a pass at the wanted size, from one at n."""
    bound = min(to_n, LAUNCH_BOUND if backend == "cuda" else 0)
    return seconds * max(1.0, bound / n) ** 2 * (to_n / max(n, bound)) ** 3


def progress_now(model: Model, run: Run) -> Progress | None:
    """How far a running run is: as it told; estimated if its last word is old, or in a step that takes a whole pass."""
    progress = run.progress
    if progress is not None:
        silent = model.t - progress.t
        if not progress.left or silent <= SILENT:
            return progress
        left = max(0.0, progress.left - silent)
        done = 1 - (1 - progress.done) * left / progress.left
        return replace(progress, done=max(progress.done, min(done, NEARLY)), left=left or None)
    waited, after = model.t - run.stage_since, 0.0
    if run.stage not in ("warm-up", "phases") or not run.n or waited <= SILENT:
        return None
    try:
        experiment = changed(run.experiment, n=run.n)
        one = run.seconds or expect(model, experiment).one
        after = _passes(one, experiment, brief=True) + one if run.stage == "warm-up" else 0.0
    except Refused:  # a kernel that is no longer known
        return None
    left = max(0.0, one - waited) + after if one else 0.0
    return Progress(t=model.t, run=run.id, stage=run.stage, done=min(waited / one, NEARLY) if one else 0.0, left=left or None)


def _passes(one: float, experiment: Experiment, brief: bool) -> float:
    warm_up = one * (not brief or kernel_named(experiment.kernel).compiles)
    stable = max(one, min(experiment.budget, max(ENOUGH_SECONDS, ENOUGH_PASSES * one)))
    clean = experiment.repeats * one if experiment.repeats else stable
    return warm_up + clean + (0.0 if brief else max(one, min(PHASE_SECONDS, PHASE_PASSES * one)))


def _checking(runs: Sequence[Run], experiment: Experiment) -> float:
    """Seconds of verification: those of the nearest sampled run scaled by n^2, plus SciPy's time for a new graph."""
    sampled = _nearest([r for r in runs if _sampled(r.experiment.verify, r.n, r.backend)], experiment.n)
    seconds = _grown(sampled, experiment, "verify")
    no_new_reference = any(
        r.experiment.graph == experiment.graph and not _sampled(r.experiment.verify, r.n, r.backend) for r in runs
    )
    no_new_reference |= _sampled(experiment.verify, experiment.n, kernel_named(experiment.kernel).backend)
    return seconds if no_new_reference else seconds + REFERENCE * experiment.n**3


def _sampled(verify: str, n: int, backend: str) -> bool:
    """Whether only a sample is compared with SciPy's result."""
    return verify in ("sample", "off") or (verify == "auto" and n > FULL_CHECK.get(backend, 0))


def _grown(run: Run | None, experiment: Experiment, *stages: str) -> float:
    """Seconds of that run's stages scaled up to the wanted size."""
    if run is None:
        return 0.0
    times = max(1.0, experiment.n / max(run.n, ONLY_OVERHEAD)) ** 2
    return times * sum(run.stage_seconds(name) or 0.0 for name in stages)


def _timed(model: Model) -> list[Run]:
    return [r for r in model.runs.values() if r.state == "done" and r.seconds and r.n]


def _repeats(runs: Sequence[Run], experiment: Experiment) -> list[Run]:
    """Runs of exactly that experiment, at any size."""
    kernel = kernel_named(experiment.kernel)
    return [r for r in runs if same(r, experiment, kernel)]


def _alike(runs: Sequence[Run], experiment: Experiment) -> list[Run]:
    """Runs of exactly that experiment, else of the same kernel."""
    return _repeats(runs, experiment) or [r for r in runs if r.experiment.kernel == experiment.kernel]


def _nearest(runs: Sequence[Run], n: int) -> Run | None:
    below = [r for r in runs if r.n <= n]
    return max(below, key=lambda r: (r.n, r.id)) if below else min(runs, key=lambda r: r.n, default=None)
