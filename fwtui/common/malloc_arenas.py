"""The memory that a run must leave free, and a limit on the number of malloc heaps."""

from __future__ import annotations

import ctypes
from contextlib import suppress

RESERVED_MEMORY = 1 << 28  # bytes that a run leaves free, both in the host's memory and in a GPU's
_MAX_HEAPS = -8  # M_ARENA_MAX of glibc's malloc.h


def limit_malloc_arenas() -> None:
    """Make all later threads share the first heap: glibc's per-thread heaps do not reuse each other's freed memory."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_MAX_HEAPS, 1)
