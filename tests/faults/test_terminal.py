"""Signals and lost terminals: every mode is restored, the exit code says why, no child stays behind, and no session is lost."""

import os
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import scenes
from builders import save_form, write_session
from ptyrun import RESTORED, PtyRun

from fwtui.experiment.experiment import Experiment
from fwtui.sessions.reader import load
from fwtui.stream import events
from fwtui.tui.app.terminal import running_clock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]


def but_later(quick: signal.Signals) -> list[Any]:
    """Return SIGNALS with all but one marked slow, as the same code handles all of them."""
    return [pytest.param(number, marks=() if number == quick else pytest.mark.slow) for number in SIGNALS]


@pytest.fixture
def environment(tmp_path: Path, own_cache: str) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": own_cache}


@pytest.mark.parametrize("what", ["replay", pytest.param("dashboard", marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", but_later(signal.SIGQUIT))
def test_a_signal_ends_it_cleanly(environment: dict[str, str], tmp_path: Path, what: str, number: signal.Signals) -> None:
    words = [str(write_session(tmp_path / "synthetic.fwt.jsonl", scenes.gpu_session()))] * (what == "replay")
    with PtyRun(what, *words, environment={**environment, "FWTUI_KEEP_SESSIONS": "no"}) as run:
        run.read_until(b"playing" if what == "replay" else b"run the experiment: ")
        if what == "dashboard":
            run.wait_for_child("fwtui.machine.telemetry.sampler")
        run.kill(number)
        run.assert_left_well(128 + number)
    assert not [*(tmp_path / "data").rglob("*.*")], "a setting says that no session is kept"


@pytest.mark.parametrize("controlling", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_terminal_that_vanishes_ends_the_program(environment: dict[str, str], controlling: bool) -> None:
    with PtyRun("dashboard", environment=environment, controlling=controlling) as run:
        run.read_until(b"run the experiment: ")
        run.wait_for_child("fwtui.machine.telemetry.sampler")
        run.vanish()
        run.wait()
        assert run.process.returncode == 128 + signal.SIGHUP
        assert run.orphans == []


def broken(folder: Path, code: str) -> dict[str, str]:
    """Return environment variables that make the program run this code first."""
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


BROKEN_INPUT = """
import fwtui.tui.app.terminal_input as d
def fail(self): raise RuntimeError('broken on purpose')
d.TerminalDriver._read = fail
"""
BROKEN_WIDGET = """
import fwtui.tui.frame.telemetry_strip as s
def fail(self, *told): raise RuntimeError('broken on purpose')
s.TelemetryStrip.show = fail
"""


@pytest.mark.parametrize("code", [BROKEN_WIDGET, pytest.param(BROKEN_INPUT, marks=pytest.mark.slow)], ids=["widget", "input"])
def test_an_error_in_the_dashboard_restores_the_terminal(environment: dict[str, str], tmp_path: Path, code: str) -> None:
    with PtyRun("dashboard", environment={**environment, **broken(tmp_path, code)}) as run:
        if code == BROKEN_INPUT:
            run.read_until(b"\x1b[?1049h")
            run.press(b"x")
        run.wait()
        run.assert_left_well(1)
        assert run.output.rindex(b"RuntimeError; details in ") > run.output.rindex(RESTORED[0])
        (details,) = re.findall(rb"details in (\S+\.txt)", run.output)
        assert "broken on purpose" in Path(details.decode()).read_text()


BUSY = """
import fwtui.live.session as l, fwtui.tui.run.live_screen as r, time
kill = l.Live.kill
def killed(self):
    kill(self)
    print(end="killed", file=__import__("sys").__stderr__, flush=True)
l.Live.kill = killed
def stuck(self):
    print(end="stuck", file=__import__("sys").__stderr__, flush=True)
    while True: time.sleep(1)
r.RunScreen.action_run = stuck
"""


@pytest.mark.parametrize("number", but_later(signal.SIGINT))
def test_a_signal_ends_a_dashboard_that_is_stuck(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    with PtyRun("dashboard", environment={**environment, **broken(tmp_path, BUSY)}) as run:
        run.read_until(b"run the experiment: ")
        run.wait_for_child("fwtui.machine.telemetry.sampler")
        run.press(b"r")
        run.read_until(b"stuck")
        run.kill(number)
        run.assert_left_well(128 + number)
        assert b"killed" in run.output


IN_THE_MAKING = """
import fwtui.tui.run.live_screen as r, os, signal, time
compose = r.RunScreen.compose
def told(self):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)
    return compose(self)
r.RunScreen.compose = told
"""


def test_a_signal_ends_a_dashboard_that_is_still_being_made(environment: dict[str, str], tmp_path: Path) -> None:
    with PtyRun("dashboard", environment={**environment, **broken(tmp_path, IN_THE_MAKING)}) as run:
        run.wait()
        run.assert_left_well(128 + signal.SIGTERM)
        assert b"Traceback" not in run.output


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count it")
def test_a_busy_machine_gives_a_signal_longer() -> None:
    """The time limit of the shutdown does not advance while another process has the only core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        began, ran, worked = time.monotonic(), running_clock(), time.process_time()
        while time.process_time() < worked + 0.1 or time.monotonic() < began + 0.3:
            pass
        assert running_clock() - ran < 0.8 * (time.monotonic() - began)
        ran = running_clock()
        time.sleep(0.05)
        assert running_clock() - ran > 0.04
    finally:
        os.sched_setaffinity(0, allowed)
        other.kill()
        other.wait()


SLOW_END = """
import fwtui.live.session as l, time
close = l.Live.close
def slow(self, reason="closed"):
    print(end="closing", file=__import__("sys").__stderr__, flush=True)
    time.sleep(0.5)
    close(self, reason)
l.Live.close = slow
"""


@pytest.mark.parametrize("number", but_later(signal.SIGTERM))
def test_signals_in_a_run_close_the_whole_recording(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "recorded.fwt.jsonl"
    everything = {**environment, **broken(tmp_path, SLOW_END)}
    with PtyRun("dashboard", "--record", str(path), environment=everything) as run:
        run.read_until(b"run the experiment: ")
        run.press(b"r")
        run.wait_for_child("fwtui.measure.worker")
        os.kill(run.process.pid, number)
        run.read_until(b"closing")
        os.kill(run.process.pid, number)
        run.wait()
        assert run.process.returncode == 128 + number
        assert run.orphans == []
    loaded = load(path)
    assert loaded.closed and loaded.end and loaded.end.reason == "signal"


def test_a_stopped_dashboard_continues(environment: dict[str, str]) -> None:
    """Neither does any input end it: invalid UTF-8, half a character, malformed escape sequences."""
    with PtyRun("dashboard", environment=environment) as run:
        run.read_until(b"run the experiment: ")
        program = psutil.Process(run.process.pid)
        for junk in (b"\xff\xc3", b"\x1b[99999999999999999999999u", b"\x1b[:2048u\x1b[1;99999999999999999999R"):
            run.output = b""
            os.kill(run.process.pid, signal.SIGTSTP)
            run.read_until(b"\x1b[?1049l")
            while program.status() != psutil.STATUS_STOPPED:
                run.read(0.02)
            assert termios.tcgetattr(run.terminal)[3] & termios.ICANON, "the shell gets its terminal back"
            os.kill(run.process.pid, signal.SIGCONT)
            run.read_until(b"\x1b[?1049h")
            run.press(junk)
            run.press(b"?")
            run.read_until(b"Keys and glossary")
            run.press(b"\x1b")
        run.kill(signal.SIGTERM)
        assert run.process.returncode == 128 + signal.SIGTERM


def test_a_screen_needs_a_terminal_to_read_and_to_draw(environment: dict[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "fwtui", "dashboard"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, **environment}, timeout=120)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"needs a terminal on standard input and standard error" in done.stderr


def finished(path: Path) -> list[int]:
    return [line.event.run for line in load(path).lines if isinstance(line.event, events.RunDone)]


def test_the_session_of_a_killed_dashboard_stays(tmp_path: Path, own_cache: str) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": own_cache}
    save_form(tmp_path / "data", Experiment(kernel="serial", n=30, repeats=2))
    folder = tmp_path / "data" / "fwtui" / "kept"
    with PtyRun("dashboard", environment=environment) as run:
        run.read_until(b"run the experiment: ")
        (path,) = folder.iterdir()
        run.press(b"r")
        run.read_until(b"run 1 finished")
        run.kill(signal.SIGKILL)
    assert finished(path) == [1] and not load(path).closed
    with PtyRun("dashboard", environment=environment) as run:
        run.read_until(b"run the experiment: ")
        run.press(b"q")
        run.wait()
    assert [*folder.iterdir()] == [path], "a session with a finished run stays, one without is deleted"
