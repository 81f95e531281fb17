"""A kernel's own program on a small graph, stopped after every step to show the distances; never timed.

`python -P -m fwtui.measure.step_process` reads a StepRequest as JSON from stdin and writes one JSON line for each step,
{"step", "distances"}, null for no path. A kernel that computes in several matrices stops only after its last step.
"""

from __future__ import annotations

import numpy as np

from fwtui.common.child_protocol import Parent, serve
from fwtui.common.errors import Refused
from fwtui.engine.engine_for import engine_for
from fwtui.engine.kernel_instance import check_supported, load_kernel
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import kernel_named
from fwtui.graphs.canonical import no_path
from fwtui.graphs.graph import graph_of
from fwtui.measure.user_kernel_process import register_here
from fwtui.stream.requests import DistancesAfter, StepRequest
from fwtui_kernels.plan import FLOATS, NO_EDGE


def send_steps(request: StepRequest, parent: Parent) -> None:
    """Run the plan and send the distances. Raises Refused if the kernel does not support the graph."""
    experiment = request.experiment
    register_here(experiment.kernel, request.own, experiment.code)
    kernel = kernel_named(experiment.kernel)
    matrix = _matrix(request.weights, experiment.dtype)
    graph = graph_of(matrix, integer=True)
    shape = experiment.shape(graph.n, graph.nonnegative)
    engine = engine_for(DeviceId(kernel.backend))
    check_supported(kernel, shape, engine)
    plan = list(kernel.plan(shape, True))
    always = all(rect.buffer == 0 for step in plan for rect in step.writes)
    with load_kernel(kernel, shape, engine, matrix, plan) as it:
        for index, step in enumerate(plan):
            it.launch(step)
            if always or index == len(plan) - 1:
                distances = it.distances(graph)
                rows = distances.astype(np.float64).astype(object)
                rows[no_path(distances)] = None
                parent.send(DistancesAfter(index, rows.tolist()))


def _matrix(weights: tuple[tuple[float | None, ...], ...], dtype: str) -> np.ndarray:
    """Return the weights in the kernel's data type. Raises Refused for one that does not fit."""
    matrix = np.array(weights, np.float64)  # NaN for no edge
    most = NO_EDGE[dtype] // 2 if dtype not in FLOATS else 2**20
    for weight in matrix[np.abs(matrix) > most]:
        raise Refused(f"the weight {weight:g} does not fit {dtype}; choose one up to {most}")
    return np.where(np.isnan(matrix), NO_EDGE[dtype], matrix).astype(dtype)


if __name__ == "__main__":
    serve(StepRequest, send_steps, too_large="the graph does not fit into memory; choose a smaller n")
