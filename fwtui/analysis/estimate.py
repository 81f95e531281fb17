"""Estimates of the time of a run from similar runs of the session, and of the progress of a run that reports none."""

from __future__ import annotations

from collections.abc import Sequence
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
ORDERED_RATES = {"cpu": 1e10, "cuda": 1e13}  # rates of sparse kernels, which use the min-plus product of the fastest rung
FIRST_COMPILE = 2.0
GROWING = tuple(stage.key for stage in STAGES.values() if stage.grows)
REFERENCE = 1e-9  # seconds that SciPy takes per relaxation, once per graph
ONLY_OVERHEAD = 256  # vertices up to which stage times are constant
SILENT = 1.0  # seconds after the last progress event from which the progress is estimated
NEARLY = 0.99  # largest estimated progress


class Expected(NamedTuple):
    """The estimated seconds of a run."""

    one: float  # one repetition
    total: float  # the whole run, from start to end
    compiling: float  # part of the total


def expect(model: Model, experiment: Experiment) -> Expected:
    """Estimate a run: repetitions, stages that grow with n^2, verification, and compilation unless it ran before."""
    runs, backend = [*_timed(model)], kernel_named(experiment.kernel).backend
    alike = _similar_runs(runs, experiment)
    nearest = _nearest(alike, experiment.n)
    if nearest is None:
        one = experiment.n**3 / RATES[backend]
    else:
        measured = median(run.seconds or 0.0 for run in alike if run.n == nearest.n)
        one = seconds_at(measured, nearest.n, experiment.n, backend)
    compiling = FIRST_COMPILE * (not _repeats(runs, experiment))
    stages = _grown(_nearest(alike or runs, experiment.n), experiment, *GROWING)
    repetitions = one + _timed_repetitions(one, experiment) + max(one, min(PHASE_SECONDS, PHASE_PASSES * one))
    return Expected(one, repetitions + stages + _checking(runs, experiment) + compiling, compiling)


def estimated_seconds(model: Model, run: Run) -> float:
    """Estimate the seconds of a repetition of a planned run: at the rate of its kernel's last run, else of its device's best."""
    done = [r for r in _timed(model) if r.device == run.device and r.relaxations and r.id != run.id]
    same_kernel = [r.relaxations / (r.seconds or 1.0) for r in done if r.experiment.kernel == run.experiment.kernel]
    best = max((r.relaxations / (r.seconds or 1.0) for r in done), default=0.0)
    best = best or (RATES if run.ordered is None else ORDERED_RATES)[run.backend if run.backend in RATES else "cuda"]
    return run.relaxations / (same_kernel[-1] if same_kernel else best)


def seconds_at(seconds: float, n: int, to_n: int, backend: str) -> float:
    """Scale the seconds of a repetition from size n to `to_n`."""
    bound = min(to_n, LAUNCH_BOUND if backend == "cuda" else 0)
    return seconds * max(1.0, bound / n) ** 2 * (to_n / max(n, bound)) ** 3


def progress_now(model: Model, run: Run) -> Progress | None:
    """Return the progress of an active run: reported, or estimated if the last report is old or a stage is one repetition."""
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
        after = _timed_repetitions(one, experiment) + one if run.stage == "warm-up" else 0.0
    except Refused:  # the kernel no longer exists
        return None
    left = max(0.0, one - waited) + after if one else 0.0
    return Progress(t=model.t, run=run.id, stage=run.stage, done=min(waited / one, NEARLY) if one else 0.0, left=left or None)


def _timed_repetitions(one: float, experiment: Experiment) -> float:
    if experiment.repeats:
        return experiment.repeats * one
    return max(one, min(experiment.budget, max(ENOUGH_SECONDS, ENOUGH_PASSES * one)))


def _checking(runs: Sequence[Run], experiment: Experiment) -> float:
    """Estimate the seconds of verification: those of the nearest sampled run, plus SciPy's time for a new graph."""
    sampled = _nearest([r for r in runs if _sampled(r.experiment.verify, r.n, r.backend)], experiment.n)
    seconds = _grown(sampled, experiment, "verify")
    alike = (r for r in runs if r.experiment.graph == experiment.graph)
    no_new_reference = any(not _sampled(r.experiment.verify, r.n, r.backend) for r in alike)
    no_new_reference |= _sampled(experiment.verify, experiment.n, kernel_named(experiment.kernel).backend)
    return seconds if no_new_reference else seconds + REFERENCE * experiment.n**3


def _sampled(verify: str, n: int, backend: str) -> bool:
    """Return True if only a sample of the distances is verified."""
    return verify in ("sample", "off") or (verify == "auto" and n > FULL_CHECK.get(backend, 0))


def _grown(run: Run | None, experiment: Experiment, *stages: str) -> float:
    """Return the seconds of a run's stages, scaled to the experiment's size."""
    if run is None:
        return 0.0
    times = max(1.0, experiment.n / max(run.n, ONLY_OVERHEAD)) ** 2
    return times * sum(run.stage_seconds(name) or 0.0 for name in stages)


def _timed(model: Model) -> list[Run]:
    return [r for r in model.runs.values() if r.state == "done" and r.seconds and r.n]


def _repeats(runs: Sequence[Run], experiment: Experiment) -> list[Run]:
    """Return the runs of the experiment, at any size."""
    kernel = kernel_named(experiment.kernel)
    return [r for r in runs if same(r, experiment, kernel)]


def _similar_runs(runs: Sequence[Run], experiment: Experiment) -> list[Run]:
    """Return the runs of the experiment at any size, else those of the kernel."""
    return _repeats(runs, experiment) or [r for r in runs if r.experiment.kernel == experiment.kernel]


def _nearest(runs: Sequence[Run], n: int) -> Run | None:
    below = [r for r in runs if r.n <= n]
    return max(below, key=lambda r: (r.n, r.id)) if below else min(runs, key=lambda r: r.n, default=None)
