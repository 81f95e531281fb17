"""A recording that is played: a player says which lines have happened, and a Model is made to agree with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from fwtui.model import Model
from fwtui.sessions.player import Player
from fwtui.tui.recording import Recording, bands, first_seconds
from fwtui.tui.transport import Position

JUMP_SECONDS = 5.0
JUMP_SHARE = 0.1
SLICE_SECONDS = 0.02  # of applying events; keys and signals are served between two slices
PAUSE_SECONDS = 0.005
CHUNK = 64  # events between two looks at the clock


class Playback:
    """Seeks are answered in slices: `later(seconds, call)` is how the next one is asked for."""

    def __init__(self, recording: Recording, later: Callable[[float, Callable[[], None]], object], playing: bool = True):
        """Without `playing` it is for pictures and tests: every seek is over at once, however long it takes."""
        self.recording = recording
        self.model = Model()
        self.player = Player(recording.loaded.lines)
        self.player.speed = recording.speed
        self.player.seek(recording.start or first_seconds(recording.loaded.lines))
        self.bands = bands(recording.loaded.lines, self.player.duration)
        self._later = later
        self._slice = SLICE_SECONDS if playing else math.inf
        self._behind = False  # the next slice is on its way
        self._origin = recording.origin
        if playing:
            self.player.play()

    @property
    def position(self) -> Position:
        """Where the model is, which may still be on its way to the player."""
        p, r = self.player, self.recording
        seconds = p.position if self.model.index == p.index else min(self.model.t, p.duration)
        return Position(seconds, p.duration, p.playing, p.speed, p.loop, r.name, self._origin, r.problems)

    def tick(self, now: float) -> None:
        """Let the player go on to `now` seconds of a monotonic clock; called about ten times a second."""
        self.player.tick(now)
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

    def play(self) -> None:
        """Play, or pause."""
        if self.player.playing:
            self.player.pause()
        else:
            self.player.play()
        self.follow()

    def step(self, count: int) -> None:
        self.player.step(count)
        self.follow()

    def next_run(self, count: int) -> None:
        if count > 0:
            self.player.next_run()
        else:
            self.player.previous_run()
        self.follow()

    def jump(self, direction: int) -> None:
        self.player.seek(self.player.position + direction * JUMP_SECONDS)
        self.follow()

    def leap(self, direction: int) -> None:
        self.player.seek(self.player.position + direction * JUMP_SHARE * self.player.duration)
        self.follow()

    def seek(self, share: float) -> None:
        """Go to this share (0..1) of the session."""
        self.player.seek(share * self.player.duration)
        self.follow()

    def speed(self, direction: int) -> None:
        if direction > 0:
            self.player.faster()
        else:
            self.player.slower()

    def loop(self) -> None:
        self.player.loop = not self.player.loop
