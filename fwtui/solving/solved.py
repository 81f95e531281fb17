"""Distances as a kernel left them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Tell = Callable[[float], None]  # the share of the work that is done


@dataclass(frozen=True)
class Solved:
    """Sentinels and all; the array may be the corner of a padded one."""

    raw: np.ndarray  # (n, n)
    kernel: str  # id
    tile: int  # 0: no tiles
    seconds: dict[str, float]
    before: np.ndarray | None = None  # (n, n) predecessors as Result has them, where they were asked for and found with it
    again: np.ndarray | None = None  # the sources whose predecessors rounding hid
