"""The calling convention of numba's compiled code for arrays, on CPUs and GPUs.

Numba does not document it, so tests/unit/kernels/test_numba_internals.py compiles probes that check the position of each word.
"""

from __future__ import annotations

from math import prod

# the words of an array before its shape and its strides in bytes; numba's two pointers, meminfo and parent, may be null
BEFORE_SHAPE = ("meminfo", "parent", "nitems", "itemsize", "data")


def array_words(address: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the 8-byte words that pass an array to a compiled function."""
    return 0, 0, prod(shape), itemsize, address, *shape, *strides
