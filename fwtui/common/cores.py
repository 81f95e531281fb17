"""The processor cores that this process may use; `taskset` and batch systems allow fewer than all."""

from __future__ import annotations

import os


def usable_cores() -> frozenset[int]:
    """Return the numbers of these cores."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
