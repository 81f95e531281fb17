"""Several processes on CPUs, each with its share of the rows, which exchange one panel a round."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.parts import distributed
from fwtui_kernels.programs.rank_programs import CpuRank, ranked

KERNEL = distributed.rung(
    id="distributed-cpu",
    title="Several processes",
    backend="cpu",
    plan=partial(distributed.plan, words=False),
    build=partial(ranked, CpuRank),
    summary="Tile rows are dealt out to several processes; each round, the owner of row p sends it to all others.",
    lesson=(
        "One machine has a limit, of speed and of memory. So the matrix is cut into rows of tiles, and these are dealt out in "
        "turn. With two processes one has the even rows and the other the odd ones. All keep work until the last round. In round "
        "p every tile needs a tile of column p, which is in its own row, and one of row p, which may be elsewhere. So one row of "
        "tiles travels in a round, from its owner to all others. Sent when it is needed, every process would wait for it. So its "
        "owner makes it one round early (look-ahead), and it travels while all are busy with the round before."
    ),
    tiles=(16, 32, 64, 128),
    default_tile=64,
    simulator_tiles=(8,),
)
