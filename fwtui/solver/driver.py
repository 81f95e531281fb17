"""The engine for a graph, the memory in which that engine has it, and the data type of its distances."""

from __future__ import annotations

from fwtui.common.errors import Refused
from fwtui.engine.engine import Engine
from fwtui.experiment.device import DeviceId
from fwtui.graphs.adjacency import DeviceArray, GivenGraph
from fwtui.graphs.bounds import choices
from fwtui.solver import engine_choice
from fwtui.solver.call import Call
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.kernel_run import solve_in
from fwtui.solver.result import Result


def answer(graph: GivenGraph | DeviceArray, call: Call | None = None, engine: Engine | None = None) -> Result:
    """Return all distances of one graph. The call chooses the engine unless `engine` is given.

    Raises like solve.
    """
    call = call or Call()
    call.clock.lap("prepare")
    if engine is None:
        if call.named is not None and call.named.backend != "cuda":
            _check_cpu_kernel(graph, call)
            engine = engine_choice.CPU
        elif isinstance(graph, GivenGraph):
            needed_by = f"kernel {call.kernel}" if call.named is not None else "keep='device'" if call.keep_on_device else ""
            engine = engine_choice.choose_engine(call.device, graph.n, needed_by)
        else:  # the size does not matter, and the object may have no length
            engine = engine_choice.choose_engine(call.device, 0, "an array on a GPU")
    try:
        represented = None
        engine.activate()
        if engine.target.backend != "cpu" and not engine.ranks:
            from fwtui.solver import device_graph

            call.clock.lap("set-up")
            represented = device_graph.on_gpu(graph, engine, call)
        if represented is None:
            assert isinstance(graph, GivenGraph)
            if engine is engine_choice.CPU:
                call.clock.lap("set-up")
            represented = HostGraph(graph, engine, graph.adjacency.facts, call.keep_on_device)
        for choice in choices(represented.facts, call.dtype, represented.reach):
            call.clock.lap("prepare")
            if (result := solve_in(represented, choice, call)) is not None:
                return result
    except Exception as error:  # cuda.core and the driver have their own exception classes
        if "OUT_OF_MEMORY" not in str(error):
            raise
        raise Refused("the GPU's memory is exhausted; end other programs on the GPU, or choose a smaller graph") from None
    raise Refused(f"some distances overflow {call.dtype}; pass a wider dtype, or omit dtype")


def _check_cpu_kernel(graph: GivenGraph | DeviceArray, call: Call) -> None:
    """Raise Refused if a kernel of the CPU cannot solve the graph."""
    if call.keep_on_device:
        raise Refused(f"kernel {call.kernel} runs on the CPU, so that keep='device' has no effect; omit one of them")
    if not isinstance(graph, GivenGraph):
        raise Refused(f"kernel {call.kernel} runs on the CPU, and the array is on a GPU; copy it to the host, or omit the kernel")
    if call.device is not None and DeviceId.parse(str(call.device), "cpu").backend == "cuda":
        way = "omit the device, or choose a GPU kernel"
        raise Refused(f"kernel {call.kernel} runs on the CPU, which has no device {call.device}; {way}")
