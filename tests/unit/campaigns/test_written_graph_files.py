"""Graphs that a child writes for an experiment, while nobody waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_sessions import Made, int32

from fwtui.campaigns.reproduce.campaign import Performer
from fwtui.campaigns.reproduce.documents import cs542200 as module
from fwtui.campaigns.reproduce.documents.cs542200 import written
from fwtui.campaigns.reproduce.preset import LeftOut, Preset, RunScale
from fwtui.campaigns.reproduce.results import Results, ask
from fwtui.common import child_process
from fwtui.experiment.experiment import Experiment, Settled, settle
from fwtui.graphs.loading import read
from fwtui.stream import events


def drained(steps: Iterator[str | None]) -> list[str | None]:
    told = []
    for step in steps:
        told.append(step)
        time.sleep(0.02)
    return told


def child(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    real = child_process.subprocess.Popen

    def instead(command: list[str], **more: Any) -> Any:
        return real([sys.executable, "-c", program], **more)

    monkeypatch.setattr(child_process.subprocess, "Popen", instead)


def test_the_file_is_there_when_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "g.gr"
    told = drained(written(int32("serial", 9), path))
    assert told[0] is None and set(told[:-1]) == {None} and told[-1] == ""
    assert read(str(path), "int32").n == 9


def test_a_failure_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = drained(written(int32("serial", 9), tmp_path / "no such folder" / "g.gr"))
    assert told[-1] is not None and told[-1].startswith("its graph was not written: g.gr cannot be written")
    child(monkeypatch, "import sys; sys.exit(3)")
    assert drained(written(int32("serial", 9), tmp_path / "g.gr"))[-1] == "its graph was not written: exit code 3"


def test_a_child_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WRITING_SECONDS", 0.05)
    child(monkeypatch, "import time; time.sleep(60)")
    begin = time.monotonic()
    told = drained(written(int32("serial", 9), tmp_path / "g.gr"))
    assert told[-1] == "its graph was not written within 0 s" and time.monotonic() - begin < 30


class Live:
    """What Performer needs of a session; nothing runs."""

    def __init__(self) -> None:
        self.model, self.busy, self.now, self.started = Made().model, False, 0.0, []

    def mark(self, text: str) -> None:
        self.model.apply(events.Marker(t=0.0, text=text))

    def settled(self, wanted: Experiment) -> Settled:
        return settle(wanted, wanted.device_id.simulated)

    def start(self, wanted: Settled, brief: bool = False) -> int:
        self.started.append(wanted.kernel)
        return 1

    def drain(self) -> int:
        return 0


def test_a_preset_that_waits_blocks_nobody_and_names_what_it_left_out() -> None:
    def runs(results: Results, scale: RunScale) -> Iterator[Experiment | LeftOut | None]:
        yield None
        yield LeftOut("serial n 9", "its graph was not written: no")
        yield ask("serial", 9)

    live: Any = Live()
    preset = Preset("test", "Test", (), runs, seconds=9.0)
    performer = Performer(live, preset, RunScale(False), 9.0, lambda text: None)
    assert performer.advance() and live.started == []
    assert performer.advance() and live.started == ["serial"]
    assert not performer.advance()
    assert performer.results.left_out == ["serial n 9: its graph was not written: no"]
    live = Live()
    Performer(live, preset, RunScale(False), 9.0, lambda text: None).perform()
    assert live.started == ["serial"]
