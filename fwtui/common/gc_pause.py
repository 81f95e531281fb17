"""Pauses garbage collection while the program starts: what imports and first screens create stays anyway."""

from __future__ import annotations

import gc


def rest() -> None:
    """No collections until wake(): during startup they take a seventh of the time and find nothing."""
    gc.disable()


def wake() -> None:
    """Resume collection after rest(), but never scan what exists now; otherwise do nothing."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
