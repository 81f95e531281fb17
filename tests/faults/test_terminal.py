"""Signals and lost terminals: every mode is restored, the exit code says why, and no child stays behind."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

import scenes  # pyright: ignore[reportMissingImports]
from ptyrun import RESTORED, PtyRun

from fwtui.sessions import reader
from fwtui.tui.app.terminal import running_clock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]


def but_later(quick: signal.Signals) -> list[Any]:
    """One of SIGNALS, and the others with -m slow: the same code takes them all."""
    return [pytest.param(number, marks=() if number == quick else pytest.mark.slow) for number in SIGNALS]


@pytest.fixture
def environment(tmp_path: Path, own_cache: str) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": own_cache}


@pytest.mark.parametrize("what", ["replay", pytest.param("dashboard", marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", but_later(signal.SIGQUIT))
def test_a_signal_ends_it_well(environment: dict[str, str], tmp_path: Path, what: str, number: signal.Signals) -> None:
    words = [str(scenes.write(tmp_path / "synthetic.fwt.jsonl", scenes.gpu_session()))] * (what == "replay")
    with PtyRun(what, *words, environment={**environment, "FWTUI_KEEP_SESSIONS": "no"}) as run:
        run.read_until(b"playing" if what == "replay" else b"run the experiment: ")
        if what == "dashboard":
            run.wait_for_child("fwtui.machine.telemetry.sampler")
        run.kill(number)
        assert run.process.returncode == 128 + number
        assert [mode for mode in RESTORED if mode not in run.output] == []
        assert termios.tcgetattr(run.terminal) == run.attributes
        assert run.orphans == []
    assert not [*(tmp_path / "data").rglob("*.*")], "a setting says that no session is kept"


def test_a_signal_in_a_run_closes_the_recording(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "recorded.fwt.jsonl"
    with PtyRun("dashboard", "--record", str(path), environment=environment) as run:
        run.read_until(b"run the experiment: ")
        run.press(b"r")
        run.wait_for_child("fwtui.measure.worker")
        run.kill(signal.SIGTERM)
        assert run.process.returncode == 128 + signal.SIGTERM
        assert run.orphans == []
    loaded = reader.load(path)
    assert loaded.closed and loaded.end and loaded.end.reason == "signal"


@pytest.mark.parametrize(
    "controlling", [pytest.param(True, marks=pytest.mark.slow), False], ids=["with-sighup", "without-sighup"]
)
def test_a_terminal_that_vanishes_ends_the_program(environment: dict[str, str], controlling: bool) -> None:
    with PtyRun("dashboard", environment=environment, controlling=controlling) as run:
        run.read_until(b"run the experiment: ")
        run.wait_for_child("fwtui.machine.telemetry.sampler")
        run.vanish()
        run.wait()
        assert run.process.returncode == 128 + signal.SIGHUP
        assert run.orphans == []


def broken(folder: Path, code: str) -> dict[str, str]:
    """Variables with which the program runs that code before its own."""
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
        assert run.process.returncode == 1
        assert [mode for mode in RESTORED if mode not in run.output] == []
        assert run.output.rindex(b"RuntimeError; details in ") > run.output.rindex(RESTORED[0])
        (details,) = re.findall(rb"details in (\S+\.txt)", run.output)
        assert "broken on purpose" in Path(details.decode()).read_text()


BUSY = """
import fwtui.live.session as l, fwtui.tui.run.live_screen as r
kill = l.Live.kill
def killed(self):
    kill(self)
    print(end="killed", file=__import__("sys").__stderr__, flush=True)
l.Live.kill = killed
def stuck(self):
    print(end="stuck", file=__import__("sys").__stderr__, flush=True)
    while True: pass
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
        assert run.process.returncode == 128 + number
        assert [mode for mode in RESTORED if mode not in run.output] == []
        assert termios.tcgetattr(run.terminal) == run.attributes
        assert b"killed" in run.output and run.orphans == []


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
        assert run.process.returncode == 128 + signal.SIGTERM and b"Traceback" not in run.output
        assert [mode for mode in RESTORED if mode not in run.output] == []
        assert termios.tcgetattr(run.terminal) == run.attributes


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count it")
def test_a_busy_machine_gives_a_signal_longer() -> None:
    """What limits the end does not run on while another process has the only processor."""
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
def test_more_signals_do_not_cut_the_recording_off(environment: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "recorded.fwt.jsonl"
    everything = {**environment, **broken(tmp_path, SLOW_END)}
    with PtyRun("dashboard", "--record", str(path), environment=everything) as run:
        run.read_until(b"run the experiment: ")
        run.wait_for_child("fwtui.machine.telemetry.sampler")
        os.kill(run.process.pid, number)
        run.read_until(b"closing")
        os.kill(run.process.pid, number)
        run.wait()
        assert run.process.returncode == 128 + number
        assert run.orphans == []
    assert reader.load(path).closed


def test_a_dashboard_that_is_stopped_goes_on_where_it_was(environment: dict[str, str]) -> None:
    """And no byte on its standard input ends it: no UTF-8, half a character, sequences with numbers that are none."""
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
            run.read_until(b"Keys and words")
            run.press(b"\x1b")
        run.kill(signal.SIGTERM)
        assert run.process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("lost", ["stdin", pytest.param("stderr", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", ["dashboard", pytest.param("replay", marks=pytest.mark.slow)])
def test_a_screen_needs_a_terminal_to_read_and_to_draw(
    environment: dict[str, str], tmp_path: Path, command: str, lost: str
) -> None:
    path = scenes.write(tmp_path / "synthetic.fwt.jsonl", scenes.gpu_session())
    master, slave = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "fwtui", command, *([str(path)] if command == "replay" else [])],
            stdin=subprocess.DEVNULL if lost == "stdin" else slave,
            stdout=slave,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            timeout=20,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 2
    assert b"needs a terminal on standard input and standard error" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_picture_on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    path = scenes.write(tmp_path / "synthetic.fwt.jsonl", scenes.gpu_session())
    out = tmp_path / "pictures" / "x.svg"
    out.parent.mkdir()
    out.write_text("the one before")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fwtui", "render", str(path), "-o", str(out)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # it would be cut off too
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        timeout=20,
    )
    assert done.returncode == 2, done.stderr
    assert b"x.svg cannot be written: file too large" in done.stderr and done.stderr.count(b"\n") == 1
    assert out.read_text() == "the one before"
    assert [found.name for found in out.parent.iterdir()] == ["x.svg"]
