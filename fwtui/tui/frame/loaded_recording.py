"""A loaded session as the replay shows it: its name, its origin, its faults, and its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from textual.message import Message

from fwtui.common import units
from fwtui.common.text import clean
from fwtui.learn.questions import cue_of
from fwtui.sessions.folders import stem
from fwtui.sessions.library import recorded_on
from fwtui.sessions.pipes import Listener
from fwtui.sessions.player import Player
from fwtui.sessions.reader import LoadedSession
from fwtui.stream import events
from fwtui.stream.codec import Line, Undecoded

FIRST_LINES = 1000
IDLE_GAP = 1.0  # seconds between two events where idle gaps are shortened and nothing else was asked for
MARKED = (events.RunStarted, events.RunDone, events.Marker, events.Fault)
MAX_BANDS = 2000  # that a timeline draws: more than any terminal has cells


class Band(NamedTuple):
    """A stretch (a run) or a place (marker, fault) of the timeline, in seconds."""

    start: float
    end: float
    kind: str  # "run" | "marker" | "fault"


@dataclass
class SessionWanted(Message):
    """A session is to be opened, or its runs are to be shown beside those of the view."""

    path: Path
    beside: bool = False


@dataclass
class Recording:
    """A session that has been read, or that is still arriving."""

    name: str
    loaded: LoadedSession
    speed: float = 1.0
    start: float = 0.0
    max_gap: float | None = None
    listener: Listener | None = None
    folded: bool = False  # what is between its runs is shortened unless a longest gap is given

    @cached_property
    def player(self) -> Player:
        """Made from its lines, which takes a while for very many."""
        if self.folded and self.max_gap is None:
            return Player(self.loaded.lines, IDLE_GAP, between_runs=True)
        return Player(self.loaded.lines, self.max_gap)

    @cached_property
    def marks(self) -> Marks:
        """What its timeline shows."""
        marks = Marks()
        marks.see(self.loaded.lines)
        return marks

    @property
    def live(self) -> bool:
        """More may come."""
        return self.listener is not None and not self.listener.over

    def listen(self) -> None:
        """Take the lines that have come since the last time."""
        if self.listener is not None and not self.listener.over:
            more = self.listener.take()
            self.player.extend(more)
            self.marks.see(more)
            self.loaded = self.listener.inlet.loaded(self.player.lines)

    @property
    def origin(self) -> str:
        """recorded on NVIDIA H200 · 2025-11-20"""
        # told at the beginning: a stream is not searched again for each of its lines
        events_read = (recorded.event for recorded in self.loaded.lines[:FIRST_LINES] if recorded.kind is events.Device)
        gpu = next((e.name for e in events_read if isinstance(e, events.Device) and e.present and e.name), "")
        header = self.loaded.header
        title = f"{header.title} · " if header.title else ""
        return f"{title}{recorded_on(header, gpu)}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What is missing from the session, in words."""
        loaded = self.loaded
        found = [f"damaged: {units.counted(loaded.damaged, 'line')}"] if loaded.damaged else []
        if loaded.cut or (self.listener is not None and self.listener.refusal):
            found.append("cut off at the limit")
        elif not loaded.closed and not loaded.damaged and not self.live:
            found.append("incomplete")
        if loaded.dropped:
            found.append(f"{units.counted(loaded.dropped, 'event')} dropped")
        return tuple(found)


class Marks:
    """Where runs begin and end, markers and faults: by line, so that a timeline may squeeze time."""

    def __init__(self) -> None:
        self._seen = 0
        self._places: list[tuple[int, int | None, str]] = []  # first line, last line (None: still going), kind
        self._going: dict[int, int] = {}  # by run, its place
        self.directed = False  # whether some marker points at a panel or asks: it is a lecture

    def see(self, lines: Sequence[Line]) -> None:
        """More lines of the session, in order."""
        for index, recorded in enumerate(lines, self._seen):
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
        self._seen += len(lines)

    def _end(self, run: int | None, index: int) -> None:
        place = self._going.pop(run, None) if run is not None else None
        if place is not None:
            self._places[place] = (self._places[place][0], index, "run")

    def bands(self, player: Player) -> tuple[Band, ...]:
        """Runs from start to end, markers and faults, at the positions that the player gives them."""
        end = player.duration
        return tuple(
            Band(player.due(first), end if last is None else player.due(last), kind) for first, last, kind in self._places
        )


def first_seconds(lines: Sequence[Line]) -> float:
    """When something first happens: a recording may begin long after its session did."""
    kinds = (events.Telemetry, events.RunStarted, events.Notice, events.Marker, events.Fault)
    return next((recorded.t for recorded in lines if recorded.kind in kinds), 0.0)


def first_seen(lines: Sequence[Line]) -> float:
    """When there is something to see: the first run is being timed, or has ended. What markers lead to begins before them."""
    for recorded in lines:
        match recorded.event if recorded.kind in (events.Stage, events.RunDone, events.Fault, events.Marker) else None:
            case events.Stage(name="clean") | events.RunDone() | events.Fault():
                return recorded.t
            case events.Marker():
                break
    return first_seconds(lines)


def named(path: Path) -> str:
    """The file's name as it is shown."""
    return clean(stem(path))
