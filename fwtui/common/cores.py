"""The processor cores that this process may use: fewer than there are, under `taskset` or a batch system."""

from __future__ import annotations

import os


def usable_cores() -> frozenset[int]:
    """Their numbers."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
