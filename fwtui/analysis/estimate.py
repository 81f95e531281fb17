"""How long a run will take, from the runs of the session that are most like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from fwtui.experiment.experiment import FULL_CHECK, Experiment, kernel_named
from fwtui.stream.model import Model
from fwtui.stream.run import Run, same
from fwtui.stream.stages import ENOUGH_PASSES, ENOUGH_SECONDS, PHASE_PASSES, PHASE_SECONDS, STAGES

LAUNCH_BOUND = 1024  # below this size a GPU's time grows more slowly than n^3
RATES = {"cpu": 1e9, "cuda": 2e11}  # relaxations/s, of a kernel of which nothing is known yet
FIRST_COMPILE = 2.0
GROWING = tuple(stage.key for stage in STAGES.values() if stage.grows)
REFERENCE = 1e-9  # seconds of SciPy's for each relaxation, once for each graph
ONLY_OVERHEAD = 256  # vertices up to which stages take as long as for none


class Expected(NamedTuple):
    """Seconds that a run will take."""

    one: float  # of one pass
    total: float  # from its beginning to its end
    compiling: float  # of the total, where nothing like it ran before


def expect(
    model: Model, wanted: Experiment, brief: bool = False, rates: Mapping[str, float] = RATES, earlier: Sequence[Run] = ()
) -> Expected:
    """Passes by the run's own rules, stages that grow with n^2, the check, and a compilation where none is known.

    A brief run has no pass with a clock at every phase. `earlier` runs are known besides those of the model.
    """
    runs, backend = [*earlier, *_timed(model)], kernel_named(wanted.kernel).backend
    alike = _alike(runs, wanted)
    nearest = _nearest(alike, wanted.n)
    if nearest is None:
        one = wanted.n**3 / rates[backend]
    else:
        one = scaled(median(run.seconds or 0.0 for run in alike if run.n == nearest.n), nearest.n, wanted.n, backend)
    compiling = FIRST_COMPILE * (not _repeats(runs, wanted))
    stages = _grown(_nearest(alike or runs, wanted.n), wanted.n, *GROWING)
    return Expected(one, _passes(one, wanted, brief) + stages + _checking(runs, wanted) + compiling, compiling)


def scaled(seconds: float, n: int, wanted: int, backend: str) -> float:
    """Seconds of a pass at the wanted size, where one at n took so long."""
    bound = min(wanted, LAUNCH_BOUND if backend == "cuda" else 0)
    return seconds * max(1.0, bound / n) ** 2 * (wanted / max(n, bound)) ** 3


def known(model: Model, wanted: Experiment) -> bool:
    """Whether that kernel ran at that size or a smaller one."""
    return any(run.n <= wanted.n for run in _alike(_timed(model), wanted))


def _passes(one: float, wanted: Experiment, brief: bool) -> float:
    warm_up = one * (not brief or kernel_named(wanted.kernel).compiles)
    stable = max(one, min(wanted.budget, max(ENOUGH_SECONDS, ENOUGH_PASSES * one)))
    clean = wanted.repeats * one if wanted.repeats else stable
    return warm_up + clean + (0.0 if brief else max(one, min(PHASE_SECONDS, PHASE_PASSES * one)))


def _checking(runs: Sequence[Run], wanted: Experiment) -> float:
    """Seconds of the check: as long as that of the nearest sampled run, by n^2, and SciPy's own time for a graph's first."""
    sampled = _nearest([r for r in runs if _sampled(r.experiment.verify, r.n, r.backend)], wanted.n)
    seconds = _grown(sampled, wanted.n, "verify")
    made = any(r.experiment.graph == wanted.graph and not _sampled(r.experiment.verify, r.n, r.backend) for r in runs)
    made |= _sampled(wanted.verify, wanted.n, kernel_named(wanted.kernel).backend)
    return seconds if made else seconds + REFERENCE * wanted.n**3


def _sampled(verify: str, n: int, backend: str) -> bool:
    """Whether not every cell is compared with SciPy's."""
    return verify in ("sample", "off") or (verify == "auto" and n > FULL_CHECK.get(backend, 0))


def _grown(run: Run | None, n: int, *stages: str) -> float:
    """Seconds of that run's stages as they would be at n, if it is larger."""
    if run is None:
        return 0.0
    return sum(run.stage_seconds(name) or 0.0 for name in stages) * max(1.0, n / max(run.n, ONLY_OVERHEAD)) ** 2


def _timed(model: Model) -> list[Run]:
    return [r for r in model.runs.values() if r.state == "done" and r.seconds and r.n]


def _repeats(runs: Sequence[Run], wanted: Experiment) -> list[Run]:
    """Runs of exactly that, of whatever size."""
    kernel = kernel_named(wanted.kernel)
    return [r for r in runs if same(r, wanted, kernel)]


def _alike(runs: Sequence[Run], wanted: Experiment) -> list[Run]:
    """Runs of exactly that, else of the same kernel."""
    return _repeats(runs, wanted) or [r for r in runs if r.experiment.kernel == wanted.kernel]


def _nearest(runs: Sequence[Run], n: int) -> Run | None:
    below = [r for r in runs if r.n <= n]
    return max(below, key=lambda r: (r.n, r.id)) if below else min(runs, key=lambda r: r.n, default=None)
