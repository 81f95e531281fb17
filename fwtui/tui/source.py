"""What the dashboard drives: a live session, and what it is told about the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from textual.message import Message

from fwtui.experiment import Experiment
from fwtui.reproduce.execute import Session
from fwtui.sessions.recorder import Recorder
from fwtui.telemetry.facts import Hardware


class Source(Session, Protocol):
    """What the dashboard needs of fwtui.live.Live."""

    asked: dict[int, Experiment]

    def settled(self, experiment: Experiment) -> tuple[Experiment, bool]: ...
    def cancel(self) -> None: ...
    def count(self, run: int) -> None: ...
    def measure_limits(self, backend: str, index: int = 0) -> None: ...
    def record(
        self, folder: Path | None = None, path: Path | None = None, title: str = "", hz: float | None = None
    ) -> Recorder: ...
    def close(self, reason: str = "closed") -> None: ...


class Looked(Message):
    """What GPUs are here is known now."""

    def __init__(self, found: Hardware):
        super().__init__()
        self.found = found
