"""Many small graphs at once on a CPU: each is closed by one core, in its cache."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.plan import Cost, Kernel, Rect, Shape, Step
from fwtui_kernels.programs.cpu_stack import CpuStack


def plan(shape: Shape, stepwise: bool, op: str = "close_all") -> Iterator[Step]:
    everything = Rect(0, 0, shape.n, shape.n)
    # a graph is read once and written once: in between it does not leave its core, or its block
    cost = Cost(shape.graphs * shape.n**3, 2 * shape.graphs * shape.n**2 * shape.itemsize)
    yield Step(op, "all", (), cost, (everything,), (everything,))


KERNEL = Kernel(
    id="stacked-cpu",
    title="Many small graphs",
    backend="cpu",
    papers=("R. W. Floyd, Algorithm 97: Shortest Path, CACM 5(6), 1962",),
    phases={"all": "all graphs"},
    plan=plan,
    build=lambda shape, target: CpuStack(shape),
    summary="Many small graphs at once: each is closed by one core, in its cache.",
    lesson=(
        "Cores that share one matrix wait for each other in every round. With thousands of small graphs nobody needs to wait: "
        "each core takes a whole graph and does the three nested loops in it. A graph of 64 vertices is 16 KiB of float32, which "
        "is less than the first-level cache of a core. So memory is read once and written once for each graph, and no round has "
        "a barrier. Ask for many with `--graphs`: one graph keeps one core busy and all others idle."
    ),
    max_n=256,
    stacks=True,
)
