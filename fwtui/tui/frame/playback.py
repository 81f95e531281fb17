"""A recording that is played: a player says which lines have happened, and a Model is made to agree with it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

from fwtui.common import units
from fwtui.common.text import shown
from fwtui.stream.model import Model
from fwtui.tui.frame.recording import Recording, first_seconds
from fwtui.tui.frame.transport import Band, Position

JUMP_SECONDS = 5.0
JUMP_SHARE = 0.1
MAX_GAP = 1.0  # seconds between two events where idle gaps are shortened and nothing else was asked for
SLICE_SECONDS = 0.02  # of applying events; keys and signals are served between two slices
PAUSE_SECONDS = 0.005
CHUNK = 64  # events between two looks at the clock
_CLOCK = re.compile(r"(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9}(?:\.\d{1,9})?) ?s?", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?) ?%", re.ASCII)
PLACES = "seconds (12.5), minutes (1:30), a share (40 %), run 3, marker 2, or a marker's words"


class Playback:
    """Seeks are answered in slices: `later(seconds, call)` is how the next one is asked for.

    A recording that is still being heard is followed at its end, until the user goes elsewhere.
    """

    def __init__(self, recording: Recording, later: Callable[[float, Callable[[], None]], object], playing: bool = True):
        """Without `playing` it is for pictures and tests: every seek is over at once, however long it takes."""
        self.recording = recording
        self.model = Model()
        self.player = recording.player
        self.player.speed = recording.speed
        self.player.stops = recording.marks.directed
        self.live = recording.live
        self.player.seek_time(math.inf if self.live else recording.start or first_seconds(recording.loaded.lines))
        self._later = later
        self._slice = SLICE_SECONDS if playing else math.inf
        self._behind = False  # the next slice is on its way
        self._gap = recording.max_gap or MAX_GAP
        self._origin = recording.origin
        if playing and not self.live and not (self.player.stops and self.player.marker):
            self.player.play()

    @property
    def position(self) -> Position:
        """Where the model is, which may still be on its way to the player."""
        p, r = self.player, self.recording
        seconds = p.position
        if self.model.index != p.index:
            seconds = p.due(self.model.index - 1) if self.model.index else 0.0
        return Position(
            seconds, p.duration, p.playing, p.speed, p.loop, r.name, self._origin, r.problems, p.max_gap, p.stops, self.live
        )

    @property
    def bands(self) -> tuple[Band, ...]:
        """What the timeline shows."""
        return self.recording.marks.bands(self.player)

    def tick(self, now: float) -> None:
        """Let the player go on to `now` seconds of a monotonic clock; called about ten times a second."""
        if self.recording.listen():
            self._origin = self.recording.origin
        if self.live:
            self.player.seek(self.player.duration)
        played = self.player.playing
        self.player.tick(now)
        caught_up = played and self.player.at_end and not self.player.playing
        self.live = self.recording.live and (self.live or caught_up)
        if not self._behind:
            self.follow()

    def follow(self) -> None:
        """Make the model agree with the player, or come nearer and go on soon."""
        self.model.seek(self.player.index)
        until = time.monotonic() + self._slice
        while self.model.index < self.player.index:
            first = self.model.index
            for recorded in self.player.lines[first : min(first + CHUNK, self.player.index)]:
                self.model.apply(recorded.event)
            if time.monotonic() > until:
                break
        if self.model.index < self.player.index and not self._behind:
            self._behind = True
            self._later(PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._behind = False
        self.follow()

    def _left(self) -> None:
        """The user went somewhere: what is still going is followed again from its end only."""
        self.live = self.recording.live and self.player.at_end
        self.follow()

    def play(self) -> None:
        """Play, or pause."""
        if self.player.playing or self.live:
            self.player.pause()
            self.live = False
        elif self.recording.live and self.player.at_end:
            self.live = True
        else:
            self.player.play()
        self.follow()

    def step(self, count: int) -> None:
        self.player.step(count)
        self._left()

    def step_round(self, count: int) -> None:
        self.player.step_round(count)
        self._left()

    def next_run(self, count: int) -> None:
        self.player.go_run(count)
        self._left()

    def next_marker(self, count: int) -> None:
        self.player.go_marker(count)
        self._left()

    def jump(self, direction: int) -> None:
        self.player.seek(self.player.position + direction * JUMP_SECONDS)
        self._left()

    def leap(self, direction: int) -> None:
        self.player.seek(self.player.position + direction * JUMP_SHARE * self.player.duration)
        self._left()

    def seek(self, share: float) -> None:
        """Go to this share (0..1) of the session."""
        self.player.seek(share * self.player.duration)
        self._left()

    def go(self, place: str) -> str:
        """Go where a person's words say (PLACES); what is wrong with them, in a sentence, or nothing."""
        words = place.strip()
        share, clock = _SHARE.fullmatch(words), _CLOCK.fullmatch(words)
        kind, _, name = words.partition(" ")
        if share:
            self.player.seek(min(float(share[1]) / 100, 1.0) * self.player.duration)
        elif clock:
            self.player.seek_time(3600 * int(clock[1] or 0) + 60 * int(clock[2] or 0) + float(clock[3]))
        elif kind.lower() == "run" and name.strip().isascii() and name.strip().isdecimal():
            if not self.player.seek_run(int(name.strip()[:10])):
                return f"there is no run {name.strip()[:10]} in this session; ] and [ go through its runs"
        elif not (words and (self.player.seek_marker(_marker(words)) or self.player.seek_marker(words))):
            return f"{shown(words)} is no place in this session; give {PLACES}"
        self._left()
        return ""

    def speed(self, direction: int) -> None:
        if direction > 0:
            self.player.faster()
        else:
            self.player.slower()

    def loop(self) -> None:
        self.player.loop = not self.player.loop

    def gaps(self) -> str:
        """Shorten idle gaps, or play them as long as they were; what that means, in words."""
        self.player.max_gap = None if self.player.max_gap is not None else self._gap
        if self.player.max_gap is None:
            return "idle gaps are as long as they were"
        return f"nothing happens for at most {units.duration(self._gap)}: longer gaps are shortened"

    def stops(self) -> str:
        """Stop at markers, or play over them; what that means, in words."""
        self.player.stops = not self.player.stops
        return "playing stops at every marker; space goes on" if self.player.stops else "playing does not stop at markers"


def _marker(words: str) -> str:
    kind, _, name = words.partition(" ")
    return name.strip() if kind.lower() == "marker" else words
