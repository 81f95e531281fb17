"""Microbenchmark of this GPU's peak relaxation rate: the inner loop of the fastest kernels, in each form.

A block of 256 threads holds a 128 x 128 tile of words in registers, 8 x 8 per thread as 2 x 2 groups of 4 x 4 with a stride of 64
rows and columns. Slabs of the operands, 16 k deep, are in shared memory, and each k takes four 128-bit loads per thread:

                        k: middle[128]
                        ....####........####....    a thread's 8 columns
           k: to[128] # best                best
                      # best                best    for k in 0 .. 15: best[i][j] = min(best[i][j], to[k][i] + middle[k][j])

It is the kernels' relax_tile without device memory, slab copies or barriers, so that only instruction issue limits it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import ALIGN16, WORD, clock, cuda, jit, relax_tile
from fwtui_kernels.forms import FORMS
from fwtui_kernels.plan import ITEMSIZE

BLOCK, SIDE, DEPTH = 256, 128, 16
RESULTS = 8  # rows and columns per thread
SLAB = DEPTH * SIDE  # words
CELLS = RESULTS * RESULTS  # words per thread
BLOCKS_PER_MULTIPROCESSOR = 2  # for words of 4 bytes


def resident(form: int) -> int:
    """Return the resident blocks per multiprocessor, which its registers limit."""
    return BLOCKS_PER_MULTIPROCESSOR * 4 // max(4, ITEMSIZE[FORMS[form].dtype])


def build(form: int) -> Any:
    """Return the kernel probe(cells, source, stride, turns, clocks) for an index into FORMS.

    Launch it with BLOCK threads and any number of blocks. `cells` has CELLS words per thread, input and result; `source` has the
    slabs of both operands, one after the other; `clocks` receives the cycles of each block. `stride` must be 0, which the
    compiler cannot know, so that the loads stay inside the loop.
    """
    word = WORD[FORMS[form].dtype]

    # no disk cache: the compiled code closes over the form
    @jit(cache=False, launch_bounds=(BLOCK, resident(form)))
    def probe(cells, source, stride, turns, clocks):
        to = cuda.shared.array(SLAB, word, ALIGN16)
        middle = cuda.shared.array(SLAB, word, ALIGN16)
        best = cuda.local.array(CELLS, word)
        thread = cuda.threadIdx.x
        for at in range(thread, SLAB, BLOCK):
            to[at] = source[at]
            middle[at] = source[SLAB + at]
        lane, warp = thread & 31, thread >> 5
        row = (((warp >> 1) << 2) + (lane >> 3)) * 4
        column = (((warp & 1) << 3) + (lane & 7)) * 4
        own = (cuda.blockIdx.x * BLOCK + thread) * CELLS
        for cell in range(CELLS):
            best[cell] = cells[own + cell]
        cuda.syncthreads()
        begin = clock()
        for turn in range(turns):
            at = turn * stride
            relax_tile(best, to, at + row, middle, at + column, RESULTS, RESULTS, SIDE, SIDE, DEPTH, form)
        # stored before the clock is read, so that no work is deferred
        for cell in range(CELLS):
            cells[own + cell] = best[cell]
        cuda.syncthreads()
        end = clock()
        if thread == 0:
            clocks[cuda.blockIdx.x] = end - begin

    return probe


def expected(form: int, cells: Any, source: Any) -> Any:
    """Compute the result of one block of `probe` with NumPy: (BLOCK, CELLS) words."""
    thread = np.arange(BLOCK)
    lane, warp = thread & 31, thread >> 5
    step = np.arange(RESULTS) // 4 * (SIDE // 2) + np.arange(RESULTS) % 4
    rows = (((warp >> 1 << 2) + (lane >> 3)) * 4)[:, None] + step
    columns = (((warp & 1) << 3) + (lane & 7))[:, None] * 4 + step
    dtype = np.dtype(FORMS[form].dtype)
    lanes = cells.itemsize // dtype.itemsize
    to, middle = source[:SLAB].reshape(DEPTH, SIDE), source[SLAB:].reshape(DEPTH, SIDE)
    best = np.ascontiguousarray(cells).view(dtype).reshape(BLOCK, RESULTS, RESULTS, lanes)
    for k in range(DEPTH):
        to_k = to[k][rows].view(dtype).reshape(BLOCK, RESULTS, 1, lanes)
        onward = middle[k][columns].view(dtype).reshape(BLOCK, 1, RESULTS, lanes)
        best = np.minimum(best, to_k + onward)
    return np.ascontiguousarray(best).view(cells.dtype).reshape(BLOCK, CELLS)


def packed(form: int, numbers: Any) -> Any:
    """Convert small integers to words of a form; packed forms have them in both halves."""
    cells = numbers.astype(FORMS[form].dtype)
    return np.repeat(cells, 2, axis=-1).view(np.int32) if FORMS[form].lanes == 2 else cells
