"""Microbenchmark of the read bandwidth of shared memory and of the L2 cache: threads that only load 16 bytes at a time.

In each turn a block reads a piece of THREADS quads. In device memory each block passes over a matrix that fits into L2
but not into L1, so that no piece is still in L1; in shared memory there are two pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui_kernels.compiled.device import ALIGN16, cuda, jit, load4, uint32

THREADS = 1024  # per block; one block per multiprocessor
WORDS = 4  # words of 4 bytes per load
NEAR = 2  # pieces in shared memory: 32 KiB
ONWARD = 617  # pieces from turn to turn; odd, so that all of a power of two are read before one repeats


@jit(device=True)
def _read(source, pieces, turns, threads):
    """Return the exclusive or of the values that this thread reads, one quad of a different piece in each turn."""
    checksum = source[0] ^ source[0]
    for turn in range(turns):
        piece = (cuda.blockIdx.x + turn * ONWARD) & (pieces - 1)
        a, b, c, d = load4(source, uint32((piece * threads + cuda.threadIdx.x) * WORDS))
        checksum ^= a ^ b ^ c ^ d
    return checksum


def build(shared: bool, threads: int = THREADS) -> Any:
    """Return the kernel reads(source, pieces, turns, sums), launched with `threads` threads per block.

    Each thread stores the exclusive or of the values that it reads. `source` has `pieces` (a power of two) times `threads` quads;
    only NEAR pieces are read from shared memory.
    """

    count = NEAR * threads * WORDS  # words in shared memory

    # no disk cache: the compiled code closes over the number of threads
    @jit(cache=False)
    def from_l2(source, pieces, turns, sums):
        sums[cuda.blockIdx.x * threads + cuda.threadIdx.x] = _read(source, pieces, turns, threads)

    @jit(cache=False)
    def from_shared(source, pieces, turns, sums):
        near = cuda.shared.array(count, np.int32, ALIGN16)
        thread = cuda.threadIdx.x
        for at in range(thread, count, threads):
            near[at] = source[at]
        cuda.syncthreads()
        sums[cuda.blockIdx.x * threads + thread] = _read(near, pieces, turns, threads)

    return from_shared if shared else from_l2


def expected(source: Any, pieces: int, turns: int, blocks: int) -> Any:
    """Compute the expected results of all threads of these blocks with NumPy."""
    quads = np.bitwise_xor.reduce(source.reshape(pieces, -1, WORDS), axis=2)
    read = (np.arange(blocks)[:, None] + np.arange(turns) * ONWARD) & (pieces - 1)
    return np.bitwise_xor.reduce(quads[read], axis=1).ravel()
