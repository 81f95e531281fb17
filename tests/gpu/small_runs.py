"""Every CUDA kernel, or those named, on small sizes in this process: what a memory checker is put around."""

from __future__ import annotations

import sys

from covering import covering

from fwtui import events
from fwtui.experiment import Experiment, settle
from fwtui.measure.cuda_engine import CudaEngine
from fwtui.measure.runner import Runner
from kernels import registry
from kernels.plan import Target


def experiments(sizes: tuple[int, ...], target: Target | None = None, strength: int = 2) -> list[Experiment]:
    """Each CUDA kernel at each size with a few combinations of its types, tiles, options and launch modes: every two values
    meet (strength 2), or every value occurs (1). What `target` lacks something for is left out.
    """
    asked = [
        settle(
            Experiment(
                kernel=kernel.id,
                n=n,
                dtype=row["dtype"],
                tile=row["tile"],
                options={o.name: row["option", o.name] for o in kernel.options},
                launch=row["launch"],
                repeats=1,
                verify="full",
            )
        )
        for kernel in registry().values()
        if kernel.backend == "cuda"
        for row in covering(
            {
                "dtype": kernel.dtypes,
                "tile": kernel.tiles or (0,),
                "launch": kernel.launch_modes,
                **{("option", o.name): o.values for o in kernel.options},
            },
            strength,
        )
        for n in sizes
    ]
    return [e for e in asked if target is None or registry()[e.kernel].lacks(e.shape(e.n), target) is None]


def verdicts(asked: list[Experiment], engine: CudaEngine) -> list[tuple[Experiment, str, str]]:
    """Run them all; (experiment, verdict, how) of each."""
    told: list[events.Event] = []
    runner = Runner(told.append, lambda: 0.0, lambda kernel, experiment: engine)
    for number, experiment in enumerate(asked, 1):
        runner.run(number, experiment, lambda: None)
    found = {e.run: (e.verdict, e.how) for e in told if isinstance(e, events.Verdict)}
    ends = {e.run: e for e in told if isinstance(e, events.RunDone)}
    return [(e, *found.get(i, (ends[i].outcome, ends[i].message))) for i, e in enumerate(asked, 1)]


if __name__ == "__main__":
    gpu = CudaEngine()
    sizes = tuple(int(word) for word in sys.argv[1:] if word.isdecimal()) or (1, 9, 33, 70)
    kernels = [word for word in sys.argv[1:] if not word.isdecimal()]
    asked = [e for e in experiments(sizes, gpu.target, strength=1) if not kernels or e.kernel in kernels]
    wrong = [v for v in verdicts(asked, gpu) if v[1] != "verified"]
    for experiment, verdict, how in wrong:
        print(experiment.kernel, experiment.n, experiment.dtype, experiment.tile, experiment.options, verdict, how)
    sys.exit(bool(wrong))
