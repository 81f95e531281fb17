"""Many small graphs in one launch: each is closed by one block, which keeps it in registers from the first k to the last.

    a block     loads its graph, 4 x 4 cells for each of its threads;
                for each k passes row k and column k through shared memory, one barrier, 16 relaxations a thread;
                stores its graph

No block waits for another one, and the graphs outnumber the multiprocessors: while the threads of one block wait at a barrier,
those of another one work.
"""

from __future__ import annotations

from functools import partial

from fwtui_kernels import k24_stacked_cpu
from fwtui_kernels.parts.stacks import CudaStack
from fwtui_kernels.plan import Kernel

KERNEL = Kernel(
    id="stacked",
    title="Many small graphs",
    papers=("R. W. Floyd, Algorithm 97: Shortest Path, CACM 5(6), 1962",),
    phases={"all": "all graphs"},
    plan=partial(k24_stacked_cpu.plan, op="close"),
    build=CudaStack,
    summary="Many small graphs in one launch: each is closed by one block, which keeps it in registers.",
    lesson=(
        "One small graph cannot fill a GPU: 64 vertices are 262,144 relaxations, and one multiprocessor does them while all "
        "others idle. A thousand launches in turn leave them idle a thousand times. Here one launch takes all graphs, a block "
        "for each. The block reads its graph once, keeps it in registers, 4 x 4 cells in a thread, and writes it back. Only row "
        "k and column k go through shared memory. Each k has one barrier, at which this block's threads wait and no others. "
        "A warp has room for 512 cells. So a graph of up to 32 vertices takes two warps, of up to 64 eight, and of up to "
        "128 thirty-two. That is the largest block there is, and the limit of this kernel. A multiprocessor holds several "
        "small blocks, and while one waits at its barrier another one works. So the rate grows with the number of graphs until "
        "every multiprocessor is full, and then stays: try 1, 100 and 10,000 graphs."
    ),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    max_n=128,
    stacks=True,
)
