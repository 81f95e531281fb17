"""The rungs that take many graphs at once: their plans, and every graph of a stack as if it were alone."""

import threading
from typing import Any

import numpy as np
import pytest
from in_simulator import in_simulator
from pretending import Pretend

from fwtui.common.errors import NoGpu
from fwtui.engine.verify import reference
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.canonical import NO_PATH
from fwtui.learn.stepping import stepping
from fwtui.machine.auto import settle_here
from fwtui_kernels import registry
from fwtui_kernels.compiled import cpu_stacks
from fwtui_kernels.plan import Shape

STACKED = [kernel for kernel in registry().values() if kernel.stacks]
SIMULATED = """
from fwtui.engine.verify import Verifier
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import fill_numpy, generate
from fwtui.graphs.canonical import canonical
from fwtui_kernels import registry
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.plan import Shape, Target

kernel, stream = registry()["stacked"], cuda.stream()
for n, dtype in ((6, "float32"), (9, "int32"), (5, "int16")):
    graph = generate(Experiment(n=n, graphs=3, dtype=dtype), fill_numpy)
    shape = Shape(n, dtype=dtype, graphs=3)
    program = kernel.build(shape, Target("simulator"))
    buffers = program.allocate()
    program.load(graph.matrix, buffers, stream)
    for repetition in range(2):
        program.restore(buffers, stream)
        for step in kernel.plan(shape, False):
            program.launch(step, buffers, stream)
    found = canonical(program.unload(buffers, stream), graph, dtype)
    print(Verifier().check(graph, "key", found, "full", 512, kernel.id).how)
"""


@pytest.mark.parametrize("kernel", STACKED, ids=lambda kernel: kernel.id)
def test_a_plan_costs_as_much_as_that_of_each_graph(kernel: Any) -> None:
    alone, many = (list(kernel.plan(Shape(13, graphs=graphs), False)) for graphs in (1, 1000))
    for one, all_of_them in zip(alone, many, strict=True):
        assert all_of_them.cost.relaxations == 1000 * one.cost.relaxations
        assert all_of_them.cost.device_bytes == 1000 * one.cost.device_bytes
        assert (all_of_them.reads, all_of_them.writes) == (one.reads, one.writes)


def test_one_launch_on_a_gpu_does_them_all() -> None:
    assert in_simulator(SIMULATED).splitlines() == [
        "108 cells of all 3 graphs equal SciPy's",
        "243 cells of all 3 graphs equal SciPy's",
        "75 cells of all 3 graphs equal SciPy's",
    ]


def test_one_of_many_graphs_is_followed_and_many_are_sent_to_the_cpus_kernel_without_a_gpu(pretend: Pretend) -> None:
    s = stepping(Experiment(kernel="stacked-cpu", n=8, graphs=1000))
    s.go(len(s.trace.moments))
    assert s.trace.shape.graphs == 1 and len(s.trace.moments) == 8
    alone = reference(generate(Experiment(n=8, dtype="int32")), None)
    np.testing.assert_array_equal(np.where(np.isinf(s.distances), NO_PATH, s.distances), alone)
    with pytest.raises(NoGpu, match="choose a CPU kernel such as stacked-cpu, or n up to"):
        settle_here(Experiment(kernel="stacked", n=64, graphs=3))


def test_threads_are_started_only_for_work_that_takes_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_stacks, "get_num_threads", lambda: 2)
    calls: list[tuple[int, int, bool]] = []

    def function(begin: int, end: int, first: Any, sizes: Any) -> None:
        calls.append((begin, end, threading.current_thread() is threading.main_thread()))

    for n, graphs in ((16, 5), (64, 10), (0, 3)):
        cpu_stacks.on_all_cores(function, None, np.full(graphs, n, np.int32))
        assert calls == [(0, graphs, True)]
        calls.clear()
    cpu_stacks.on_all_cores(function, None, np.full(10_000, 64, np.int32))
    calls.sort()
    assert [begin for begin, _, _ in calls] == [0, *(end for _, end, _ in calls[:-1])] and calls[-1][1] == 10_000
    assert len(calls) == 16 and not any(main for _, _, main in calls)
