"""When each line of a recorded session is due: a clock over a list, with no threads and no screen.

Whoever shows the session keeps a Model of the lines applied so far and makes it agree with `index`: apply
`lines[applied:index]` when the player went forwards, rebuild up to `index` when it went back.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from fwtui.stream.codec import Line
from fwtui.stream.events import Marker, Round, RunStarted, Telemetry

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Player:
    """A position in a session that moves with the time of day while `playing`.

    Positions are seconds of playback: recorded seconds, except that with `max_gap` no two events other than
    telemetry are further apart than that. File order is the order, so a time that steps back counts as no time.
    With `stops` it pauses at each marker that it plays over.
    """

    def __init__(self, lines: Iterable[Line], max_gap: float | None = None, loop: bool = False) -> None:
        self.lines: list[Line] = []
        self.index = 0  # lines that are due, which is how many to have applied
        self.position = 0.0
        self.playing = False
        self.loop = loop
        self.stops = False
        self._speed = 1.0
        self._now: float | None = None
        self._max_gap = max_gap
        self._events: list[int] = []
        self._rounds: list[int] = []
        self._runs: list[int] = []
        self._markers: list[int] = []
        self._recorded = array("d")
        self._due = array("d")
        self.extend(lines)

    def extend(self, lines: Iterable[Line]) -> None:
        """More lines after the last one: a session that is still going."""
        latest = self._recorded[-1] if self._recorded else 0.0
        settled = self._events[-1] + 1 if self._events else 0
        for index, line in enumerate(lines, len(self.lines)):
            self.lines.append(line)
            event = line.event
            latest = max(latest, event.t)
            self._recorded.append(latest)
            if isinstance(event, Telemetry):
                continue
            self._events.append(index)
            if isinstance(event, Round):
                self._rounds.append(index)
            elif isinstance(event, RunStarted):
                self._runs.append(index)
            elif isinstance(event, Marker):
                self._markers.append(index)
        self._spread(settled)

    @property
    def duration(self) -> float:
        """The position of the last line."""
        return self._due[-1] if self._due else 0.0

    @property
    def length(self) -> float:
        """Recorded seconds of the last line, however gaps are played."""
        return self._recorded[-1] if self._recorded else 0.0

    @property
    def at_end(self) -> bool:
        return self.index == len(self.lines)

    @property
    def time(self) -> float:
        """Recorded seconds at the position."""
        return _between(self._due, self._recorded, self.position)

    @property
    def max_gap(self) -> float | None:
        return self._max_gap

    @max_gap.setter
    def max_gap(self, seconds: float | None) -> None:
        """Squeeze gaps, or give them back; what is shown stays."""
        time = self.time
        self._max_gap = seconds
        self._spread(0)
        self.position = _between(self._recorded, self._due, time)

    @property
    def speed(self) -> float:
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if speed not in SPEEDS:
            raise ValueError(f"a speed of {speed} is not one of {SPEEDS}")
        self._speed = speed

    def faster(self) -> None:
        """Twice as fast, up to 64 times."""
        self._speed = min(self._speed * 2, SPEEDS[-1])

    def slower(self) -> None:
        """Half as fast, down to a quarter."""
        self._speed = max(self._speed / 2, SPEEDS[0])

    def play(self) -> None:
        """Go on from here, or from the beginning when the end was reached."""
        if self.at_end:
            self.seek(0.0)
        self.playing = True
        self._now = None

    def pause(self) -> None:
        self.playing = False

    def tick(self, now: float) -> list[Line]:
        """The lines that became due since the last tick, at `now` seconds of a monotonic clock.

        At the end playing stops; with `loop` the next tick goes back to the beginning instead and gives no lines.
        """
        if not self.playing:
            return []
        elapsed = 0.0 if self._now is None else max(0.0, now - self._now)
        self._now = now
        if self.at_end and self.loop:
            self.position, self.index = 0.0, 0
            return []
        self.position = min(self.position + elapsed * self._speed, self.duration)
        first, self.index = self.index, max(self.index, self.index_at(self.position))
        marker = self._next_marker(first)
        if self.stops and marker is not None and marker < self.index:
            self._stand_after(marker)
            self.playing = False
        elif self.at_end and not self.loop:
            self.playing = False
        return self.lines[first : self.index]

    @property
    def marker(self) -> tuple[int, int, Marker] | None:
        """The marker that this stands at, with its number (from 1) and how many there are; telemetry after it does not count."""
        passed = bisect_left(self._events, self.index)
        last = self._events[passed - 1] if passed else None
        event = self.lines[last].event if last is not None else None
        if last is None or not isinstance(event, Marker):
            return None
        return bisect_left(self._markers, last) + 1, len(self._markers), event

    def index_at(self, seconds: float) -> int:
        """How many lines are due at a position."""
        return bisect_right(self._due, seconds)

    def due(self, index: int) -> float:
        """The position of a line."""
        return self._due[index]

    def seek(self, seconds: float) -> None:
        """Jump to a position, as near as the session has it."""
        self.position = min(max(seconds, 0.0), self.duration)
        self.index = self.index_at(self.position)

    def seek_time(self, seconds: float) -> None:
        """Jump to a recorded time."""
        self.seek(_between(self._recorded, self._due, seconds))

    def step(self, count: int) -> None:
        """Pause, then go so many events on, or back when negative; telemetry is no event here."""
        self.pause()
        self._go(self._events, count)

    def step_round(self, count: int) -> None:
        """Pause, then go so many told rounds of a phase pass on, or back when negative."""
        self.pause()
        self._go(self._rounds, count)

    def go_run(self, count: int) -> None:
        """Jump to where a run begins, so many runs on, or back when negative; stays where there is none."""
        self._go(self._runs, count)

    def go_marker(self, count: int) -> None:
        """Jump so many markers on, or back when negative."""
        self._go(self._markers, count)

    def seek_run(self, run: int) -> bool:
        """Jump to where the run of that number begins; False where there is none."""
        return self._seek_first(i for i in self._runs if getattr(self.lines[i].event, "run", None) == run)

    def seek_marker(self, words: str) -> bool:
        """Jump to the marker of that number (from 1), or the first one that contains the words; False where there is none."""
        if words.isdecimal() and words.isascii() and 1 <= int(words[:9]) <= len(self._markers):
            return self._seek_first([self._markers[int(words[:9]) - 1]])
        texts = ((i, self.lines[i].event) for i in self._markers)
        return self._seek_first(i for i, e in texts if isinstance(e, Marker) and words.lower() in e.text.lower())

    def _seek_first(self, found: Iterable[int]) -> bool:
        index = next(iter(found), None)
        if index is not None:
            self._stand_after(index)
        return index is not None

    def _next_marker(self, index: int) -> int | None:
        place = bisect_left(self._markers, index)
        return self._markers[place] if place < len(self._markers) else None

    def _stand_after(self, index: int) -> None:
        self.index = index + 1
        self.position = self._due[index]

    def _go(self, marks: list[int], count: int) -> None:
        passed = bisect_left(marks, self.index)
        target = min(max(passed + count, 1), len(marks))
        if (target > passed) if count > 0 else passed:
            self._stand_after(marks[target - 1])

    def _spread(self, settled: int) -> None:
        """Due times of the lines from `settled` on; stretches between events that are longer than max_gap are squeezed evenly."""
        if self._max_gap is None:
            self._due = self._recorded
            return
        if self._due is self._recorded:
            self._due, settled = array("d"), 0
        del self._due[settled:]
        recorded, due = self._recorded, self._due
        for last in [*self._events[bisect_left(self._events, settled) :], len(recorded) - 1]:
            first = len(due)
            if last < first:
                continue
            start, begun = (recorded[first - 1], due[first - 1]) if first else (0.0, 0.0)
            stretch = recorded[last] - start
            scale = self._max_gap / stretch if stretch > self._max_gap else 1.0
            due.extend(begun + (t - start) * scale for t in recorded[first : last + 1])


def _between(known: array[float], wanted: array[float], value: float) -> float:
    """The value of the other clock at the same moment: both are known at every line, and even in between."""
    after = bisect_right(known, value)
    if not after or after == len(known):
        return wanted[-1] if after else 0.0
    low, high = known[after - 1], known[after]
    share = (value - low) / (high - low) if high > low else 0.0
    return wanted[after - 1] + share * (wanted[after] - wanted[after - 1])
