"""A race of a run and the baseline: a clock that the user starts and stops, and a lane for each of the two."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis.race import SECONDS, Course, by_round, by_time, course
from fwtui.common import units
from fwtui.tui.compare.detail import NUMBER, Pair
from fwtui.tui.compare.table import short_label
from fwtui.tui.widgets import readout
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line

NAME = 22  # cells of a runner's label


class Race(NamedTuple):
    """A race at one moment; `watched` is the share of it that is over."""

    runners: tuple[tuple[str, Course], ...]  # each with its label
    by_round: bool
    watched: float
    going: bool
    keys: str  # that move it


class RaceClock:
    """How much of the race is over, as seconds go by; it takes SECONDS however short the runs are."""

    def __init__(self) -> None:
        self.by_round = False
        self.watched: float | None = None  # share of the race that is over; None: there is none
        self.going = False
        self._seen = 0.0

    def press(self) -> None:
        """Begin, pause or go on; what is over begins anew."""
        if self.watched is None or self.watched >= 1:
            self.watched, self.going = 0.0, True
        else:
            self.going = not self.going
        self._seen = monotonic()

    def run(self) -> None:
        """Let the time pass that has passed since the last look."""
        now = monotonic()
        if self.going and self.watched is not None:
            self.watched = min(1.0, self.watched + (now - self._seen) / SECONDS)
            self.going = self.watched < 1
        self._seen = now

    def end(self) -> None:
        """There is none any more."""
        self.watched, self.going = None, False

    def race(self, pair: Pair | None, keys: str) -> Race | None:
        """This moment of the race of that pair; None where none was begun, or one of the two has no time."""
        if pair is None or self.watched is None:
            return None
        runners = tuple((e.label, c) for e in (pair.baseline, pair.entrant) if (c := course(e.run)) is not None)
        return Race(runners, self.by_round, self.watched, self.going, keys) if len(runners) == 2 else None


class Track(Drawn[Race | str]):
    """A lane for each runner, or how to begin."""

    def draw(self, subject: Race | str, width: int) -> Sequence[Content]:
        if isinstance(subject, str):
            return [line((subject, MUTED))]
        courses = [c for _, c in subject.runners]
        places = (by_round if subject.by_round else by_time)(courses, subject.watched)
        first, slowest = min(place.seconds for place in places), max(c.total for c in courses)
        lines = [line(("RACE ", STRONG), (_head(subject, SECONDS / slowest, width - len("RACE ")), MUTED))]
        room = max(6, width - NAME - 2 * NUMBER - 2)
        for (label, way), place in zip(subject.runners, places, strict=True):
            took = units.duration(place.seconds)
            if subject.by_round:
                share = place.seconds / slowest
                behind = f"+{units.duration(place.seconds - first)}" if place.seconds > first else ""
                told = f"{took:>{NUMBER}}{behind:>{NUMBER}}"
            else:
                share = place.share
                told = f"{_where(way, share):>{NUMBER}}{took:>{NUMBER}}"
            lines.append(line(f"{short_label(label, NAME - 1):<{NAME}}", *readout.meter(share, room), "  ", told))
        straight = [label for label, way in subject.runners if not way.sampled]
        if straight:
            lines.append(line((f"no rounds are known of {' and '.join(straight)}: taken as even", MUTED)))
        return lines


def _head(race: Race, slowed: float, width: int) -> str:
    """How the race is seen, and how it stands; without what that means where there is no room."""
    how, means = ("by round", "all at the same point of the work") if race.by_round else ("by time", "all at the same moment")
    state = "going" if race.going else "over" if race.watched >= 1 else "paused"
    speed = f"{units.times(slowed)} slowed down" if slowed >= 1 else f"{units.times(1 / slowed)} sped up"
    whole, short = (f"{words}, {speed}   {state}   {race.keys}" for words in (f"{how}: {means}", how))
    return whole if len(whole) <= width else short


def _where(way: Course, share: float) -> str:
    if share >= 1:
        return "finished"
    return f"round {int(share * way.rounds)}" if way.rounds else units.percent(share)
