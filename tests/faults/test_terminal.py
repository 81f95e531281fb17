"""Signals and lost terminals: every mode is restored, the exit code says why, and no child stays behind."""

from __future__ import annotations

import signal
import sys
import termios
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

import scenes  # pyright: ignore[reportMissingImports]
from ptyrun import RESTORED, PtyRun

from fwtui.sessions import reader

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_dashboard_well(environment: dict[str, str], number: signal.Signals) -> None:
    with PtyRun("dashboard", environment=environment) as run:
        run.read_until(b"Press r to run")
        run.wait_for_child("fwtui.sampler")
        assert run.kill(number) < 3.0
        assert run.process.returncode == 128 + number
        assert [mode for mode in RESTORED if mode not in run.output] == []
        assert termios.tcgetattr(run._slave) == run.attributes
        assert run.orphans == []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_replay_well(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    path = scenes.write(tmp_path / "synthetic.fwt.jsonl", scenes.gpu_session())
    with PtyRun("replay", str(path), environment=environment) as run:
        run.read_until(b"playing")
        assert run.kill(number) < 3.0
        assert run.process.returncode == 128 + number
        assert [mode for mode in RESTORED if mode not in run.output] == []


def test_a_signal_in_a_run_closes_the_recording(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "recorded.fwt.jsonl"
    with PtyRun("dashboard", "--record", str(path), environment=environment) as run:
        run.read_until(b"Press r to run")
        run.press(b"r")
        run.wait_for_child("fwtui.worker")
        run.kill(signal.SIGTERM)
        assert run.process.returncode == 128 + signal.SIGTERM
        assert run.orphans == []
    loaded = reader.load(path)
    assert loaded.closed and loaded.reason == "signal"


@pytest.mark.parametrize("controlling", [True, False], ids=["with-sighup", "without-sighup"])
def test_a_terminal_that_vanishes_ends_the_program(environment: dict[str, str], controlling: bool) -> None:
    with PtyRun("dashboard", environment=environment, controlling=controlling) as run:
        run.read_until(b"Press r to run")
        run.wait_for_child("fwtui.sampler")
        run.vanish()
        assert run.wait() < 3.0
        assert run.process.returncode == 128 + signal.SIGHUP
        assert run.orphans == []


def test_an_error_in_the_dashboard_restores_the_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "import fwtui.tui.strip as s\n"
        "def fail(self, model): raise RuntimeError('a broken widget')\n"
        "s.TelemetryStrip.show = fail\n"
    )
    with PtyRun("dashboard", environment={**environment, "PYTHONPATH": str(tmp_path)}) as run:
        run.wait(15.0)
        assert run.process.returncode == 1
        assert [mode for mode in RESTORED if mode not in run.output] == []
        assert run.output.count(b"a broken widget") >= 1
        assert run.output.rindex(b"a broken widget") > run.output.rindex(RESTORED[0])


def test_the_dashboard_is_not_served_to_web_pages(environment: dict[str, str]) -> None:
    with PtyRun("dashboard", environment={**environment, "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}) as run:
        run.wait(15.0)
        assert run.process.returncode == 2
        assert b"not served to web pages" in run.output
