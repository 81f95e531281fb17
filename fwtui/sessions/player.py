"""The playback clock of a recorded session: due times over a list of lines, without threads or a screen.

The caller owns a Model of the lines applied so far and makes it agree with `index`: it applies `lines[applied:index]` after a
move forwards, and rebuilds the model up to `index` after a move back.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from fwtui.stream.codec import Line, Undecoded
from fwtui.stream.events import Event, Marker, RunDone, RunStarted, Telemetry

_CLOCK = re.compile(r"(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9}(?:\.\d{1,9})?) ?s?", re.ASCII)
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def clock_seconds(text: str) -> float | None:
    """Return the seconds of a time such as 12.5, 1:30 or 1:02:03; None if the text is not a time."""
    found = _CLOCK.fullmatch(text.strip())
    return 3600 * int(found[1] or 0) + 60 * int(found[2] or 0) + float(found[3]) if found is not None else None


class Player:
    """A position in a session that moves with wall-clock time while `playing`.

    Positions are seconds of playback: recorded seconds, but `max_gap` limits gaps between events other than telemetry
    (`between_runs`: only outside runs). Events are in file order; a time that steps back counts as a gap of 0. With `stops`
    it pauses at each marker.
    """

    def __init__(self, lines: Iterable[Line], max_gap: float | None = None, between_runs: bool = False) -> None:
        self.lines = [*lines]
        self.index = 0  # number of lines due, all of which should be applied
        self.position = 0.0
        self.playing = False
        self.stops = False
        self.speed = 1.0  # one of SPEEDS
        self._now: float | None = None
        self.max_gap, self._between_runs = max_gap, between_runs
        self._places = {kind: array("q") for kind in (Event, RunStarted, RunDone, Marker)}  # line numbers by kind of event
        self._recorded = array("d")
        latest, places, recorded = 0.0, self._places, self._recorded
        for index, line in enumerate(self.lines):  # up to millions of iterations
            event = line.payload
            latest = event.t if event.t > latest else latest
            recorded.append(latest)
            kind = event.kind if type(event) is Undecoded else type(event)
            if kind is not Telemetry:
                places[Event].append(index)
                if kind in places:
                    places[kind].append(index)
        self._due = self._spread()

    @property
    def duration(self) -> float:
        """Return the position of the last line."""
        return self._due[-1] if self._due else 0.0

    @property
    def length(self) -> float:
        """Return the recorded seconds of the last line, with all gaps."""
        return self._recorded[-1] if self._recorded else 0.0

    @property
    def at_end(self) -> bool:
        return self.index == len(self.lines)

    @property
    def time(self) -> float:
        """Return the recorded seconds at the position."""
        return _between(self._due, self._recorded, self.position)

    def hurry(self, direction: int) -> None:
        """Double the speed, up to 64; halve it, down to a quarter, if the direction is negative."""
        self.speed = min(max(self.speed * 2.0**direction, SPEEDS[0]), SPEEDS[-1])

    def play(self) -> None:
        """Play from here, or from the beginning if at the end."""
        if self.at_end:
            self.seek(0.0)
        self.playing = True
        self._now = None

    def pause(self) -> None:
        self.playing = False

    def tick(self, now: float) -> list[Line]:
        """Return the lines due since the last tick, at `now` seconds of a monotonic clock.

        Playing stops at the end.
        """
        if not self.playing:
            return []
        elapsed = 0.0 if self._now is None else max(0.0, now - self._now)
        self._now = now
        self.position = min(self.position + elapsed * self.speed, self.duration)
        first, self.index = self.index, max(self.index, self.index_at(self.position))
        markers = self._places[Marker]
        passed = bisect_left(markers, first)
        if self.stops and passed < bisect_left(markers, self.index):
            self._stand_after(markers[passed])
            self.playing = False
        elif self.at_end:
            self.playing = False
        return self.lines[first : self.index]

    @property
    def marker(self) -> tuple[int, int, Marker] | None:
        """Return the marker at the position, its number (from 1) and the number of markers; telemetry after it is ignored."""
        passed = bisect_left(self._places[Event], self.index)
        if not passed:
            return None
        last, markers = self._places[Event][passed - 1], self._places[Marker]
        event = self.lines[last].event
        return (bisect_left(markers, last) + 1, len(markers), event) if isinstance(event, Marker) else None

    def index_at(self, seconds: float) -> int:
        """Return the number of lines due at a position."""
        return bisect_right(self._due, seconds)

    def due(self, index: int) -> float:
        """Return the position of a line."""
        return self._due[index]

    def seek(self, seconds: float) -> None:
        """Jump to a position, within the session."""
        self.position = min(max(seconds, 0.0), self.duration)
        self.index = self.index_at(self.position)

    def seek_time(self, seconds: float) -> None:
        """Jump to a recorded time."""
        self.seek(_between(self._recorded, self._due, seconds))

    def step(self, count: int) -> None:
        """Pause, then move that many events forwards, or back if negative; telemetry does not count."""
        self.pause()
        self.go(Event, count)

    def go(self, kind: type[Event], count: int) -> None:
        """Jump that many events of that kind (Event, RunStarted, Marker) forwards, or back if negative; stay if there is none."""
        places = self._places[kind]
        passed = bisect_left(places, self.index)
        target = min(max(passed + count, 1), len(places))
        if (target > passed) if count > 0 else passed:
            self._stand_after(places[target - 1])

    def count(self, kind: type[Event]) -> tuple[int, int]:
        """Return the number of due events of that kind (RunStarted, Marker), and of all events of that kind."""
        return bisect_left(self._places[kind], self.index), len(self._places[kind])

    def seek_marker(self, number: int) -> None:
        """Jump to the marker of that number, from 1."""
        self._stand_after(self._places[Marker][number - 1])

    def _stand_after(self, index: int) -> None:
        self.index = index + 1
        self.position = self._due[index]

    def _goes_on(self, index: int) -> bool:
        """Return whether a run is active before that line, so that the gap is not idle."""
        begun, done = (self._places[kind][: bisect_left(self._places[kind], index)][-1:] for kind in (RunStarted, RunDone))
        return self._between_runs and begun > done

    def _spread(self) -> array[float]:
        """Return the due times of the lines; gaps between events longer than max_gap are shortened evenly."""
        if self.max_gap is None:
            return self._recorded
        recorded, due = self._recorded, array("d")
        for last in [*self._places[Event], len(recorded) - 1]:
            first = len(due)
            if last < first:
                continue
            start, begun = (recorded[first - 1], due[first - 1]) if first else (0.0, 0.0)
            stretch = recorded[last] - start
            scale = self.max_gap / stretch if stretch > self.max_gap and not self._goes_on(first) else 1.0
            due.extend(begun + (t - start) * scale for t in recorded[first : last + 1])
        return due


def _between(positions: array[float], targets: array[float], value: float) -> float:
    """Return the value of the other clock at the same moment, interpolated between lines."""
    after = bisect_right(positions, value)
    if not after or after == len(positions):
        return targets[-1] if after else 0.0
    low, high = positions[after - 1], positions[after]
    share = (value - low) / (high - low) if high > low else 0.0
    return targets[after - 1] + share * (targets[after] - targets[after - 1])
