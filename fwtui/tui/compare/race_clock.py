"""A race of a run and the baseline that somebody watches: begun, paused, over."""

from __future__ import annotations

from time import monotonic

from fwtui.analysis.race import SECONDS, by_round, by_time, course
from fwtui.tui.compare.detail import Pair, Race, Runner


class RaceClock:
    """How much of the race is over, as seconds go by; it takes SECONDS however short the runs are."""

    def __init__(self) -> None:
        self.by_round = False
        self._watched: float | None = None  # share of the race that is over; None: there is none
        self._going = False
        self._seen = 0.0

    @property
    def begun(self) -> bool:
        return self._watched is not None

    @property
    def state(self) -> object:
        """What decides how it looks."""
        return (self.by_round, self._watched, self._going)

    def press(self) -> None:
        """Begin, pause or go on; what is over begins anew."""
        if self._watched is None or self._watched >= 1:
            self._watched = 0.0
            self._going = True
        else:
            self._going = not self._going
        self._seen = monotonic()

    def run(self) -> None:
        """Let the time pass that has passed since the last look."""
        now = monotonic()
        if self._going and self._watched is not None:
            self._watched = min(1.0, self._watched + (now - self._seen) / SECONDS)
            self._going = self._watched < 1
        self._seen = now

    def end(self) -> None:
        """There is none any more."""
        self._watched, self._going = None, False

    def race(self, pair: Pair | None, keys: str) -> Race | None:
        """This moment of the race of that pair; None where none was begun, or one of the two has no time."""
        if pair is None or self._watched is None:
            return None
        told = [(e.label, course(e.run)) for e in (pair.baseline, pair.entrant)]
        courses = [c for _, c in told if c is not None]
        if len(courses) < 2:
            return None
        places = (by_round if self.by_round else by_time)(courses, self._watched)
        runners = tuple(Runner(label, c, place) for (label, _), c, place in zip(told, courses, places, strict=True))
        return Race(runners, self.by_round, self._watched, self._going, SECONDS / max(c.total for c in courses), keys)
