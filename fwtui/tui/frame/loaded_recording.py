"""A loaded session as the replay shows it: its name, its origin, its faults, and its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from textual.message import Message

from fwtui.common.text import sanitise
from fwtui.learn.questions import cue_of
from fwtui.sessions.folders import stem
from fwtui.sessions.library import recorded_on
from fwtui.sessions.player import Player
from fwtui.sessions.reader import LoadedSession
from fwtui.stream import events
from fwtui.stream.codec import Line, Undecoded

FIRST_LINES = 1000
IDLE_GAP = 1.0  # maximum seconds between two runs, unless the user chooses another gap
MARKED = (events.RunStarted, events.RunDone, events.Marker, events.Fault)
MAX_BANDS = 2000  # bands of a timeline: more than any terminal has cells


class Band(NamedTuple):
    """A run, a marker or a fault on the timeline, in seconds."""

    start: float
    end: float
    kind: str  # "run" | "marker" | "fault"


@dataclass
class SessionWanted(Message):
    """A request to open a session, or (`compare`) to compare its runs with those of the view."""

    path: Path
    compare: bool = False


@dataclass
class Recording:
    """A session that has been read."""

    name: str
    session: LoadedSession
    speed: float = 1.0
    start: float = 0.0
    max_gap: float | None = None
    folded: bool = False  # shorten the time between runs, unless `max_gap` is set

    @cached_property
    def player(self) -> Player:
        """The player; its construction takes seconds for millions of lines."""
        if self.folded and self.max_gap is None:
            return Player(self.session.lines, IDLE_GAP, between_runs=True)
        return Player(self.session.lines, self.max_gap)

    @cached_property
    def marks(self) -> Marks:
        """Runs, markers and faults of the timeline."""
        return Marks(self.session.lines)

    @property
    def origin(self) -> str:
        """Device and date of the recording: recorded on NVIDIA H200 · 2025-11-20."""
        # devices are in the first lines
        events_read = (recorded.event for recorded in self.session.lines[:FIRST_LINES] if recorded.kind is events.Device)
        gpu = next((e.name for e in events_read if isinstance(e, events.Device) and e.present and e.name), "")
        header = self.session.header
        title = f"{header.title} · " if header.title else ""
        return f"{title}{recorded_on(header, gpu)}"


class Marks:
    """Runs, markers and faults by line, so that the player can shorten the time between them."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._places: list[tuple[int, int | None, str]] = []  # first line, last line (None: still running), kind
        self._going: dict[int, int] = {}  # index in _places of each active run
        self.directed = False  # True for a lecture: a marker names a panel or asks a question
        for index, recorded in enumerate(lines):
            payload = recorded.payload
            kind = payload.kind if type(payload) is Undecoded else type(payload)
            if kind not in MARKED or (kind in (events.RunStarted, events.Marker) and len(self._places) >= MAX_BANDS):
                continue
            match recorded.event:
                case events.RunStarted() as e:
                    self._going[e.run] = len(self._places)
                    self._places.append((index, None, "run"))
                case events.RunDone() as e:
                    self._end(e.run, index)
                case events.Marker() as e:
                    self.directed = self.directed or cue_of(e).directed
                    self._places.append((index, index, "marker"))
                case events.Fault() as e:
                    self._end(e.run, index)
                    if len(self._places) < MAX_BANDS:
                        self._places.append((index, index, "fault"))

    def _end(self, run: int | None, index: int) -> None:
        place = self._going.pop(run, None) if run is not None else None
        if place is not None:
            self._places[place] = (self._places[place][0], index, "run")

    def bands(self, player: Player) -> tuple[Band, ...]:
        """Return runs, markers and faults at the player's times."""
        end = player.duration
        return tuple(
            Band(player.due(first), end if last is None else player.due(last), kind) for first, last, kind in self._places
        )


def first_seconds(lines: Sequence[Line]) -> float:
    """Return the time of the first event of the session: it may have started long before the recording."""
    kinds = (events.Telemetry, events.RunStarted, events.Notice, events.Marker, events.Fault)
    return next((recorded.t for recorded in lines if recorded.kind in kinds), 0.0)


def first_seen(lines: Sequence[Line]) -> float:
    """Return the time at which the first run is timed or ends; or of the first event if the session starts with a marker."""
    for recorded in lines:
        match recorded.event if recorded.kind in (events.Stage, events.RunDone, events.Fault, events.Marker) else None:
            case events.Stage(name="clean") | events.RunDone() | events.Fault():
                return recorded.t
            case events.Marker():
                break
    return first_seconds(lines)


def named(path: Path) -> str:
    """Return the displayed name of a file."""
    return sanitise(stem(path))
