"""How functions that do a kernel's chores are launched, and what they share: reductions within a block, and surveys of weights.

Values that all threads agree on are reduced within a block first: atomic operations on one address take turns.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any, NamedTuple

# of a block, a power of two; in the simulator each is a thread of the host
THREADS = 4 if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else 256
BLOCKS = 1024  # at most, where a block has more than its own row to look at
LOW, HIGH, LEAST_LOOP, EDGES, FRACTIONS, OFF_GRID, MISSING, ZEROS, BAD = range(9)  # what a survey finds
WHOLE = 2.0**53  # every float64 from here on is a whole number

_compiling = 0.0

cuda: Any
least_of: Any
sum_of: Any


def launch(function: Any, grid: int | tuple[int, int], stream: Any, *given: Any) -> None:
    """The function on so many blocks, compiled or loaded before where it has not been for such types."""
    global _compiling
    known, begin = len(getattr(function, "overloads", ())), time.perf_counter()
    function[grid, THREADS, stream](*given)
    if len(getattr(function, "overloads", ())) > known:
        _compiling += time.perf_counter() - begin


def compiling() -> float:
    """The seconds that launches took to compile or load something since this was last asked."""
    global _compiling
    seconds, _compiling = _compiling, 0.0
    return seconds


class Shared(NamedTuple):
    """Device functions; `shared` is a shared array of float64, one for each thread of the block."""

    least_of: Any  # (value, shared): the least of all threads' values, known to all of them
    sum_of: Any  # (value, shared)
    note: Any  # (found, shared, low, high, loop, edges, fractions, off_grid, missing, zeros, bad)


@cache
def shared_functions() -> Shared:
    global cuda, least_of, sum_of
    from kernels.numba_door.device import cuda, jit

    @jit(device=True, inline="always")
    def least_of(value, shared):
        """The least of all threads' values, known to all of them."""
        t = cuda.threadIdx.x
        cuda.syncthreads()  # what was there before has been read
        shared[t] = value
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if t < half:
                shared[t] = min(shared[t], shared[t + half])
            cuda.syncthreads()
            half //= 2
        return shared[0]

    @jit(device=True, inline="always")
    def sum_of(value, shared):
        """The sum of all threads' values, known to all of them."""
        t = cuda.threadIdx.x
        cuda.syncthreads()
        shared[t] = value
        cuda.syncthreads()
        half = cuda.blockDim.x // 2
        while half > 0:
            if t < half:
                shared[t] += shared[t + half]
            cuda.syncthreads()
            half //= 2
        return shared[0]

    @jit(device=True, inline="always")
    def note(found, shared, low, high, loop, edges, fractions, off_grid, missing, zeros, bad):
        """What one block found, added to what all did."""
        low = least_of(low, shared)
        high = -least_of(-high, shared)
        loop = least_of(loop, shared)
        fractions = -least_of(-fractions, shared)
        off_grid = -least_of(-off_grid, shared)
        missing = -least_of(-missing, shared)
        zeros = -least_of(-zeros, shared)
        bad = -least_of(-bad, shared)
        edges = sum_of(edges, shared)
        if cuda.threadIdx.x == 0:
            if edges > 0:
                cuda.atomic.add(found, EDGES, edges)
            if low < found[LOW]:
                cuda.atomic.min(found, LOW, low)
            if high > found[HIGH]:
                cuda.atomic.max(found, HIGH, high)
            if loop < found[LEAST_LOOP]:
                cuda.atomic.min(found, LEAST_LOOP, loop)
            # rarely anything to say, and always the same
            if fractions > 0:
                found[FRACTIONS] = 1
            if off_grid > 0:
                found[OFF_GRID] = 1
            if missing > 0:
                found[MISSING] = 1
            if zeros > 0:
                found[ZEROS] = 1
            if bad > 0:
                found[BAD] = 1

    return Shared(least_of, sum_of, note)
