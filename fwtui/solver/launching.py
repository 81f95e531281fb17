"""How functions that do a kernel's chores are launched, and what they share: reductions within a block, and surveys of weights.

Values that all threads agree on are reduced within a block first: atomic operations on one address take turns.
"""

from __future__ import annotations

import os
import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fwtui.engine.engine import Engine

# of a block, a power of two; in the simulator each is a thread of the host
THREADS = 4 if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else 256
BLOCKS = 1024  # at most, where a block has more than its own row to look at
LOW, HIGH, LEAST_LOOP, EDGES, FRACTION, MISSING, ZEROS, BAD = range(8)  # what a survey finds
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


def on_device(array: Any, engine: Engine) -> Any:
    """What is on the host, on the device; anything else as it is."""
    if not isinstance(array, np.ndarray):
        return array
    from kernels.numba_door.device import cuda

    return cuda.to_device(array, stream=engine.stream)


def on_host(array: Any, engine: Engine) -> np.ndarray:
    """What is on the device, on the host; anything else as it is."""
    if isinstance(array, np.ndarray):
        return array
    told = array.copy_to_host(stream=engine.stream)
    engine.synchronize()
    return told


def put(row: np.ndarray, to: Any, engine: Engine) -> None:
    """Copy a row to where `to` is."""
    if isinstance(to, np.ndarray):
        to[...] = row
    else:
        to.copy_to_device(row, stream=engine.stream)
        engine.synchronize()


class Shared(NamedTuple):
    """Device functions; `shared` is a shared array of float64, one for each thread of the block."""

    least_of: Any  # (value, shared): the least of all threads' values, known to all of them
    fraction_of: Any  # (weight): 0 for a whole number, 1 for a multiple of 1/256, 2 for any other
    note: Any  # (found, shared, low, high, loop, edges, fraction, missing, zeros, bad)


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
    def fraction_of(weight):
        if abs(weight) >= WHOLE or np.float64(np.int64(weight)) == weight:
            return 0.0
        return 1.0 if np.float64(np.int64(weight * 256.0)) == weight * 256.0 else 2.0

    @jit(device=True, inline="always")
    def note(found, shared, low, high, loop, edges, fraction, missing, zeros, bad):
        """What one block found, added to what all did."""
        low = least_of(low, shared)
        high = -least_of(-high, shared)
        loop = least_of(loop, shared)
        fraction = -least_of(-fraction, shared)
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
            if fraction > found[FRACTION]:
                cuda.atomic.max(found, FRACTION, fraction)
            # rarely anything to say, and always the same
            if missing > 0:
                found[MISSING] = 1
            if zeros > 0:
                found[ZEROS] = 1
            if bad > 0:
                found[BAD] = 1

    return Shared(least_of, fraction_of, note)
