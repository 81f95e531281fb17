"""What is left of a machine's memory for everything else."""

from __future__ import annotations

import ctypes
from contextlib import suppress

KEPT_FREE = 1 << 28  # bytes that a run leaves, of the host's memory and of a GPU's
_MAX_HEAPS = -8  # M_ARENA_MAX of glibc's malloc.h


def limit_malloc_arenas() -> None:
    """Let all later threads share the first heap: with glibc each has its own, and none takes what another has freed."""
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_MAX_HEAPS, 1)
