"""What a profiler runs: one launch of each of a kernel's operations between cuProfilerStart and cuProfilerStop, no clock.

`python -P -m fwtui.measure.profile_target EXPERIMENT`, the experiment as JSON.
Before each such launch a line on stdout says what it is.
"""

from __future__ import annotations

import json
import sys

import msgspec
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.engine.cuda_engine import CudaEngine, checked
from fwtui.engine.engine import one_of_each_op
from fwtui.engine.memory import check_memory
from fwtui.experiment.experiment import Experiment, kernel_named
from fwtui.graphs.files import read
from fwtui.graphs.generate import generate
from fwtui.measure.inputs import fill_for
from fwtui.measure.phases import representatives
from fwtui.stream.requests import PROFILED_LAUNCH, ProfiledLaunch


def count(experiment: Experiment) -> None:
    """Run the kernel's plan up to the last launch that is looked at. Raises Refused where it does not fit."""
    kernel = kernel_named(experiment.kernel)
    engine = CudaEngine(experiment.device_id.index)
    generated = not experiment.file
    graph = (
        generate(experiment, fill_for(engine, experiment.n))
        if generated
        else read(experiment.file, experiment.dtype, kernel.max_n)
    )
    shape = experiment.shape(graph.n, nonnegative=graph.low is None or graph.low >= 0)
    refusal = kernel.refuses(shape) or kernel.lacks(shape, engine.target)
    if refusal:
        raise Refused(refusal)
    check_memory(kernel, shape, engine)
    plan = list(kernel.plan(shape, False))
    program = kernel.build(shape, engine.target)
    buffers = program.allocate()
    program.load(graph.matrix, buffers, engine.stream)
    for step in one_of_each_op(plan):
        program.launch(step, buffers, engine.stream)
    program.restore(buffers, engine.stream)
    engine.synchronize()
    chosen = representatives(plan)
    for index, step in enumerate(plan[: max(chosen) + 1]):
        if index not in chosen:
            program.launch(step, buffers, engine.stream)
            continue
        engine.synchronize()
        print(PROFILED_LAUNCH + json.dumps(ProfiledLaunch(step.op, step.cost.relaxations)._asdict()), flush=True)
        checked(driver.cuProfilerStart())
        program.launch(step, buffers, engine.stream)
        engine.synchronize()
        checked(driver.cuProfilerStop())


def main() -> int:
    try:
        count(msgspec.json.decode(sys.argv[1], type=Experiment))
    except (Refused, MemoryError) as error:
        print(f"fwtui: {clean(str(error)) or 'the memory of this machine is exhausted; choose a smaller n'}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
