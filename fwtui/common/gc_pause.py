"""Pauses of garbage collection while imports, first screens and sessions create objects that are not freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_disabled = False


def disable_gc() -> None:
    """Disable collections until enable_gc(): during startup they take a seventh of the time and find nothing."""
    global _disabled
    _disabled = True
    gc.disable()


def enable_gc() -> None:
    """Undo disable_gc(), and exclude all objects that exist now from collection; do nothing if it was not called."""
    global _disabled
    if _disabled:
        _disabled = False
        gc.freeze()  # not in paused(): it would pin garbage
        gc.enable()


@contextmanager
def paused() -> Iterator[None]:
    """Pause collection inside the block."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
