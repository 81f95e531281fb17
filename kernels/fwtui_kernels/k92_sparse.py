"""The product of the register-tiled rungs along the elimination tree of a sparse graph, all supernodes of a height in one launch.

A launch finds in a table which tiles each of its blocks works on (parts/supernodal_tables.py). The panels of a launch lie tile
after tile, by columns, as the rest reads them. A tile of common ancestors goes through one product after the other.
"""

from __future__ import annotations

from functools import partial

from fwtui_kernels import forms
from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.forms import FORMS, PLAIN
from fwtui_kernels.parts import supernodal
from fwtui_kernels.parts.cuda_sparse import PANELS, PIVOTS, TASKS, VIA, SparseProgram
from fwtui_kernels.parts.dissection import ordered
from fwtui_kernels.parts.pivot import close, store_closed, store_columns, store_rows
from fwtui_kernels.parts.products import panel_block_of, relax_block_of
from fwtui_kernels.parts.register_tiled import CHOICES, PAPERS
from fwtui_kernels.parts.tuning import CLOSED, MATRIX, PANEL, Product, tuning_of
from fwtui_kernels.plan import Shape, Target
from fwtui_kernels.programs.cuda_program import Op

LAUNCH = 2 * 10**8  # relaxations in the time of a pivot, in which most multiprocessors are idle
INDICES = "array(int32, 2d, C)"


def types_of(shape: Shape, *of_cells: bool) -> tuple[str, ...]:
    """Those of an op's arrays, which are of cells or of indices, and of its two numbers."""
    return (*(f"array({shape.dtype}, 2d, C)" if cells else INDICES for cells in of_cells), "int32", "int32")


def pivot_of(shape: Shape) -> Op:
    """Closes a tile in each block, and copies it twice as that of the dense rungs does."""
    cell, word, tile = NUMBER[shape.dtype], WORD[shape.dtype], shape.tile
    side = tile // 4
    both = 2 * tile

    @jit(launch_bounds=(side * side, 1))
    def pivot(matrix, closed, pivots, first, count):
        rows = cuda.shared.array(both, word, ALIGN16)
        columns = cuda.shared.array(both, word, ALIGN16)
        t = uint32(cuda.threadIdx.x)
        y = int32(t // side)
        x = int32(t % side)
        n = matrix.shape[1]
        base = int32(pivots[first + cuda.blockIdx.x, 0] * tile)
        here = (base + 4 * y) * n + base + 4 * x
        r = close(matrix, here, n, rows, columns, tile, y, x, word)
        # recomputed: keeping the addresses would not leave 1024 threads enough registers
        t = device.anew(t)
        y = int32(t // side)
        x = int32(t % side)
        n = matrix.shape[1]
        base = int32(pivots[int32(device.anew(uint32(first))) + cuda.blockIdx.x, 0] * tile)
        here = (base + 4 * y) * n + base + 4 * x
        store_closed(matrix, here, n, cell, r)
        copy = int32(cuda.blockIdx.x) * both * tile
        store_columns(closed, copy + 4 * x * tile + 4 * y, tile, r)
        store_rows(closed, copy + (tile + 4 * y) * tile + 4 * x, tile, r)

    types = types_of(shape, True, True, False)
    return Op(pivot, (side * side, 1), lambda args: (args[1], 1), lambda args: (MATRIX, CLOSED, PIVOTS), types)


def panels_of(shape: Shape, cut: Product) -> Op:
    """Tiles (p, i) (grid row 0) and (i, p) (grid row 1) times the closed pivot p."""
    panel_block, tile, wide = panel_block_of(shape, cut), shape.tile, cut.wide
    parts = tile // wide

    @jit(launch_bounds=cut.bounds)
    def panels(matrix, closed, panel, table, first, count):
        task = first + int32(cuda.blockIdx.x) // parts
        part = int32(cuda.blockIdx.x) % parts * wide
        base = table[task, 0] * tile
        at = table[task, 1] * tile + part
        is_row = cuda.blockIdx.y == 0
        copy = (2 * table[task, 3] + (0 if is_row else 1)) * tile * tile
        panel_block(matrix, closed, copy, is_row, base, at, panel, table[task, 2] * tile * tile + part, tile)

    types = types_of(shape, True, True, True, False)
    buffers = (MATRIX, CLOSED, PANEL, PANELS)
    return Op(panels, (cut.threads, 1), lambda args: (args[1] * parts, 2), lambda args: buffers, types)


def rest_of(shape: Shape, target: Target, cut: Product) -> Op:
    """Tile (i, j) = min(itself, (i, p) x (p, j)), of every p that the launch has for it."""
    relax_block = relax_block_of(shape, target, cut)
    tile, high, wide, lanes = shape.tile, cut.high, cut.wide, FORMS[PLAIN[shape.dtype]].lanes
    per_row, per_column = tile // high, tile // lanes // wide  # blocks to a tile
    blocks = per_row * per_column

    @jit(launch_bounds=cut.bounds)
    def rest(matrix, panel, table, via, first, count):
        n = matrix.shape[1]
        pitch = n // lanes
        task = first + int32(cuda.blockIdx.x) // blocks
        part = int32(cuda.blockIdx.x) % blocks
        down = part // per_column
        row = int32(table[task, 0] * per_row + down)
        column = int32(table[task, 1] * per_column + part % per_column)
        for at in range(table[task, 2], table[task, 2] + table[task, 3]):
            # no thread still reads the slabs of the product before
            cuda.syncthreads()
            left = via[at, 1] * tile * tile + down * high
            relax_block(matrix, row, column, panel, left, tile, matrix, via[at, 0] * tile * pitch + column * wide, pitch)

    types = types_of(shape, True, True, False, False)
    return Op(rest, (cut.threads, 1), lambda args: (args[1] * blocks, 1), lambda args: (MATRIX, PANEL, TASKS, VIA), types)


def build(shape: Shape, target: Target) -> SparseProgram:
    tuning = tuning_of(shape)
    ops = {"pivot": pivot_of(shape), "panels": panels_of(shape, tuning.panels), "rest": rest_of(shape, target, tuning.rest)}
    return SparseProgram(shape, target, ops)


KERNEL = supernodal.rung(
    id="sparse",
    title="Sparse",
    papers=(*supernodal.PAPERS, *PAPERS[1:]),
    build=build,
    ordered=partial(ordered, launch=LAUNCH),
    matrices=2,
    summary="For graphs with small separators: the register-tiled product along the elimination tree, a launch for each height.",
    lesson=(
        "The plan is that of the rung on the CPU: only tiles of descendants and ancestors meet. What a GPU needs besides is "
        "enough work at a time. Far down in the tree a supernode has a few tiles, and a launch for each would leave most "
        "multiprocessors idle. But all supernodes of equal height are independent. So one launch closes all their pivots, one "
        "makes all their panels, and one does all their products; a table tells every block its tiles. On a grid of 16,384 "
        "vertices that makes about 60 launches instead of 800. A tile of common ancestors is wanted by several supernodes. One "
        "block does their products one after the other, so no atomic minimum is needed. Near the root there is one supernode, "
        "whose products reach all tiles: there the kernel is the dense one."
    ),
    **{
        **CHOICES,
        "default_tile": 64,
        "small_tile": None,
        "lacks": lambda shape, target: supernodal.lacks(shape, target) or forms.lacks(shape, target),
    },
)
