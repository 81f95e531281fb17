"""The graph of an experiment, saved or printed; `python -P -m fwtui.measure.save_graph` serves a SaveRequest."""

from __future__ import annotations

import time
from pathlib import Path

from fwtui.common.atomic_file import check_writable
from fwtui.common.child_protocol import serve
from fwtui.common.streams import report
from fwtui.common.units import counted, duration, memory, vertices
from fwtui.experiment.experiment import SIMULATOR_MAX_N, Experiment
from fwtui.experiment.generate import check_memory, compile_fill, generate
from fwtui.graphs.formats import written_as
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.graph_loader import read
from fwtui.graphs.writers import check_small, check_whole, picture, write
from fwtui.stream.requests import SaveRequest

TOO_LARGE = "the graph does not fit into memory; choose a smaller n"


def save(experiment: Experiment, out: str, force: bool = True) -> None:
    """Save or print the graph. Raises Refused if it cannot be generated, saved or shown."""
    if out:
        written_as(out)
        check_writable(out, experiment.file, force=force)
        if experiment.real and not experiment.file:
            check_whole(Path(out), False)
    elif not experiment.file:
        check_small(experiment.n, SIMULATOR_MAX_N)
    begin = time.perf_counter()
    if experiment.file:
        graph = read(experiment.file, experiment.dtype, options=experiment.reading)
    else:
        check_memory(experiment)
        from fwtui.engine.generate_cpu import fill  # imports numba

        compile_fill(experiment, fill)
        begin = time.perf_counter()
        graph = generate(experiment, fill)
    saving = time.perf_counter()
    if not out:
        print("\n".join(picture(graph, SIMULATOR_MAX_N)))
        return
    size = write(graph, out, force=force)
    wrote = duration(time.perf_counter() - saving)
    way = "read" if experiment.file else "generated"
    report(f"{Path(out).name}: {describe(graph)}; {way} in {duration(saving - begin)}, {memory(size)} written in {wrote}")


def describe(graph: GraphInput) -> str:
    """Describe the graph's size and weights."""
    weights = f", weights {graph.low:g}..{graph.high:g}" if graph.low is not None and graph.high is not None else ""
    return f"{vertices(graph.n)}, {counted(graph.edges, 'edge')}{weights}"


if __name__ == "__main__":
    serve(SaveRequest, lambda request, parent: save(request.experiment, request.path), too_large=TOO_LARGE)
