"""The target of a profiler: one launch of each of a kernel's operations between cuProfilerStart and cuProfilerStop.

`python -P -m fwtui.measure.profile_target EXPERIMENT OWN`, the experiment as JSON and the file of its kernel, or nothing.
A line on stdout before each such launch describes it.
"""

from __future__ import annotations

import json
import sys
import time

import msgspec
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui.common.streams import reported
from fwtui.engine.engine import engine_for
from fwtui.experiment.experiment import Experiment, changed
from fwtui.measure.own_kernel import admit_here
from fwtui.measure.phases import representatives
from fwtui.measure.runner import Runner
from fwtui.stream.requests import PROFILED_LAUNCH, ProfiledLaunch
from fwtui_kernels.compiled.rectangles import checked


def count(experiment: Experiment, own: str) -> None:
    """Run the kernel's plan up to the last profiled launch. Raises Refused if it does not fit."""
    admit_here(experiment.kernel, own, experiment.code)
    engine = engine_for(experiment.device_id.on("cuda"))
    with Runner(lambda event: None, time.monotonic).loaded(changed(experiment, verify="off"), engine) as it:
        it.restore()
        chosen = representatives(it.plan)
        for index, step in enumerate(it.plan[: max(chosen) + 1]):
            if index not in chosen:
                it.launch(step)
                continue
            engine.synchronize()
            print(PROFILED_LAUNCH + json.dumps(ProfiledLaunch(step.op, step.cost.relaxations)._asdict()), flush=True)
            checked(driver.cuProfilerStart())
            it.launch(step)
            engine.synchronize()
            checked(driver.cuProfilerStop())


def main() -> int:
    experiment = msgspec.json.decode(sys.argv[1], type=Experiment)
    return reported(lambda: count(experiment, sys.argv[2]), "the memory of this machine is exhausted; choose a smaller n")


if __name__ == "__main__":
    sys.exit(main())
