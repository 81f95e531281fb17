"""A recorder that keeps only what a preset's claims and a replay need, so that its file stays small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from fwtui.campaigns.reproduce.preset import Preset
from fwtui.live.protocols import RunSession, beginning
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events
from fwtui.stream.codec import Line, Unknown
from fwtui.stream.model import GPM_WINDOW

TELEMETRY_HZ = 0.05  # plus one reading of each run's clean passes, for claims about busy units
LONG_PASS = 0.25  # seconds: telemetry is meaningful for a pass this long
DIGITS = 6  # significant ones of a number


class SlimRecorder(Recorder):
    """Leaves out progress, rounds, most samples, meaningless digits, and repeated events."""

    preset = Preset("", "", (), lambda results, scale: iter(()), 0.0)  # whose claims need no particular events

    def __init__(self, *given: Any, **named: Any) -> None:
        self._told: set[tuple[object, ...]] = set()  # the preface is written by the base class
        self._form: tuple[object, ...] = ()  # kernels compiled by the current run
        self._n = 0
        self._clean: float | None = None  # start of clean passes without a kept reading
        super().__init__(*given, **named)

    def write(self, line: Line) -> None:
        if self._first_reading(line.event):
            self.thinned.forget()  # kept even soon after the last one
        if self._wanted(line.event):
            super().write(line if isinstance(line.event, Unknown) else codec.as_line(rounded(line.event)))

    def _wanted(self, event: object) -> bool:
        match event:
            case events.Progress() | events.Round() | events.Answers():
                return False
            case events.Stage():
                return event.seconds is not None and event.name in self.preset.stages and self._n <= self.preset.stages_up_to
            case events.Sample():
                return event.seconds >= LONG_PASS and self.preset.telemetry
            case events.Telemetry():
                return self.preset.telemetry
            case events.Phases():
                return len(event.parts) > 1
            case events.RunStarted():
                asked = event.experiment
                self._n = asked.n
                self._form = (asked.kernel, asked.dtype, asked.tile, *sorted(asked.options.items()))
            case events.Graph():
                return self._new(("graph", event.name, event.edges))
            case events.Occupancy():
                return self.preset.occupancy and self._new((*self._form, event.op))
        return True

    def _first_reading(self, event: object) -> bool:
        """Whether it is the first reading entirely within the current run's clean passes."""
        if isinstance(event, events.Stage) and event.name == "clean":
            self._clean = event.t if event.seconds is None else None
        first = isinstance(event, events.Telemetry) and self._clean is not None and event.t - 2 * GPM_WINDOW >= self._clean
        if first:
            self._clean = None
        return first

    def _new(self, key: tuple[object, ...]) -> bool:
        fresh = key not in self._told
        self._told.add(key)
        return fresh


def rounded(event: events.Event) -> events.Event:
    """The event with non-integers rounded to DIGITS significant digits."""
    told = json.loads(msgspec.json.encode(event), parse_float=lambda text: float(f"{float(text):.{DIGITS}g}"))
    return msgspec.convert(told, type(event))


def record(live: RunSession, preset: Preset, folder: Path | None, path: Path | None, title: str) -> SlimRecorder:
    """Record the session from now on: to `path`, or to a new file of `folder`. Raises Refused."""
    header, preface, began = beginning(live, title)
    recorder = SlimRecorder.at(path, header, preface, TELEMETRY_HZ, folder, f"reproduce-{preset.name}", began)
    recorder.preset = preset
    live.recorder = recorder
    return recorder
