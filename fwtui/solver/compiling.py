"""Compiled code inside a caller's process: one thread at a time, its cache beside no source file of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from fwtui.common.environment import cache_folder

_one_at_a_time = RLock()  # numba's simplest threading layer is not made for two callers


@contextmanager
def compiled() -> Iterator[None]:
    """What is compiled or launched within keeps its compiled form where this program keeps such, for the next process.

    Numba asks for the folder when a function is decorated; the caller's own functions, and a folder that the caller named,
    are left alone.
    """
    import numba

    with _one_at_a_time:
        before = numba.config.CACHE_DIR  # type: ignore[attr-defined]  # made at run time
        numba.config.CACHE_DIR = before or str(cache_folder())  # type: ignore[attr-defined]
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
