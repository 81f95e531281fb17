"""The kernel itself beside its trace: compiled for the CPU or run in Numba's simulator, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Event

import msgspec
import numpy as np

from fwtui.common.environment import worker_environment
from fwtui.common.text import clean
from fwtui.experiment.experiment import Experiment
from fwtui.learn.trace import Trace
from fwtui.stream.requests import DistancesAfter, StepRequest

MOST_SECONDS = 120.0
LISTENS_EVERY = 0.2


class Agreement(msgspec.Struct, frozen=True):
    """How often the kernel's own run was looked at, after which step it first differed, or why there was none."""

    looks: int = 0
    wrong: int | None = None
    reason: str = ""

    @property
    def agrees(self) -> bool | None:
        """None where it is not known."""
        return None if self.reason or not self.looks else self.wrong is None


def compare(trace: Trace, experiment: Experiment, stop: Event) -> Agreement:
    """Run the kernel on the trace's graph and compare after every step; blocks for seconds, less where `stop` is set."""
    weights = trace.distances[0]
    request = StepRequest(experiment, tuple(tuple(None if np.isinf(w) else float(w) for w in row) for row in weights))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fwtui.measure.step_target"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **worker_environment("simulator" if trace.kernel.backend == "cuda" else "real")},
        start_new_session=True,
    )
    told: bytes | None = msgspec.json.encode(request)
    waited = 0.0
    while True:
        try:
            output, words = process.communicate(told, timeout=LISTENS_EVERY)
            break
        except subprocess.TimeoutExpired:
            told, waited = None, waited + LISTENS_EVERY
            if stop.is_set() or waited > MOST_SECONDS:
                process.kill()
                process.communicate()
                return Agreement(reason="not compared" if stop.is_set() else f"it took more than {MOST_SECONDS:g} s")
    if process.returncode:
        last = (words.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        return Agreement(reason=clean(last.removeprefix("fwtui: ")))
    looks = [msgspec.json.decode(line, type=DistancesAfter) for line in output.splitlines()]
    expected = trace.after_steps()
    differing = (look.step for look in looks if not np.array_equal(_matrix(look), expected[look.step]))
    return Agreement(len(looks), next(differing, None))


def _matrix(look: DistancesAfter) -> np.ndarray:
    return np.array([[np.inf if d is None else d for d in row] for row in look.distances])
