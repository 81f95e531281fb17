"""The target of a profiler: one launch of each of a kernel's operations between cuProfilerStart and cuProfilerStop.

`python -P -m fwtui.measure.profile_process REQUEST` takes a ProfileRequest as JSON, because a profiler uses stdin. It writes a
ProfiledLaunch to stdout before each such launch.
"""

from __future__ import annotations

import sys
import time

from fwtui.common.child_protocol import Parent, serve
from fwtui.engine.engine_for import engine_for
from fwtui.experiment.experiment import changed
from fwtui.measure.repetitions import representatives
from fwtui.measure.run_context import RunContext
from fwtui.measure.runner import Runner
from fwtui.measure.user_kernel_process import resolve_kernel
from fwtui.stream.requests import ProfiledLaunch, ProfileRequest
from fwtui_kernels.compiled import driver_calls


def count(request: ProfileRequest, parent: Parent) -> None:
    """Run the kernel's plan up to the last profiled launch. Raises Refused if it does not fit."""
    experiment = request.experiment
    kernel, engine = resolve_kernel(experiment, request.own), engine_for(experiment.runs_on)
    context = RunContext(0, changed(experiment, verify="off"), kernel, engine, lambda: None, lambda event: None, time.monotonic)
    with Runner().ready(context) as (_, _, repetitions):
        it = repetitions.instance
        it.restore()
        steps = representatives(it.plan)
        for index, step in enumerate(it.plan[: max(steps) + 1]):
            if index not in steps:
                it.launch(step)
                continue
            engine.synchronize()
            parent.send(ProfiledLaunch(step.op, step.cost.relaxations))
            driver_calls.start_profiler()
            it.launch(step)
            engine.synchronize()
            driver_calls.stop_profiler()


def _answer(request: ProfileRequest, parent: Parent) -> None:
    count(request, parent)
    raise SystemExit  # the profiler needs a normal shutdown


if __name__ == "__main__":
    serve(ProfileRequest, _answer, requests=[sys.argv[1].encode()])
