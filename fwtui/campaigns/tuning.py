"""The search for the fastest configuration of every kernel at one size, within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from msgspec.structs import asdict, replace

from fwtui.analysis.estimate import RATES
from fwtui.campaigns.queue import Queue
from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment, changed, kernel_named, settle
from fwtui.experiment.user_kernel_registry import code_of
from fwtui.live.session import Live
from fwtui.machine import tuning_table
from fwtui.machine.tuning_table import Config, TuningResult, config_of
from fwtui_kernels.plan import Kernel

FINALISTS, BEHIND = 3, 3.0  # kernels to tune, unless their defaults are this many times slower than the best
MEASURED_SECONDS = 0.4  # seconds of timed repetitions for each configuration
MAX_SECONDS = 20.0  # limit for one repetition of a configuration

Times = Mapping[Config, float | None]  # seconds; None: not runnable or incorrect


class Problem(NamedTuple):
    """A problem for which the table has a best configuration."""

    n: int
    dtype: str
    nonnegative: bool


def next_config(kernels: Sequence[Kernel], experiment: Experiment, times: Times) -> Config | None:
    """Return the next configuration to measure; None if nothing is left that could be faster.

    First every kernel with its defaults; then single changes to the best configuration of the fastest ones. It depends only
    on the measurements, so an interrupted search continues.
    """
    variants = {k.id: changed(experiment, kernel=k.id, code="", tile=0, options={}, launch="") for k in kernels}
    defaults = {
        name: config_of(settled) for name, experiment in variants.items() if (settled := _settled(experiment)) is not None
    }
    for config in defaults.values():
        if config not in times:
            return config
    by_default = sorted((seconds, name) for name, config in defaults.items() if (seconds := times[config]) is not None)
    for seconds, name in by_default[:FINALISTS]:
        if seconds > BEHIND * by_default[0][0]:
            break
        code = defaults[name].code
        of_kernel = [(t, c.label, c) for c, t in times.items() if (c.kernel, c.code) == (name, code) and t is not None]
        for neighbour in neighbours(kernel_named(name), min(of_kernel)[2]):
            if neighbour not in times and _settled(neighbour.applied(experiment)) is not None:
                return neighbour
    return None


def neighbours(kernel: Kernel, config: Config) -> list[Config]:
    """Yield the configurations that differ from this one in a single choice."""
    options = dict(config.options)
    others = [replace(config, tile=tile) for tile in kernel.tiles]
    others += [replace(config, launch=launch) for launch in kernel.launch_modes]
    for option in kernel.options:
        others += [replace(config, options=tuple(sorted({**options, option.name: v}.items()))) for v in option.values]
    return [other for other in others if other != config]


def _settled(experiment: Experiment) -> Experiment | None:
    """Fill in every default; None if the kernel does not accept the configuration."""
    try:
        return settle(experiment)
    except Refused:
        return None


class Tuner:
    """Measurements on a live session; each result is stored at once."""

    def __init__(
        self,
        live: Live,
        device: DeviceId,
        kernels: Sequence[Kernel],
        experiment: Experiment,
        report: Callable[[TuningResult, bool], None],
        fresh: bool = False,
    ):
        self._live = live
        self._device = device
        self._kernels = kernels
        self._experiment = experiment  # the graph, except for its size and number type
        self._report = report  # called with each result, and True if it is the best so far
        self.saved = True  # False: the cache folder could not be written
        self.results: dict[tuple[Problem, Config], TuningResult] = {}
        forgotten = {kernel.id for kernel in kernels} if fresh else set()
        for result in tuning_table.load(device):
            if result.kernel not in forgotten:
                self.results[Problem(result.n, result.dtype, result.nonnegative), result.config] = result

    def tune(self, problems: Sequence[Problem], seconds: float) -> bool:
        """Measure for at most `seconds`, divided among the problems; return whether all configurations were measured."""
        earlier = [result.run for result in self.results.values() if result.seconds]
        unknown = dict.fromkeys(RATES, inf)  # there is no estimate before the first run
        queue = Queue(self._live, seconds, brief=True, rates=unknown, earlier=earlier, most=MAX_SECONDS).go()
        whole = True
        for place, problem in enumerate(problems):
            whole &= self._one(problem, queue.share(1 / (len(problems) - place)))
        return whole

    def best(self, problem: Problem, kernel: str = "") -> TuningResult | None:
        """Return the fastest measured configuration of all rungs, or of that user kernel in the present version of its file."""
        code = code_of(kernel)
        results = [t for t in self._of(problem) if t.code == code and (not code or t.kernel == kernel)]
        return next(iter(tuning_table.fastest(results, *problem)), None)

    def _of(self, problem: Problem) -> list[TuningResult]:
        return [result for (of, _), result in self.results.items() if of == problem]

    def _one(self, problem: Problem, queue: Queue) -> bool:
        negative = self._experiment.negative if not problem.nonnegative else 0.0
        experiment = changed(self._experiment, n=problem.n, dtype=problem.dtype, negative=negative)
        skipped: dict[Config, None] = {}
        while True:
            measured = {result.config: result.seconds for result in self._of(problem)}
            config = next_config(self._kernels, experiment, {**measured, **skipped})
            if config is None:
                return not skipped
            if not queue.left:
                return False
            candidate = config.applied(experiment)
            if queue.refusal(candidate, queue.expect(candidate).one):
                skipped[config] = None
                continue
            user_kernel = config.kernel if config.code else ""
            before = self.best(problem, user_kernel)
            result = self._measured(queue, problem, config, candidate)
            if code_of(user_kernel) != config.code:
                raise Refused(f"the file of {user_kernel} has changed; run the command again to tune the new version")
            self.results[problem, config] = result
            self.saved = tuning_table.save(self.results.values(), self._device)
            faster = result.seconds is not None and (before is None or result.seconds < (before.seconds or 0.0))
            self._report(result, faster)

    def _measured(self, queue: Queue, problem: Problem, config: Config, experiment: Experiment) -> TuningResult:
        run = None
        try:
            run, note = queue.run(self._live.settled(changed(experiment, budget=MEASURED_SECONDS, repeats=0)))
        except Refused as refusal:
            note = str(refusal)
        if run is not None and not note and run.verified is not True:
            note = run.verdict.how if run.verdict is not None else "not verified"
        seconds = run.seconds if run is not None and not note else None
        fields = {**asdict(config), "options": dict(config.options)}
        return TuningResult(**problem._asdict(), **fields, seconds=seconds, note=note)
