"""A loaded session as the replay shows it: its name, its origin, its faults, and its timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fwtui import events
from fwtui.codec import Line
from fwtui.sessions.folders import SUFFIX
from fwtui.sessions.reader import Loaded
from fwtui.text import clean
from fwtui.tui.transport import Band


@dataclass(frozen=True, slots=True)
class Recording:
    """A loaded session and what to call it."""

    name: str
    loaded: Loaded
    speed: float = 1.0
    start: float = 0.0

    @property
    def origin(self) -> str:
        """recorded on NVIDIA H200 · 2025-11-20"""
        gpu = next((e.name for e in self._devices if e.present and e.name), "")
        header = self.loaded.header
        title = f"{header.title} · " if header.title else ""
        return f"{title}recorded on {gpu or header.machine.cpu or 'a machine without a GPU'} · {header.created[:10]}"

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not whole about the file, in words."""
        loaded = self.loaded
        found = [f"damaged: {loaded.damaged} line{'s' * (loaded.damaged != 1)}"] if loaded.damaged else []
        if not loaded.closed and not loaded.damaged:
            found.append("incomplete")
        if loaded.dropped:
            found.append(f"{loaded.dropped} events dropped")
        return tuple(found)

    @property
    def _devices(self) -> Iterator[events.Device]:
        return (recorded.event for recorded in self.loaded.lines if isinstance(recorded.event, events.Device))


def bands(lines: Sequence[Line], duration: float) -> tuple[Band, ...]:
    """What the timeline shows: runs from start to end, markers, faults."""
    found: list[Band] = []
    begun: dict[int, float] = {}
    for recorded in lines:
        match recorded.event:
            case events.RunStarted() as e:
                begun[e.run] = e.t
            case events.RunDone() as e if e.run in begun:
                found.append(Band(begun.pop(e.run), e.t, "run"))
            case events.Marker() as e:
                found.append(Band(e.t, e.t, "marker"))
            case events.Fault() as e:
                found.append(Band(e.t, e.t, "fault"))
                if e.run in begun:
                    found.append(Band(begun.pop(e.run), e.t, "run"))
    return (*found, *(Band(start, duration, "run") for start in begun.values()))


def first_seconds(lines: Sequence[Line]) -> float:
    """When something first happens: a recording may begin long after its session did."""
    happening = (events.Telemetry, events.RunStarted, events.Notice, events.Marker, events.Fault)
    return next((recorded.event.t for recorded in lines if isinstance(recorded.event, happening)), 0.0)


def named(path: Path) -> str:
    """The file's name as it is shown."""
    return clean(path.name.removesuffix(SUFFIX))
