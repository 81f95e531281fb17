"""The engine for a graph, and the representation in which that engine solves it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from fwtui.common.errors import Refused
from fwtui.common.text import excerpt
from fwtui.engine.engine import Engine
from fwtui.experiment.device import DeviceId
from fwtui.graphs.adjacency import DeviceArray, GivenGraph
from fwtui.solver import choose
from fwtui.solver.call import Call
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.result import Result
from fwtui.solver.solver_graph import SolverGraph


def answer(graph: GivenGraph | DeviceArray, call: Call | None = None, engine: Engine | None = None) -> Result:
    """Return all distances of one graph. The call chooses the engine unless `engine` is given.

    Raises like solve.
    """
    call = call or Call()
    call.clock.lap("prepare")
    with _engine(graph, call) if engine is None else nullcontext(engine) as chosen_engine:
        try:
            return _represented(graph, call, chosen_engine).solve(call)
        except Exception as error:  # cuda.core and the driver have their own exception classes
            if "OUT_OF_MEMORY" not in str(error):
                raise
            raise Refused("the GPU's memory is exhausted; end other programs on the GPU, or choose a smaller graph") from None


def _engine(graph: GivenGraph | DeviceArray, call: Call) -> AbstractContextManager[Engine]:
    """Return the engine of one device, or of a job that ends with the block. Raises Refused."""
    resident = not isinstance(graph, GivenGraph)
    if call.devices is not None:
        if resident:
            what = "need a graph in host memory, but the array is on a GPU; copy it to the host, or omit devices"
            raise Refused(f"devices {excerpt(call.devices)} {what}")
        if call.device is not None:
            raise Refused(
                f"devices {excerpt(call.devices)} and device {excerpt(str(call.device))} cannot be combined; pass only one"
            )
        from fwtui.solver.mpi_engine import job_engine

        return job_engine(call.devices)
    if call.keep_on_device and call.named is not None and call.named.backend != "cuda":
        raise Refused(f"kernel {call.kernel} runs on the CPU, so that keep='device' has no effect; omit one of them")
    if call.named is not None and call.named.backend != "cuda":
        if resident:
            raise Refused(
                f"kernel {call.kernel} runs on the CPU, and the array is on a GPU; copy it to the host, or omit the kernel"
            )
        if call.device is not None and DeviceId.parse(str(call.device), "cpu").backend == "cuda":
            way = "omit the device, or choose a GPU kernel"
            raise Refused(f"kernel {call.kernel} runs on the CPU, which has no device {call.device}; {way}")
        return nullcontext(choose.CPU)
    if resident:  # the size does not matter, and the object may have no length
        return nullcontext(choose.choose_engine(call.device, 0, "an array on a GPU"))
    needed_by = f"kernel {call.kernel}" if call.named is not None else "keep='device'" if call.keep_on_device else ""
    return nullcontext(choose.choose_engine(call.device, graph.n, needed_by))


def _represented(graph: GivenGraph | DeviceArray, call: Call, engine: Engine) -> SolverGraph:
    """Represent the graph for the engine. Raises Refused."""
    if engine.target.backend != "cpu" and not engine.elsewhere:
        from fwtui.solver import device_graph

        engine.activate()
        call.clock.lap("set-up")
        if not isinstance(graph, GivenGraph):
            from fwtui_kernels.compiled.device import cuda

            return device_graph.of_device_array(cuda.as_cuda_array(graph), engine)
        there = device_graph.to_device(graph, engine, call.clock, call.keep_on_device)
        if there is not None:
            return there
    assert isinstance(graph, GivenGraph)
    if engine is choose.CPU:
        call.clock.lap("set-up")
    return HostGraph(graph, engine, keep=call.keep_on_device)
