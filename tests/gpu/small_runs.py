"""Every CUDA kernel once on small sizes, in this process: what a memory checker is put around."""

from __future__ import annotations

import sys
from itertools import product

from fwtui import events
from fwtui.experiment import Experiment, settle
from fwtui.measure.cuda_engine import CudaEngine
from fwtui.measure.runner import Runner
from kernels import registry


def experiments(sizes: tuple[int, ...]) -> list[Experiment]:
    """Each CUDA kernel, type, tile, block size and launch mode, at each size."""
    return [
        settle(Experiment(kernel=k.id, n=n, dtype=dtype, tile=tile, options=options, launch=mode, repeats=1, verify="full"))
        for k in registry().values()
        if k.backend == "cuda"
        for n, dtype, tile, mode in product(sizes, k.dtypes, k.tiles or (0,), k.launch_modes)
        for values in product(*[o.values for o in k.options])
        for options in [dict(zip([o.name for o in k.options], values, strict=True))]
    ]


def verdicts(asked: list[Experiment]) -> list[tuple[Experiment, str, str]]:
    """Run them all; (experiment, verdict, how) of each."""
    told: list[events.Event] = []
    engine = CudaEngine()
    runner = Runner(told.append, lambda: 0.0, lambda kernel, experiment: engine)
    for number, experiment in enumerate(asked, 1):
        runner.run(number, experiment, lambda: None)
    found = {e.run: (e.verdict, e.how) for e in told if isinstance(e, events.Verdict)}
    ends = {e.run: e for e in told if isinstance(e, events.RunDone)}
    return [(e, *found.get(i, (ends[i].outcome, ends[i].message))) for i, e in enumerate(asked, 1)]


if __name__ == "__main__":
    wrong = [v for v in verdicts(experiments(tuple(map(int, sys.argv[1:])) or (1, 9, 33, 70))) if v[1] != "verified"]
    for experiment, verdict, how in wrong:
        print(experiment.kernel, experiment.n, experiment.dtype, experiment.tile, experiment.options, verdict, how)
    sys.exit(bool(wrong))
