"""The product that finds predecessors (predecessors.py): the loop of products.py over listed rows, with checks.

A list consists of records, one per slab: its rows, then a tail. The first word of the tail is the epoch of the results if they
are checked after this slab, else -1.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fwtui_kernels.compiled.device import (
    ALIGN16,
    commit_copies,
    copy_async,
    cuda,
    int32,
    jit,
    relax_tile,
    rematerialize,
    uint32,
    wait_copies,
)
from fwtui_kernels.forms import FORMS
from fwtui_kernels.parts.products import place
from fwtui_kernels.parts.tuning import STAGES, Product
from fwtui_kernels.paths.short_arcs import TAIL, half_of, whole


@jit(device=True, inline="always")
def bring(shared, slot, wide, matrix, pitch, block, listed, at, pieces, lines, slab, t):
    """Copy `wide` words of each row of a slab, listed from `at` on, asynchronously."""
    for piece in range(slab // lines):
        line = uint32(t // pieces + piece * lines)
        v = listed[uint32(at + line)]
        word = t % pieces * 4
        copy_async(shared, uint32((slot + line) * wide + word), matrix, v * pitch + int32(block * wide + word))


@cache
def trace_of(cut: Product, form: int, none: int, rounded: bool) -> Any:
    """Return the function trace(turned, keys, lists, lengths, distance, weights, before, source, n, scale, shift, far, bar)."""
    half = half_of(rounded)
    high, wide, rows, columns, slab, stages = cut.high, cut.wide, cut.rows, cut.columns, cut.slab, STAGES
    cut.copies(slab, high, wide)
    lanes = FORMS[form].lanes
    empty = none * (0x10001 if lanes == 2 else 1)
    across_cells, bits, every = columns * lanes, 32 // lanes, (1 << 32 // lanes) - 1
    depth, threads, down, across = cut.depth, cut.threads, cut.down, cut.across
    row_gap, column_gap = cut.gaps
    to_ring, middle_ring, cells = stages * slab * high, stages * slab * wide, rows * columns
    ahead, under_way = stages - 1, stages - 2
    to_pieces, middle_pieces = high // 4, wide // 4
    to_lines, middle_lines = threads // to_pieces, threads // middle_pieces
    record = slab + TAIL
    if 4 * threads < record or high != wide * lanes:
        raise ValueError(f"{cut}: too few threads to copy a record, or a block of cells that is not square")
    # a slab's copies need its list of rows, so its record is copied one stage earlier
    records = 1 << (2 * ahead).bit_length()
    record_ring = records * record

    @jit(launch_bounds=cut.bounds)
    def trace(turned, keys, lists, lengths, distance, weights, before, source, n, scale, shift, far, bar):
        to = cuda.shared.array(to_ring, int32, ALIGN16)
        middle = cuda.shared.array(middle_ring, int32, ALIGN16)
        listed = cuda.shared.array(record_ring, int32, ALIGN16)
        best = cuda.local.array(cells, int32)
        path_cells = cuda.local.array(cells, int32)
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        slabs = uint32(lengths[cuda.blockIdx.x] // slab)
        first = cuda.blockIdx.x * lists.shape[1]
        turned_pitch = int32(turned.shape[1])
        keys_pitch = int32(keys.shape[1] // lanes)
        for s in range(2 * ahead):
            if s < slabs and t < record // 4:
                copy_async(listed, s * record + 4 * t, lists, first + s * record + 4 * t)
        commit_copies()
        wait_copies(0)
        cuda.syncthreads()
        for s in range(ahead):
            if s < slabs:
                bring(to, s * slab, high, turned, turned_pitch, cuda.blockIdx.y, listed, s * record, to_pieces, to_lines, slab, t)
                bring(
                    middle, s * slab, wide, keys, keys_pitch, cuda.blockIdx.x,
                    listed, s * record, middle_pieces, middle_lines, slab, t,
                )  # fmt: skip
            commit_copies()
        for i in range(cells):
            best[i] = empty
        s = uint32(0)
        while s < slabs:
            wait_copies(under_way)
            cuda.syncthreads()
            coming = uint32(s + ahead)
            if coming < slabs:
                # recomputed for each slab, as in products.py, because addresses in registers would displace the tile
                again = rematerialize(t)
                slot = uint32(coming % stages * slab)
                at = uint32(coming % records * record)
                bring(to, slot, high, turned, turned_pitch, cuda.blockIdx.y, listed, at, to_pieces, to_lines, slab, again)
                bring(middle, slot, wide, keys, keys_pitch, cuda.blockIdx.x, listed, at, middle_pieces, middle_lines, slab, again)
                coming = uint32(coming + ahead)
                if coming < slabs and again < record // 4:
                    copy_async(listed, uint32(coming % records * record + 4 * again), lists, first + coming * record + 4 * again)
            commit_copies()
            for k in range(0, slab, depth):
                k_at = s % stages * slab + k
                relax_tile(best, to, k_at * high + 4 * y, middle, k_at * wide + 4 * x, rows, columns, high, wide, depth, form)
            epoch = listed[uint32(s % records * record + slab)]
            s = uint32(s + 1)
            if epoch >= 0:
                missing = 0
                # `best` needs constant indices to stay in registers; the loop below reads a copy with variable indices
                for i in range(cells):
                    path_cells[i] = best[i]
                    best[i] = empty
                for r in range(rows):
                    row = int32(cuda.blockIdx.y * high + 4 * y + r // 4 * row_gap + r % 4)
                    for c in range(across_cells):
                        word = c // lanes
                        column = int32((cuda.blockIdx.x * wide + 4 * x + word // 4 * column_gap + word % 4) * lanes + c % lanes)
                        key = path_cells[r * columns + word]
                        if lanes == 2:
                            key = int32(key >> c % lanes * bits & every)
                        if row < before.shape[0] and column < n:
                            cell = distance[source + row, column]
                            if cell < far and source + row != column:
                                if abs(int32(key >> shift) - whole(cell, scale, half)) <= bar:
                                    v = int32((epoch << shift) | (key & ((1 << shift) - 1)))
                                    if rounded:
                                        old = before[row, column]
                                        via = distance[source + row, v] + weights[v, column]
                                        # the nearest of the sums that rounding cannot distinguish
                                        if old < 0 or via < distance[source + row, old] + weights[old, column]:
                                            before[row, column] = v
                                        missing = 1
                                    else:
                                        before[row, column] = v
                                elif rounded or before[row, column] < 0:
                                    missing = 1
                if not cuda.syncthreads_or(missing):
                    break
        wait_copies(0)

    return trace
