"""Arguments of numba's compiled code, of CPU functions and of kernels.

Numba does not document them, so tests/unit/kernels/test_array_abi.py compiles probes that show where each word is read.
"""

from __future__ import annotations

# what an array is passed as, before its shape and its strides in bytes; numba's own two pointers may be null
BEFORE_SHAPE = ("meminfo", "parent", "nitems", "itemsize", "data")


def array_words(address: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the words, of eight bytes each, in which an array is passed."""
    nitems = 1
    for length in shape:
        nitems *= length
    return 0, 0, nitems, itemsize, address, *shape, *strides
