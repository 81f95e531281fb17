"""Measures what this GPU reads from shared memory and from its L2 cache: threads that only load, 16 bytes each at a time.

A block has a piece of THREADS quads of words before it at each turn. In device memory the pieces go through a matrix that only L2
holds, each block through all of it, so that a multiprocessor's own cache never has the next one; in shared memory there are two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import ALIGN16, cuda, jit, load4, uint32

THREADS = 1024  # of a block; a multiprocessor gets one
WORDS = 4  # of 4 bytes, by one load
NEAR = 2  # pieces in shared memory: 32 KiB
ONWARD = 617  # pieces from turn to turn: odd, so that a power of two of them are all read before one is read again


@jit(device=True)
def _read(words, pieces, turns, threads):
    """The exclusive or of what this thread reads of the words: a quad of another piece at each turn."""
    checksum = words[0] ^ words[0]
    for turn in range(turns):
        piece = (cuda.blockIdx.x + turn * ONWARD) & (pieces - 1)
        a, b, c, d = load4(words, uint32((piece * threads + cuda.threadIdx.x) * WORDS))
        checksum ^= a ^ b ^ c ^ d
    return checksum


def build(shared: bool, threads: int = THREADS) -> Any:
    """reads(source, pieces, turns, found), launched with `threads` threads a block: an exclusive or of the words that each read.

    `source` has `pieces` (a power of two) times `threads` quads; only NEAR of them are read from shared memory.
    """

    words = NEAR * threads * WORDS  # in shared memory

    # no disk cache: the compiled code closes over the number of threads
    @jit(cache=False)
    def from_l2(source, pieces, turns, sums):
        sums[cuda.blockIdx.x * threads + cuda.threadIdx.x] = _read(source, pieces, turns, threads)

    @jit(cache=False)
    def from_shared(source, pieces, turns, sums):
        near = cuda.shared.array(words, np.int32, ALIGN16)
        thread = cuda.threadIdx.x
        for at in range(thread, words, threads):
            near[at] = source[at]
        cuda.syncthreads()
        sums[cuda.blockIdx.x * threads + thread] = _read(near, pieces, turns, threads)

    return from_shared if shared else from_l2


def expected(source: Any, pieces: int, turns: int, blocks: int) -> Any:
    """Compute the expected results of all threads of these blocks with NumPy."""
    quads = np.bitwise_xor.reduce(source.reshape(pieces, -1, WORDS), axis=2)
    read = (np.arange(blocks)[:, None] + np.arange(turns) * ONWARD) & (pieces - 1)
    return np.bitwise_xor.reduce(quads[read], axis=1).ravel()
