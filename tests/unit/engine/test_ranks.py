"""Ranks: the steps of a plan that each launches, and the division of broadcast time."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from fwtui.engine import distributed_engine
from fwtui.engine.engine import HostEngine, PhaseStretch
from fwtui.engine.kernel_instance import load_kernel
from fwtui.engine.links import NcclLink
from fwtui_kernels import registry
from fwtui_kernels.plan import EVERY, Cost, Shape, Step, Target


def step(rank: int, after: tuple[int, ...] = (), phase: str = "a") -> Step:
    return Step(f"op {rank}", phase, (), Cost(1, 2), (), (), 0, after, rank)


def test_a_rank_launches_its_own_steps_and_waits_for_none_of_others() -> None:
    plan = [step(0), step(1), step(EVERY, (0, 1)), step(1, (2,)), step(0, (1, 2))]
    assert [(s.op, s.after) for s in distributed_engine.steps_of_rank(plan, 0)] == [("op 0", ()), ("op -1", (0,)), ("op 0", (1,))]
    assert [(s.op, s.after) for s in distributed_engine.steps_of_rank(plan, 1)] == [("op 1", ()), ("op -1", (0,)), ("op 1", (1,))]


def test_nccl_gets_the_bytes_of_an_array_as_a_buffer_that_knows_its_gpu() -> None:
    core = pytest.importorskip("cuda.core", reason="the CUDA packages are not installed")
    from fwtui_kernels.compiled.cuda_memory import as_cuda_array

    cells = np.arange(12, dtype=np.int16)  # nothing reads its address
    array = as_cuda_array(SimpleNamespace(__cuda_array_interface__=cells.__array_interface__))[2:]
    link = object.__new__(NcclLink)
    link._nccl = Mock()
    link.broadcast(array, 1, SimpleNamespace(handle=7))
    (sent, received, owner), others = link._nccl.broadcast.call_args
    assert isinstance(sent, core.Buffer) and sent is received and (owner, others) == (1, {"stream": 7})
    assert (sent.handle, sent.size) == (cells.ctypes.data + 4, 20)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_ranks_parts_are_the_whole_plan(ranks: int) -> None:
    kernel = registry()["distributed-cpu"]
    plan = list(kernel.plan(Shape(200, 32, ranks=ranks), False))
    parts = distributed_engine.add_wait_stretches(plan)
    assert [s for part in parts for s in part.steps] == plan
    assert [part.phase for part in parts].count("wait") == sum(s.rank == EVERY for s in plan)
    for rank in range(ranks):
        own = [s for part in parts for s in distributed_engine.stretch_of_rank(part, rank).steps]
        assert [s.args for s in own] == [s.args for s in distributed_engine.steps_of_rank(plan, rank)]


def test_the_ranks_free_their_buffers_when_the_program_is_done_with_unless_it_failed() -> None:
    kernel, shape, engine = registry()["distributed-cpu"], Shape(64, 32, ranks=2), Mock(target=Target("cpu"))
    engine.build.return_value = distributed_engine.DistributedProgram(engine, shape, Mock())
    with load_kernel(kernel, shape, engine):
        pass
    with pytest.raises(ValueError), load_kernel(kernel, shape, engine):
        raise ValueError
    assert [type(one.args[0]) for one in engine.on_all_ranks.call_args_list] == [
        distributed_engine.Allocate,
        distributed_engine.Free,
        distributed_engine.Allocate,
    ]
    work = distributed_engine.RankState(Mock(rank=0), HostEngine(Target("cpu")), Mock())
    work.buffers, work.timed = [0], lambda check: 0.0
    distributed_engine.Free().execute(work)
    distributed_engine.Free().execute(work)
    assert not {"buffers", "timed"} & set(vars(work))


def test_the_shortest_broadcast_is_the_transfer_and_the_rest_of_a_longer_one_is_waiting() -> None:
    parts = [PhaseStretch("rest", (step(0),)), PhaseStretch("broadcast", (step(EVERY),)), PhaseStretch("wait", ())]
    timed = distributed_engine.separate_waits(parts, [[5.0, 1.0, 0.0], [2.0, 4.0, 0.0]])
    assert timed.ranks == ([5.0, 1.0, 0.0], [2.0, 1.0, 3.0])
    assert timed.seconds == [3.5, 1.0, 1.5] and timed.total == 6.0
