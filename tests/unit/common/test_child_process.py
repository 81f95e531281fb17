"""A child: what it says, how it ends, and that it ends when its time is over or somebody wants it to."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer

import psutil
import pytest

from fwtui.common.child_process import ChildProcess, Ended, Standby, python


def child(program: str, stdin: int = subprocess.DEVNULL) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", program], {"TOLD": "so"}, stdin)


def test_it_hears_what_it_is_told_and_modules_are_ours() -> None:
    program = "import os, sys; print(os.environ['TOLD'], sys.stdin.read()); sys.exit(3)"
    assert child(program).finish(60) == Ended(3, b"so \n", b"")
    assert child(program, stdin=subprocess.PIPE).finish(60, b"hello").stdout == b"so hello\n"
    assert python("fwtui.measure.worker", "0.5") == [sys.executable, "-P", "-m", "fwtui.measure.worker", "0.5"]


@pytest.mark.parametrize("stops", [True, False])
def test_it_ends_with_what_it_started(stops: bool, tmp_path: Path) -> None:
    mine = tmp_path / "pid"
    program = (
        "import pathlib, subprocess, sys, time\n"
        "started = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"print('begun', flush=True); pathlib.Path({str(mine)!r}).write_text(str(started.pid)); time.sleep(600)"
    )
    begun, stop = child(program), Event()
    while not mine.exists() or not mine.read_text():
        time.sleep(0.01)
    Timer(0.05, stop.set).start()
    begin = time.monotonic()
    ended = begun.finish(600, stop=stop) if stops else begun.finish(0.05)
    assert time.monotonic() - begin < 60 and ended == Ended(None, b"begun\n", b"") and begun.exit_code == -9
    grandchild = int(mine.read_text())
    with suppress(psutil.NoSuchProcess):  # a killed process may take a moment to be gone
        gone = psutil.Process(grandchild)
        while gone.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() - begin < 60
            time.sleep(0.01)


def test_an_exception_while_it_is_waited_for_kills_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*words: object) -> None:
        raise KeyboardInterrupt

    begun = child("import time; time.sleep(600)")
    monkeypatch.setattr(begun._process, "communicate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        begun.finish(60)
    assert begun.exit_code == -9


@pytest.mark.parametrize(
    ("stderr", "words"), [(b"", "exit code 1"), (b"a\nfwtui: the \x1b[31mreason\n\n", "the [31mreason"), (b"\xff", "\ufffd")]
)
def test_last_words(stderr: bytes, words: str) -> None:
    assert Ended(1, b"", stderr).last_words == words


def test_one_waits_for_its_work_and_ends_unasked() -> None:
    started: list[ChildProcess] = []

    def start() -> ChildProcess:
        started.append(child("import sys; print(sys.stdin.read())", subprocess.PIPE))
        return started[-1]

    standby = Standby(start)
    standby.prepare()
    standby.prepare()
    assert len(started) == 1 and standby.take() is started[0]
    assert started[0].finish(60, b"work").stdout == b"work\n"
    standby.prepare()
    started[1].reap()
    assert standby.take() is started[2], "the one that waited is dead"
    started[2].reap()
    standby.prepare()
    started[3].reap()
    standby.prepare()
    assert len(started) == 5
    standby.close()
    assert started[4].exit_code == -9
