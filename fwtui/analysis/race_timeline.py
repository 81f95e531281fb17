"""Progress of recorded runs over time, for a race."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from fwtui.stream.run import Run

SECONDS = 8.0  # length of a race on screen, however short the runs are


class ProgressCurve(NamedTuple):
    """Shares (0 to 1) of a run's relaxations, and the seconds at which they are reached; both ascending.

    `sampled`: from the rounds of the instrumented repetition, scaled to the median time; else a straight line.
    """

    shares: tuple[float, ...]
    seconds: tuple[float, ...]
    sampled: bool

    @property
    def total(self) -> float:
        return self.seconds[-1]

    def share_at(self, seconds: float) -> float:
        """Return the progress after that many seconds, interpolated linearly.

        numpy.interp divides first, which overflows for times of 1e-310 s, and the Compare screen would have to import NumPy.
        """
        place = bisect_right(self.seconds, seconds)
        if not place or place == len(self.seconds):
            return self.shares[min(place, len(self.shares) - 1)]
        low, high = self.seconds[place - 1], self.seconds[place]
        below, above = self.shares[place - 1], self.shares[place]
        return below + (above - below) * (seconds - low) / (high - low)


def can_race(run: Run) -> bool:
    """Return True for a finished run with a time."""
    return run.state == "done" and bool(run.seconds)


def progress_curve(run: Run) -> ProgressCurve | None:
    """Return the progress of a run over time; None for a run without a time."""
    if not can_race(run) or not run.seconds:
        return None
    rounds = sorted({r.first: r for r in run.rounds}.values(), key=lambda r: r.index)
    rounds = [r for r in rounds if r.first < run.relaxations]
    ascending = all(a.first < b.first and a.index < b.index for a, b in pairwise(rounds))
    if len(rounds) < 2 or not ascending or rounds[0].first != 0 or not all(sum(r.seconds) > 0 for r in rounds):
        return ProgressCurve((0.0, 1.0), (0.0, run.seconds), False)
    last, before = rounds[-1], rounds[-2]
    each = (last.first - before.first) / (last.index - before.index)  # relaxations of a round near the end
    ends = [r.index for r in rounds[1:]] + [last.index + max(1, round((run.relaxations - last.first) / each))]
    clock, reached = 0.0, [0.0]
    for row, end in zip(rounds, ends, strict=True):
        clock += sum(row.seconds) * (end - row.index)
        reached.append(clock)
    shares = (*(r.first / run.relaxations for r in rounds), 1.0)
    return ProgressCurve(shares, tuple(s * run.seconds / clock for s in reached), True)


class RacePosition(NamedTuple):
    """A run's share of the work and its elapsed seconds."""

    share: float
    seconds: float


def by_time(curves: Sequence[ProgressCurve], watched: float) -> list[RacePosition]:
    """Return the position of each run after the share `watched` (0 to 1) of the slowest run's time."""
    now = watched * max((c.total for c in curves), default=0.0)
    return [RacePosition(c.share_at(now), min(now, c.total)) for c in curves]
