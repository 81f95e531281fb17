"""The kernel itself beside its trace: compiled for the CPU or run in Numba's simulator, in a separate process."""

from __future__ import annotations

from threading import Event

import msgspec
import numpy as np

from fwtui.common.child_process import ModuleProcess
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.own_kernels import path_of
from fwtui.learn.trace import Trace
from fwtui.stream.requests import DistancesAfter, StepRequest

MOST_SECONDS = 120.0


class Agreement(msgspec.Struct, frozen=True):
    """How many times the kernel's run was compared, after which step it first differed, or why it did not run."""

    looks: int = 0
    wrong: int | None = None
    reason: str = ""


def compare(trace: Trace, experiment: Experiment, stop: Event) -> Agreement:
    """Run the kernel on the trace's graph and compare after every step; blocks for seconds, less if `stop` is set."""
    try:
        return _compared(trace, experiment, stop)
    except Exception as error:
        return Agreement(reason=str(error))


def _compared(trace: Trace, experiment: Experiment, stop: Event) -> Agreement:
    weights = trace.distances[0]
    request = StepRequest(
        experiment, tuple(tuple(None if np.isinf(w) else float(w) for w in row) for row in weights), path_of(experiment.kernel)
    )
    process = ModuleProcess("fwtui.measure.step_target", simulated=trace.kernel.backend == "cuda")
    ended = process.finish(MOST_SECONDS, request, stop)
    if ended.code is None:
        return Agreement(reason="not compared" if stop.is_set() else f"it took more than {MOST_SECONDS:g} s")
    if ended.code:
        return Agreement(reason=ended.last_words)
    looks = [msgspec.json.decode(line, type=DistancesAfter) for line in ended.stdout.splitlines()]
    differing = (look.step for look in looks if not np.array_equal(_matrix(look), trace.distances[trace.ends[look.step]]))
    return Agreement(len(looks), next(differing, None))


def _matrix(look: DistancesAfter) -> np.ndarray:
    return np.array([[np.inf if d is None else d for d in row] for row in look.distances])
