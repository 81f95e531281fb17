"""Several GPUs, each with some rows of tiles, that exchange one panel per round."""

from __future__ import annotations

from fwtui_kernels.parts import distributed
from fwtui_kernels.parts.rank_products import CudaRank
from fwtui_kernels.parts.register_tiled import CHOICES
from fwtui_kernels.plan import MAX_N

KERNEL = distributed.rung(
    id="distributed",
    title="Distributed",
    build=CudaRank,
    summary="Tile rows are distributed cyclically over several GPUs; the owner broadcasts the next panel one round ahead.",
    lesson=(
        "The products are those of the register-tiled rungs; the distribution of the data is new. Each of two GPUs owns every "
        "second row of tiles, each of three every third. In round p all need row p, so its owner broadcasts tile x n cells, "
        "over NVLink through NCCL. A GPU that waited for the panel would idle. So the owner of row p + 1 updates that row "
        "first, solves its pivot, and broadcasts the row. The broadcast overlaps with the work of every GPU, including the "
        "owner, on the remainder of round p. A round's work per GPU is tile x n x n / ranks relaxations, and a panel is tile x "
        "n cells. So the overlap hides the broadcast better for larger n, and worse for more GPUs. Each GPU stores only its own "
        "rows: with four GPUs a graph may have twice the vertices."
    ),
    max_n=MAX_N,
    **CHOICES,
)
