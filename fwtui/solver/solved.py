"""Distances as a kernel left them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Tell = Callable[[float], None]  # the share of the work that is done


class Finished(NamedTuple):
    """Distances as Result has them, and what they were before."""

    distances: np.ndarray  # (n, n)
    largest: float  # absolute value of those that are no "no path"
    diagonal: np.ndarray  # (n,)
    escaped: bool  # some were too long for the type, where that was asked; see solver.escaped


@dataclass(frozen=True)
class Solved:
    """`raw` has sentinels and all, and may be the corner of a padded array; it is None where distances are finished."""

    raw: np.ndarray | None  # (n, n)
    kernel: str  # id
    tile: int  # 0: no tiles
    seconds: dict[str, float]
    before: np.ndarray | None = None  # (n, n) predecessors as Result has them, where they were asked for and found with it
    again: np.ndarray | None = None  # the sources whose predecessors rounding hid
    finished: Finished | None = None
