"""A dashboard that is killed in the middle: the next one offers its session, whole."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from ptyrun import PtyRun

from fwtui.sessions.reader import load
from fwtui.stream import events

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def finished(path: Path) -> list[int]:
    return [line.event.run for line in load(path).lines if isinstance(line.event, events.RunDone)]


def test_a_killed_dashboards_session_is_offered_and_goes_on(tmp_path: Path, own_cache: str) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": own_cache}
    environment |= {"FWTUI_KERNEL": "serial", "FWTUI_N": "30", "FWTUI_REPEATS": "2"}
    folder = tmp_path / "data" / "fwtui" / "kept"
    with PtyRun("dashboard", environment=environment) as run:
        run.read_until(b"run the experiment: ")
        (path,) = folder.iterdir()
        run.press(b"r")
        run.read_until(b"run 1 finished")
        run.press(b"b")
        run.read_until(b"run 1 is the baseline")
        run.kill(signal.SIGKILL)
    assert finished(path) == [1] and not load(path).closed
    with PtyRun("dashboard", environment=environment) as run:
        run.read_until(b"has 1 run; X goes on with it")
        run.press(b"X")
        run.read_until(b"RUN 1")
        run.press(b"r")
        run.read_until(b"run 2 finished")
        run.press(b"q")
        run.wait()
        assert run.process.returncode == 0
    (whole,) = folder.iterdir()
    assert load(whole).complete and finished(whole) == [1, 2]
    readings = [line.event.t for line in load(whole).lines if isinstance(line.event, events.Telemetry)]
    assert len(readings) > 3 and readings == sorted(readings), "one clock"
