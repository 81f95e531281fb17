"""How long a run will take, from the runs of the session that are most like it."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.experiment.experiment import Experiment
from fwtui.stream.model import Model
from fwtui.stream.run import Run, same
from fwtui.stream.stages import STAGES
from kernels import registry

LAUNCH_BOUND = 1024  # below this size a GPU's time grows more slowly than n^3
CPU_RATE, GPU_RATE = 1e9, 2e11  # relaxations/s, for a kernel of which nothing is known yet
FIRST_COMPILE = 2.0
GROWING = tuple(stage.key for stage in STAGES.values() if stage.grows)
REFERENCE = 1e-9  # seconds of SciPy's for each relaxation, once for each graph
ENOUGH_PASSES, ENOUGH_SECONDS = 10, 0.5  # what a stable median takes at least
ONLY_OVERHEAD = 256  # vertices up to which stages take as long as for none
PHASE_SECONDS, MOST_PHASE_PASSES = 0.5, 50


def one_pass(model: Model, wanted: Experiment) -> float:
    """Seconds of one pass, scaled from the nearest smaller size of the most similar run."""
    backend = registry()[wanted.kernel].backend
    return _scaled(_nearest(_alike(model, wanted), wanted.n), wanted.n, backend) or wanted.n**3 / (
        CPU_RATE if backend == "cpu" else GPU_RATE
    )


def around(model: Model, wanted: Experiment) -> float:
    """Seconds of everything but the passes: a compilation where none is known, stages that grow with n^2, and the check."""
    runs = _timed(model)
    seconds = FIRST_COMPILE * (not _repeats(runs, wanted))
    if runs:
        largest = max(runs, key=lambda r: (r.n, r.id))
        seconds += sum(largest.stage_seconds(name) or 0 for name in GROWING) * max(1.0, wanted.n / largest.n) ** 2
    return seconds + _checking(runs, wanted)


def whole_run(model: Model, wanted: Experiment) -> float:
    """Seconds from a run's beginning to its end.

    Passes by the run's own rules; of what the most similar run took beyond its passes, stages like graph and check grow with n^2.
    """
    seconds = _passes(one_pass(model, wanted), wanted)
    before = _nearest(_alike(model, wanted) or _timed(model), wanted.n)
    if before is None or before.finished is None or not before.seconds:
        return seconds + FIRST_COMPILE
    beyond = max(0.0, before.finished - before.started - _passes(before.seconds, before.experiment))
    growing = min(beyond, sum(before.stage_seconds(name) or 0.0 for name in GROWING))
    first = FIRST_COMPILE * (before.experiment.kernel != wanted.kernel)
    larger = max(1.0, wanted.n / max(before.n, ONLY_OVERHEAD)) ** 2
    return seconds + first + beyond - growing + growing * larger


def _passes(one: float, wanted: Experiment) -> float:
    """Warm-up, clean passes and phase passes."""
    stable = max(one, min(wanted.budget, max(ENOUGH_SECONDS, ENOUGH_PASSES * one)))
    clean = wanted.repeats * one if wanted.repeats else stable
    return one + clean + max(one, min(PHASE_SECONDS, MOST_PHASE_PASSES * one))


def _checking(runs: Sequence[Run], wanted: Experiment) -> float:
    """Seconds of the check: as long as that of the largest sampled run, by n^2, and SciPy's own time for a graph's first."""
    sampled = _nearest([r for r in runs if r.experiment.verify == "sample"], wanted.n)
    seconds = (sampled.stage_seconds("verify") or 0.0) * max(1.0, wanted.n / sampled.n) ** 2 if sampled is not None else 0.0
    known = any(r.experiment.graph == wanted.graph and r.experiment.verify != "sample" for r in runs)
    return seconds if wanted.verify == "sample" or known else seconds + REFERENCE * wanted.n**3


def _timed(model: Model) -> list[Run]:
    return [r for r in model.runs.values() if r.state == "done" and r.seconds and r.n]


def _repeats(runs: Sequence[Run], wanted: Experiment) -> list[Run]:
    """Runs of exactly that, of whatever size."""
    kernel = registry()[wanted.kernel]
    return [r for r in runs if same(r, wanted, kernel)]


def _alike(model: Model, wanted: Experiment) -> list[Run]:
    """Runs of exactly that, else of the same kernel."""
    runs = [r for r in _timed(model) if r.experiment.kernel == wanted.kernel]
    return _repeats(runs, wanted) or runs


def _nearest(runs: Sequence[Run], n: int) -> Run | None:
    below = [r for r in runs if r.n <= n]
    return max(below, key=lambda r: (r.n, r.id)) if below else min(runs, key=lambda r: r.n, default=None)


def _scaled(run: Run | None, n: int, backend: str) -> float | None:
    if run is None or not run.seconds:
        return None
    bound = LAUNCH_BOUND if backend == "cuda" else 0
    slow = max(1.0, min(n, bound) / run.n) ** 2
    return run.seconds * slow * (n / max(run.n, min(n, bound))) ** 3
