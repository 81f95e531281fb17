"""Several CPU processes, each with some rows of tiles, that exchange one panel per round."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.parts import distributed
from fwtui_kernels.programs.rank_programs import CpuRank

KERNEL = distributed.rung(
    id="distributed-cpu",
    title="Several processes",
    backend="cpu",
    plan=partial(distributed.plan, whole_words=False),
    build=CpuRank,
    summary="Tile rows are distributed cyclically over processes; each round, the owner of row p broadcasts it to the others.",
    lesson=(
        "One process is limited in speed and memory. Here the matrix is divided into rows of tiles, which are distributed "
        "cyclically: of two processes, one owns the even rows, the other the odd ones. So all have work until the last round. "
        "In round p every tile needs a tile of column p, which the process owns itself, and a tile of row p, which another "
        "process may own. So the owner broadcasts one row of tiles per round. If it did so on demand, every other process would "
        "wait. Instead the owner computes the row one round ahead (look-ahead), and the broadcast overlaps with the work on the "
        "previous round."
    ),
    tiles=(16, 32, 64, 128),
    default_tile=64,
    simulator_tiles=(8,),
)
