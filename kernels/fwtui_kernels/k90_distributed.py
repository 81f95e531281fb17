"""Several GPUs, each with its share of the rows, which exchange one panel a round."""

from __future__ import annotations

from functools import partial

from fwtui_kernels.parts import distributed
from fwtui_kernels.parts.rank_products import CudaRank
from fwtui_kernels.parts.register_tiled import CHOICES
from fwtui_kernels.plan import MAX_N
from fwtui_kernels.programs.rank_programs import ranked

KERNEL = distributed.rung(
    id="distributed",
    title="Distributed",
    build=partial(ranked, CudaRank),
    summary="Tile rows are dealt out to several GPUs; the owner of row p sends it to all others one round ahead.",
    lesson=(
        "The products are those of the register-tiled rungs; new is where the data is. Each GPU has every second row of tiles, "
        "or every third with three GPUs. In round p all need row p, so its owner sends it: tile x n cells, over NVLink by NCCL. "
        "A GPU that waited for it would do nothing meanwhile. So the owner of row p + 1 updates that row first and solves its "
        "pivot. Then it sends the row while every GPU, itself included, works on the rest of round p. A round's work on a GPU is "
        "tile x n x n / ranks relaxations, and a panel tile x n cells. So the larger n is, the better the panel hides, and the "
        "more GPUs share the work, the worse. Each holds its own rows only: with four GPUs a graph may have twice the vertices."
    ),
    max_n=MAX_N,
    **CHOICES,
)
