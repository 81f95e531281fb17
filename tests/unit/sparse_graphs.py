"""Graphs of every kind with the results of the sparse kernels, also for programs in the simulator."""

from typing import Any

import numpy as np

from fwtui.engine.verify import scipy_distances
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import canonical
from fwtui.graphs.graph import GraphInput
from fwtui_kernels import registry
from fwtui_kernels.parts.elimination import at_once, in_rounds
from fwtui_kernels.parts.ordering import ordered
from fwtui_kernels.plan import Shape, Target


def graph(**asked: Any) -> GraphInput:
    return generate(Experiment(**{"dtype": "int32", **asked}))


def distances(kernel_id: str, tile: int, g: GraphInput) -> np.ndarray:
    """Return those of the kernel, with the order of least work whatever a launch costs, in canonical form."""
    kernel = registry()[kernel_id]
    shape = Shape(g.n, tile, g.dtype, nonnegative=g.nonnegative, options=kernel.defaults)
    shape = ordered(shape, g.matrix, launch=0, eliminated=in_rounds if kernel.backend == "cuda" else at_once)
    stream = None
    if kernel.backend == "cuda":
        from fwtui_kernels.compiled.device import cuda

        stream = cuda.stream()
    program = kernel.build(shape, Target("cpu" if stream is None else "simulator"))
    buffers = program.allocate()
    if stream is not None and shape.order is not None:  # distances back to separators need no memory in addition to the result
        assert np.shares_memory(buffers[1].cells, buffers[-1].cells)
    program.load(g.matrix, buffers, stream)
    for _ in range(2):
        program.restore(buffers, stream)
        for step in kernel.plan(shape, False):
            program.launch(step, buffers, stream)
    if stream is None:
        return canonical(program.unload(buffers, stream), g, g.dtype)
    if program.reorders:  # as a run does it, part by part
        program.unpack(buffers, stream)
    return canonical(program.copy_out(buffers, stream), g, g.dtype)


def right(kernel_id: str, tile: int, asked: dict[str, Any]) -> bool:
    """Return whether the distances are those of SciPy's Dijkstra."""
    g = graph(**asked)
    return np.array_equal(distances(kernel_id, tile, g), scipy_distances(g, g.potentials, by_dijkstra=True))
