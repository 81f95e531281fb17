"""When each line of a recorded session is due: a clock over a list, with no threads and no screen.

Whoever shows the session keeps a Model of the lines applied so far and makes it agree with `index`: apply
`lines[applied:index]` when the player went forwards, rebuild up to `index` when it went back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from fwtui.codec import Line
from fwtui.events import RunStarted, Telemetry

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class Player:
    """A position in a session that moves with the time of day while `playing`.

    Positions are seconds of playback: recorded seconds, except that with `max_gap` no two events other than
    telemetry are further apart than that. File order is the order, so a time that steps back counts as no time.
    """

    def __init__(self, lines: Sequence[Line], max_gap: float | None = None, loop: bool = False) -> None:
        self.lines = lines
        self.index = 0  # lines that are due, which is how many to have applied
        self.position = 0.0
        self.playing = False
        self.loop = loop
        self._speed = 1.0
        self._now: float | None = None
        self._events = [i for i, line in enumerate(lines) if not isinstance(line.event, Telemetry)]
        self._runs = [i for i in self._events if isinstance(lines[i].event, RunStarted)]
        self._due = _playback_times(lines, self._events, max_gap)

    @property
    def duration(self) -> float:
        """The position of the last line."""
        return self._due[-1] if self._due else 0.0

    @property
    def at_end(self) -> bool:
        return self.index == len(self.lines)

    @property
    def speed(self) -> float:
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if speed not in SPEEDS:
            raise ValueError(f"a speed of {speed} is not one of {SPEEDS}")
        self._speed = speed

    def faster(self) -> None:
        """Twice as fast, up to 16 times."""
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
        first, self.index = self.index, self.index_at(self.position)
        if self.at_end and not self.loop:
            self.playing = False
        return list(self.lines[first : self.index])

    def index_at(self, seconds: float) -> int:
        """How many lines are due at a position."""
        return bisect_right(self._due, seconds)

    def seek(self, seconds: float) -> None:
        """Jump to a position, as near as the session has it."""
        self.position = min(max(seconds, 0.0), self.duration)
        self.index = self.index_at(self.position)

    def step(self, count: int) -> None:
        """Pause, then go so many events on, or back when negative; telemetry is no event here."""
        self.pause()
        self._go(self._events, count)

    def next_run(self) -> None:
        """Jump to where the next run begins; stays where there is none."""
        self._go(self._runs, 1)

    def previous_run(self) -> None:
        """Jump to where the run before this one begins, or this one if it is the first."""
        self._go(self._runs, -1)

    def _go(self, marks: list[int], count: int) -> None:
        passed = bisect_left(marks, self.index)
        target = min(max(passed + count, 1), len(marks))
        if (target > passed) if count > 0 else passed:
            self.index = marks[target - 1] + 1
            self.position = self._due[self.index - 1]


def _playback_times(lines: Sequence[Line], events: list[int], max_gap: float | None) -> list[float]:
    """When each line is due; stretches between events that are longer than max_gap are squeezed into it evenly."""
    recorded: list[float] = []
    latest = 0.0
    for line in lines:
        latest = max(latest, line.event.t)
        recorded.append(latest)
    if max_gap is None or not recorded:
        return recorded
    due: list[float] = []
    start = playback = 0.0
    for last in [*events, len(lines) - 1]:
        stretch = recorded[last] - start
        scale = max_gap / stretch if stretch > max_gap else 1.0
        due += [playback + (t - start) * scale for t in recorded[len(due) : last + 1]]
        playback += stretch * scale
        start = recorded[last]
    return due
