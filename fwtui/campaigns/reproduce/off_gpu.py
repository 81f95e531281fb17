"""What a kernel's compiled form takes of a multiprocessor: from a run's own words, else from compiling it without a GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from fwtui.analysis.occupancy import occupancy
from fwtui.campaigns.reproduce.results import Missing, Results, same
from fwtui.common.child_process import ChildProcess, python
from fwtui.common.environment import worker_environment
from fwtui.experiment.experiment import Experiment
from kernels import registry

TIMEOUT = 120.0
OP = "rest"  # the op that decides a blocked kernel's time


def shared_bytes(results: Results, kernel_id: str) -> tuple[int, str]:
    """Bytes of shared memory of the kernel's main op, and in words how many blocks fit and what limits them. Raises Missing.

    For float32, the kernel's own tile and options.
    """
    if kernel_id not in registry():
        raise Missing(f"kernel missing: {kernel_id}")
    wanted = Experiment(kernel=kernel_id)
    for run in results.runs:
        told = next((o for o in run.occupancies if o.op == OP), None)
        if told is not None and same(run, wanted, registry()[kernel_id]):
            cc = results.model.gpu.compute_capability if results.model.gpu is not None else None
            table = occupancy(cc, told.threads, told.registers, told.shared_bytes)
            allowed = f"{table.limits['shared memory']} by shared memory, " if table and "shared memory" in table.limits else ""
            limited = f", limited by {', '.join(told.limiters)}" if told.limiters else ""
            return told.shared_bytes, f"here {allowed}{told.blocks} fit{limited}"
    compiled = _compiled(kernel_id)
    if isinstance(compiled, str):
        raise Missing(compiled)
    return compiled[OP], "compiled without a GPU"


@cache
def _compiled(kernel_id: str) -> Mapping[str, int] | str:
    """Shared bytes by op, or in words why it could not be compiled."""
    try:
        ended = ChildProcess(python("fwtui.measure.off_gpu_compile", kernel_id), worker_environment("real")).finish(TIMEOUT)
    except OSError:
        return "the compiler did not answer"
    if ended.code:
        return "needs a GPU, or the CUDA compiler of numba-cuda"
    return json.loads(ended.stdout) if ended.code == 0 else "the compiler did not answer"
