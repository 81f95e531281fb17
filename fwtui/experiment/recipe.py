"""What a generated graph is made from, as integers that every form of the generator takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.hashing import PLAIN
from fwtui.graphs import GRID
from kernels.plan import NO_EDGE


@dataclass(frozen=True)
class Recipe:
    """Weights count in units of 1 / `units`; an edge is drawn by `threshold`, or is one of `drawn` out of `cells`."""

    n: int
    dtype: str
    key: np.uint64
    threshold: np.uint64  # round(density x 2^32)
    low: int
    span: np.uint64  # number of different weights
    units: int  # 1, or 256 for real weights
    connected: bool  # edges i -> i + 1 are always there
    exact: bool
    drawn: np.uint64  # edges to draw, without the forced ones
    cells: np.uint64  # cells to draw them from
    half: np.uint64  # half the bits of the shuffled range
    shuffle_key: np.uint64
    potential_range: int  # 0: no negative edges asked for
    potentials: np.ndarray  # int64 (n,) in units, or (0,)

    @property
    def scale(self) -> int | float:
        """Weight of one unit, in the type in which the weight is stored without loss."""
        return 1 if self.dtype != "float32" else 1.0 / self.units

    def weight(self, units: Any) -> Any:
        """So many units, a number or an array of them, as weights."""
        return units if self.units == 1 else units / self.units

    @property
    def no_edge(self) -> int | float:
        return NO_EDGE[self.dtype]


def recipe_for(e: Experiment) -> Recipe:
    """The integers behind its graph. Raises Refused where no such graph exists or its weights do not fit."""
    units = GRID if e.real else 1
    low, high = round(e.low * units), round(e.high * units)
    forced = e.n if e.connected and e.n > 1 else 0
    wanted = round(e.density * e.n * (e.n - 1))
    if e.exact and wanted < forced:
        raise Refused(
            f"{wanted} edges cannot connect {e.n} vertices strongly, which takes {forced}; "
            f"raise the density to {forced / (e.n * (e.n - 1)):.4g}, or ask for no connectivity"
        )
    reach = potential_range(e.negative, low, high)
    greatest = (high + max(0, reach - 1)) / units
    if greatest >= NO_EDGE[e.dtype]:
        raise Refused(f"weights up to {greatest:g} do not fit {e.dtype}, which ends at {NO_EDGE[e.dtype] - 1}; choose int32")
    cells = e.n * (e.n - 1) - forced
    with np.errstate(over="ignore"):  # NumPy warns for scalars that wrap, and wrapping is the point
        key = PLAIN.graph_key(np.uint64(e.seed))
        shuffle_key = PLAIN.mix(key)
        vertices = np.arange(e.n if reach else 0, dtype=np.uint64)
        potentials = PLAIN.potential(key, vertices, np.uint64(reach)).astype(np.int64)
    return Recipe(
        n=e.n,
        dtype=e.dtype,
        key=key,
        threshold=np.uint64(round(e.density * 2**32)),
        low=low,
        span=np.uint64(high - low + 1),
        units=units,
        connected=forced > 0,
        exact=e.exact,
        drawn=np.uint64(max(0, wanted - forced)),
        cells=np.uint64(cells),
        half=np.uint64(max(1, (max(0, cells - 1).bit_length() + 1) // 2)),
        shuffle_key=shuffle_key,
        potential_range=reach,
        potentials=potentials,
    )


def potential_range(share: float, low: int, high: int) -> int:
    """The number of potentials H for which that share of edges is nearest to negative; 0 for no share.

    The difference of two uniform potentials is triangular: -d has probability (H - d) / H^2.
    """
    if share <= 0:
        return 0
    above = 2
    while expected_share(above, low, high) < share:
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (below + above) // 2
        if expected_share(middle, low, high) < share:
            below = middle
        else:
            above = middle
    return min((below, above), key=lambda reach: abs(expected_share(reach, low, high) - share))


def expected_share(reach: int, low: int, high: int) -> float:
    """Expected share of negative edges for weights low..high and potentials 0..reach - 1, all uniform."""

    def tetrahedral(x: int) -> int:
        return x * (x + 1) * (x + 2) // 6 if x > 0 else 0

    below = tetrahedral(reach - 1 - low) - tetrahedral(reach - 2 - high)
    return below / (reach * reach * (high - low + 1))
