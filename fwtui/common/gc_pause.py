"""Pauses garbage collection while what is created stays anyway: what imports and first screens create, and sessions."""

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
    """Resume collection after disable_gc(), but never scan what exists now; otherwise do nothing.

    paused() must not freeze: that would keep garbage that is still to be collected.
    """
    global _disabled
    if _disabled:
        _disabled = False
        gc.freeze()
        gc.enable()


@contextmanager
def paused() -> Iterator[None]:
    """No collections within."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
