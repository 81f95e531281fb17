"""How numba's compiled code takes its arguments: the one place that knows, for CPU functions and for kernels alike.

Numba promises nothing here, so tests/unit/kernels/test_array_abi.py compiles probes that show where each word is read.
"""

from __future__ import annotations

# what an array is passed as, before its shape and its strides in bytes; numba's own two pointers may be null
BEFORE_SHAPE = ("meminfo", "parent", "nitems", "itemsize", "data")


def array_words(address: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """An array as the words, of eight bytes each, that stand for it."""
    nitems = 1
    for length in shape:
        nitems *= length
    return 0, 0, nitems, itemsize, address, *shape, *strides
