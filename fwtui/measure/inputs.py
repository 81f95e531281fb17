"""The graph of a run: generated or read, checked, and cached for the next run."""

from __future__ import annotations

import os
from contextlib import suppress

from fwtui.common.small_file import file_version
from fwtui.engine.engine import Engine
from fwtui.engine.kernel_instance import check_supported
from fwtui.engine.memory_check import check_memory
from fwtui.engine.reference_distances import distances_from
from fwtui.experiment.experiment import SIMULATOR_MAX_N
from fwtui.experiment.generate import Fill, compile_fill, generate
from fwtui.graphs.bounds import check_range
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.graph_loader import read
from fwtui.measure.run_context import RunContext
from fwtui.stream import events
from fwtui_kernels.plan import Shape

GENERATED_THERE = 4096  # smaller graphs are generated on the CPU before a GPU's generator is compiled
Key = tuple[object, ...]  # equal keys, equal graphs


class Inputs:
    """A cache of the last graph."""

    def __init__(self) -> None:
        self._last: tuple[Key, GraphInput] | None = None

    def graph(self, context: RunContext) -> tuple[Key, GraphInput, Shape]:
        """Return the experiment's graph, its key, and the kernel's shape for it; report it as a Graph event.

        Raises Refused if the graph cannot be generated or read, does not fit, or is not supported by the kernel.
        """
        experiment, kernel, engine = context.experiment, context.kernel, context.engine
        if not experiment.file:
            check_memory(kernel, experiment.shape(experiment.n), engine, experiment.verify == "full")
        version: tuple[int, ...] = ()
        with suppress(OSError):  # the reader reports it
            version = file_version(os.stat(experiment.file))
        same = (*experiment.graph, experiment.file, *version)
        key = (*same, experiment.dtype)
        if self._last is None or self._last[0] != key:
            self._last = None  # never two graphs in memory
            if experiment.file:
                most = SIMULATOR_MAX_N if engine.target.backend == "simulator" else kernel.max_n
                with context.stage("read", version[-1] if version else None):
                    graph = read(
                        experiment.file, experiment.dtype, most, progress=context.progress("read"), options=experiment.reading
                    )
            else:
                fill = fill_for(engine, experiment.n)
                compile_fill(experiment, fill)
                with context.stage("graph"):
                    graph = generate(experiment, fill)
            self._last = key, graph
        graph = self._last[1]
        context.check()
        shape = experiment.shape(graph.n, graph.nonnegative)
        if experiment.file:
            check_memory(kernel, shape, engine, experiment.verify == "full")
        check_supported(kernel, shape, engine)
        proof = check_range(graph, experiment.dtype, distances_from)
        context.emit_event(
            events.Graph,
            vertices=graph.n,
            edges=graph.edges,
            low=graph.low,
            high=graph.high,
            negative_share=graph.negative_share,
            name=graph.name,
            note="; ".join(filter(None, (graph.note, f"range {proof}" if proof else ""))),
        )
        # the graph does not depend on the computing type: checksums are comparable across types
        return same, graph, shape


def fill_for(engine: Engine, n: int) -> Fill:
    """Return the fastest generator for n vertices: on the engine's device, or compiled for the CPU."""
    if n >= GENERATED_THERE and engine.fill is not None:
        return engine.fill
    from fwtui.engine.generate_cpu import fill  # imports numba

    return fill
