"""The ratio of the times of two runs with its confidence interval, for any distribution of the repetitions."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist, median
from typing import NamedTuple

from fwtui.common import units

CONFIDENCE = 0.95
_EXACT_UP_TO = 60  # repetitions of both runs; for more the normal approximation is accurate
MIN_SECONDS = 1e-12  # below the resolution of any clock; a forged file may contain less


class Ratio(NamedTuple):
    """A ratio of times with its ends: the 95 % confidence interval, or the extremes of `few` repetitions.

    If the slower run was disturbed, `least` is the lower bound of the factor between the runs without the disturbance.
    """

    estimate: float
    low: float
    high: float
    few: int = 0  # repetitions, if they are too few for an interval
    least: float = 0.0
    disturbed: str = ""  # one word: noisy, throttled

    @property
    def certain(self) -> bool:
        """Return True for an interval of undisturbed repetitions."""
        return not (self.few or self.disturbed)

    @property
    def factor(self) -> str:
        """The factor as text, whichever run is faster."""
        return units.gain(max(self.estimate, 1 / self.estimate))

    @property
    def text(self) -> str:
        """The factor and why it is uncertain: about 108x (one repetition), ≥ 10x (noisy)."""
        if self.disturbed:
            return f"≥ {self.least:.0f}x ({self.disturbed})"
        return f"about {self.factor} ({'one repetition' if self.few == 1 else f'{self.few} repetitions'})"


def ratio(seconds: Sequence[float], baseline: Sequence[float]) -> Ratio | None:
    """Return time / baseline time with its 95 % interval; None if there are too few repetitions for an interval.

    The Hodges-Lehmann estimate (the median of all pairwise ratios) and the interval between two of those ratios that
    inverts the Mann-Whitney test: E. L. Lehmann, Nonparametrics, 1975, section 2.6; M. Hollander, D. A. Wolfe,
    Nonparametric Statistical Methods, section 4.3. It assumes independent repetitions and two distributions that differ by
    a factor. At least four repetitions of both runs are needed, or 3 and 5.
    """
    return _ratio(*(array("d", passes).tobytes() for passes in (seconds, baseline)))


@lru_cache(maxsize=256)  # two tables of a hundred runs; packed keys take a fifth of the memory
def _ratio(seconds: bytes, baseline: bytes) -> Ratio | None:
    ours, theirs = (
        sorted(s for s in array("d", packed) if math.isfinite(s) and s >= MIN_SECONDS) for packed in (seconds, baseline)
    )
    rank = _rank(min(len(ours), len(theirs)), max(len(ours), len(theirs)))
    if not rank:
        return None
    ratios = sorted(a / b for b in theirs for a in ours)
    return Ratio(median(ratios), ratios[rank - 1], ratios[-rank])


@lru_cache(maxsize=256)
def _rank(few: int, many: int, exact_up_to: int = _EXACT_UP_TO) -> int:
    """Return the rank k of the interval, from the k-th smallest to the k-th largest pairwise ratio; 0 for no interval."""
    if not few:
        return 0
    if few + many > exact_up_to:
        wide = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(few * many * (few + many + 1) / 12)
        return max(0, math.floor(few * many / 2 - wide))
    allowed = (1 - CONFIDENCE) / 2 * math.comb(few + many, few)
    return bisect_right(list(accumulate(_arrangements(few, many))), allowed)


def _arrangements(few: int, many: int) -> Sequence[int]:
    """Return the number of arrangements of both samples for each value of the Mann-Whitney U (Gaussian binomials)."""
    counts = [1] + [0] * (few * many)
    for i in range(1, few + 1):
        for u in range(len(counts) - 1, many + i - 1, -1):
            counts[u] -= counts[u - many - i]
        for u in range(i, len(counts)):
            counts[u] += counts[u - i]
    return counts
