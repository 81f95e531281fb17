"""What a GPU does with the tiles that pass through it (out_of_core.py): the product of two, and one that is laid on its side."""

from __future__ import annotations

from typing import Any

from kernels.forms import FORMS, PLAIN, form_of
from kernels.parts.tuning import STAGES, Product
from kernels.plan import Shape, Target
from kernels.programs.cuda_program import Op

anew: Any
cuda: Any
first_slabs: Any
load_cells: Any
multiply: Any
place: Any
store_cells: Any


def product_op(shape: Shape, cut: Product, target: Target) -> Op:
    """own = min(own, left x top), where left lies on its side: the loop of products.py through the whole depth of a tile.

    Buffers and slots are those of its step: own, left, top.
    """
    global anew, cuda, first_slabs, load_cells, multiply, place, store_cells
    from kernels.numba_door.device import ALIGN16, WORD, anew, cuda, jit, uint32
    from kernels.parts import products

    first_slabs, load_cells, multiply = products.first_slabs, products.load_cells, products.multiply
    place, store_cells = products.place, products.store_cells
    word, tile, form = WORD[shape.dtype], shape.tile, form_of(shape, target.cc)
    pitch = tile // FORMS[form].lanes
    cut.covers(tile, pitch)
    cut.copies(tile, cut.high, cut.wide)
    high, wide, rows, columns, slab = cut.high, cut.wide, cut.rows, cut.columns, cut.slab
    depth, threads, down, across = cut.depth, cut.threads, high // rows, wide // columns
    row_gap, column_gap = 4 * high // rows, 4 * wide // columns
    to_ring, middle_ring, cells, slabs = STAGES * slab * high, STAGES * slab * wide, rows * columns, tile // slab

    @jit(launch_bounds=cut.bounds)
    def product(own, left, top, own_buffer, own_slot, left_buffer, left_slot, top_buffer, top_slot):
        to = cuda.shared.array(to_ring, word, ALIGN16)
        middle = cuda.shared.array(middle_ring, word, ALIGN16)
        best = cuda.local.array(cells, word)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        to_start = left_slot * tile * tile + cuda.blockIdx.y * high
        middle_start = top_slot * tile * pitch + cuda.blockIdx.x * wide
        own_start = (own_slot * tile + cuda.blockIdx.y * high) * pitch + cuda.blockIdx.x * wide
        here = own_start + 4 * y * pitch + 4 * x
        first_slabs(to, middle, left, to_start, tile, top, middle_start, pitch, high, wide, slab, threads, t)
        load_cells(best, own, here, pitch, rows, columns, row_gap, column_gap)
        multiply(
            best, to, middle, left, to_start, tile, top, middle_start, pitch,
            rows, columns, high, wide, slab, depth, slabs, form, threads, t, y, x,
        )  # fmt: skip
        y, x = place(anew(t), down, across)
        here = own_start + 4 * y * pitch + 4 * x
        # of a row panel other blocks may read either value: with the pivot's closed tile both give the same distances
        store_cells(best, own, here, pitch, rows, columns, row_gap, column_gap)

    grid = (pitch // wide, tile // high)
    return Op(product, (threads, 1), lambda args: grid, lambda args: (args[0], args[2], args[4]))


def turn_op(shape: Shape) -> Op:
    """A tile lying on its side, a word to a cell; from one buffer and slot to another."""
    global cuda
    from kernels.numba_door.device import NUMBER, cuda, int32, jit

    number, tile, lanes = NUMBER[shape.dtype], shape.tile, FORMS[PLAIN[shape.dtype]].lanes
    edge = min(32, tile)
    lines = max(1, edge // 4)
    pitch = edge + 1
    room = edge * pitch

    @jit
    def turn(source, to, source_buffer, source_slot, to_buffer, to_slot):
        held = cuda.shared.array(room, number)
        x = int32(cuda.threadIdx.x)
        top = cuda.blockIdx.y * edge
        left = cuda.blockIdx.x * edge
        for y in range(cuda.threadIdx.y, edge, lines):
            held[y * pitch + x] = source[source_slot * tile + top + y, left + x]
        cuda.syncthreads()
        for y in range(cuda.threadIdx.y, edge, lines):
            for lane in range(lanes):
                to[to_slot * tile + left + y, (top + x) * lanes + lane] = held[x * pitch + y]

    return Op(turn, (edge, lines), lambda args: (tile // edge, tile // edge), lambda args: (args[0], args[2]))
