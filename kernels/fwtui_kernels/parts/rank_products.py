"""The ops of one rank of `distributed` on a GPU: the products of products.py on the rank's rows, with row p from a panel.

    pivot    tile (p, p) solved, with a copy by columns (for `row`) and one by rows (`square`, which is broadcast)
    row      row p = solved x row p, and a copy in `panel`, which is broadcast
    column   column p of the rank's rows = itself x solved, and a copy by columns, the left operand of `rest`
    rest     every other tile = min(itself, column p x row p)

`matrix` is the rank's rows of tiles. A launch takes `count` rows of tiles from `first` on, and skips `skipped` rows at `gap`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import cuda, int32, jit
from fwtui_kernels.forms import lanes_of
from fwtui_kernels.parts.distributed import COLUMN, MATRIX, ROW, SOLVED, SQUARE
from fwtui_kernels.parts.pivot import solve_tile_of
from fwtui_kernels.parts.products import panel_block_of, relax_block_of
from fwtui_kernels.parts.tuning import Product, tuning_of
from fwtui_kernels.plan import Buffers, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op
from fwtui_kernels.programs.rank_programs import RankRows


def ops_of(shape: Shape, target: Target) -> dict[str, Op]:
    tuning = tuning_of(shape)
    return {"pivot": pivot_of(shape), **panels_of(shape, tuning.panels), "rest": rest_of(shape, target, tuning.rest)}


def pivot_of(shape: Shape) -> Op:
    """Return the op that solves tile (p, p), which is the rank's tile (top, p)."""
    solve_tile, tile = solve_tile_of(shape), shape.tile
    threads = (tile // 4) ** 2

    @jit(launch_bounds=(threads, 1))
    def pivot(matrix, solved, square, p, top):
        # the offset counts from row 0, because a separate row index would exceed the registers of 1024 threads
        solve_tile(matrix, 0, (top * matrix.shape[1] + p) * tile, solved, 0, square, 0)

    return Op(pivot, (threads, 1), lambda args: (1, 1), lambda args: (MATRIX, SOLVED, SQUARE + args[0] % 2))


def panels_of(shape: Shape, cut: Product) -> dict[str, Op]:
    """Return the ops that multiply row p (the rank's row `top` of tiles) and column p with the solved pivot."""
    panel_block, tile, wide = panel_block_of(shape, cut, copies_rows=True), shape.tile, cut.wide
    per_tile = tile // wide

    @jit(launch_bounds=cut.bounds)
    def row(matrix, solved, panel, p, top):
        at = cuda.blockIdx.x * wide
        if at >= p * tile:
            at += tile
        panel_block(matrix, solved, 0, True, top * tile, at, panel, at, matrix.shape[1])

    @jit(launch_bounds=cut.bounds)
    def column(matrix, square, by_columns, p, first, gap, skipped, count):
        line = first + int32(cuda.blockIdx.x) // per_tile
        if line >= gap:
            line += skipped
        at = line * tile + int32(cuda.blockIdx.x) % per_tile * wide
        panel_block(matrix, square, 0, False, p * tile, at, by_columns, at, matrix.shape[0])

    blocks = (shape.padded - tile) // wide
    size = (cut.threads, 1)
    return {
        "row": Op(row, size, lambda args: (blocks, 1), lambda args: (MATRIX, SOLVED, ROW + args[0] % 2)),
        "column": Op(column, size, lambda args: (args[4] * per_tile, 1), lambda args: (MATRIX, SQUARE + args[0] % 2, COLUMN)),
    }


def rest_of(shape: Shape, target: Target, cut: Product) -> Op:
    """Return the op C = min(C, column p x row p) in blocks of high x wide words, over `count` rows of tiles."""
    relax_block = relax_block_of(shape, target, cut)
    tile, high, wide, lanes = shape.tile, cut.high, cut.wide, lanes_of(shape.dtype)
    per_row, per_column = tile // high, tile // lanes // wide  # blocks to a tile

    @jit(launch_bounds=cut.bounds)
    def rest(matrix, panel, by_columns, p, first, gap, skipped, count):
        n = matrix.shape[1]
        height = matrix.shape[0]
        pitch = n // lanes
        row = int32(cuda.blockIdx.y) + first * per_row
        if row >= gap * per_row:
            row += int32(skipped * per_row)
        column = int32(cuda.blockIdx.x)
        if column >= p * per_column:
            column += int32(per_column)
        relax_block(matrix, row, column, by_columns, row * high, height, panel, column * wide, pitch)

    others = shape.padded // tile - 1
    return Op(
        rest,
        (cut.threads, 1),
        lambda args: (others * per_column, args[4] * per_row),
        lambda args: (MATRIX, ROW + args[0] % 2, COLUMN),
    )


def buffer_sizes(shape: Shape, rows: int) -> list[tuple[int, int]]:
    """Return the rows and columns of each buffer of a rank with that many rows, in the order of parts.distributed."""
    cells_per_word = shape.word_bytes // shape.itemsize
    solved = (shape.tile, shape.tile * cells_per_word)
    panel = (shape.tile, shape.padded)
    lanes = lanes_of(shape.dtype)
    return [(rows, shape.padded), solved, panel, panel, solved, solved, (shape.tile, rows * lanes)]


class CudaRank(CudaProgram):
    """Program whose buffers are those of parts.distributed, the two arrays that are broadcast (ROW and SQUARE), and the input."""

    def __init__(self, shape: Shape, target: Target):
        super().__init__(shape, target, ops_of(shape, target))
        self._rows = RankRows(shape, target.rank)
        self._size = self._rows.size
        self._rows_of_n = self._rows.count

    def allocate(self) -> Buffers:
        buffers: list[Any] = [None] * 7
        sizes = buffer_sizes(self.shape, self._size[0])
        dtype = np.dtype(self.shape.dtype)
        panels = []
        for parity in range(2):
            whole = cuda.device_array(sum(prod(sizes[which + parity]) for which in (ROW, SQUARE)), dtype)
            cells = prod(sizes[ROW])
            buffers[ROW + parity] = whole[:cells].reshape(*sizes[ROW])
            buffers[SQUARE + parity] = whole[cells:].reshape(*sizes[SQUARE])
            panels.append(whole)
        for which, size in enumerate(sizes):
            if buffers[which] is None:
                buffers[which] = cuda.device_array(size, dtype)
        if self.shape.memory == "pinned":
            self._pinned = cuda.pinned_array(self._size, dtype)
        return [*buffers, *panels, cuda.device_array(self._size, dtype)]

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        if step.op == "broadcast":
            p, owner = step.args
            assert self._target.link is not None
            self._target.link.broadcast(self.broadcast_array(buffers, p), owner, stream)
        else:
            super().launch(step, buffers, stream)

    def broadcast_array(self, buffers: Buffers, p: int) -> Any:
        return buffers[7 + p % 2]

    def pad(self, rows: Any, to: Any) -> None:
        self._rows.pad(rows, to)
