"""How `fwtui solve` and `fwtui graph` end: signals at any moment, streams that are closed or full, disks that take no more."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fwtui
from fwtui.__main__ import main


@pytest.mark.parametrize("out", [pytest.param("o.npy", marks=pytest.mark.slow), "o.npz", "o.csv"])
def test_a_full_disk_is_said_and_leaves_nothing(towns: str, tmp_path: Path, out: str) -> None:
    lines = [f"{v},{v + 1},1" for v in range(300)]
    Path(towns).write_text("\n".join(lines))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 8; exec '{sys.executable}' -P -m fwtui solve {towns} -o {out}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and sorted(os.listdir(tmp_path)) == ["towns.csv"]
    said = r"fwtui: o\.(npy|npz|csv) cannot be written: (file too large|no space left.*); choose another place\n"
    assert re.fullmatch(said, done.stderr)


CLOSED, FULL = (f"fwtui: writing the output failed: {why}\n" for why in ("Bad file descriptor", "No space left on device"))


class TestStopping:
    @pytest.mark.parametrize("name", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
    def test_no_half_file_is_left(self, tmp_path: Path, name: signal.Signals) -> None:
        np.savez(tmp_path / "g.npz", weights=np.ones((144, 144)), no_edge=np.array(-1))
        before = tmp_path / "out.csv"
        before.write_text("as it was")
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SLOW_WRITER, "solve", str(tmp_path / "g.npz"), "-o", str(before)],
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(list(tmp_path.iterdir())) == 3, "it is writing"
        process.send_signal(name)
        process.send_signal(name)  # a second one does not disturb
        assert process.wait(60) == 128 + name
        assert before.read_text() == "as it was" and len(list(tmp_path.iterdir())) == 2
        assert b"Traceback" not in process.stderr.read()  # type: ignore[union-attr]

    def test_a_kill_leaves_nobody_computing(self, tmp_path: Path) -> None:
        np.save(tmp_path / "g.npy", np.ones((1500, 1500)) - np.eye(1500))
        command = [sys.executable, "-P", "-c", COMPUTING, "solve", str(tmp_path / "g.npy"), "-o", str(tmp_path / "out.npy")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None and process.stdout.readline() == b"computing\n"
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)

    @pytest.mark.parametrize("where", [pytest.param("cached", marks=pytest.mark.slow), "collected", "compiled"])
    def test_wherever_it_is_told(self, towns: str, where: str) -> None:
        """Exceptions are lost where no caller hears them, and become others where a class is made or code is compiled."""
        process = subprocess.run(
            [sys.executable, "-P", "-c", INTERRUPTED, "solve", towns, "--kernel", where], capture_output=True, text=True
        )
        assert (process.returncode, process.stdout, process.stderr) == (128 + signal.SIGTERM, "", "")

    @pytest.mark.parametrize(
        ("command", "how", "code", "said"),
        [
            ("solve towns.csv", ">&-", 1, CLOSED),
            pytest.param("list", ">&-", 1, CLOSED, marks=pytest.mark.slow),
            ("list", "<&- >&- 2>&-", 1, ""),
            ("solve towns.csv", ">/dev/full", 1, FULL),
            pytest.param("graph -n 5", ">/dev/full", 1, FULL, marks=pytest.mark.slow),
            ("--help", ">/dev/full", 1, FULL),
            pytest.param("list --help", ">/dev/full", 1, FULL, marks=pytest.mark.slow),
            ("nonsense", "2>/dev/full", 2, ""),
            ("solve towns.csv", "2>/dev/full", 0, ""),
            ("replay -", "<&-", 2, "its first line is not a whole header; `fwtui list` shows the sessions here\n"),
            pytest.param("graph -n 5", "| true", 0, "", marks=pytest.mark.slow),
            ("solve towns.csv", "| true", 0, ""),
            ("solve towns.csv", "2>&- | cat", 0, ""),
        ],
    )
    def test_streams_that_are_closed_full_or_left(self, towns: str, command: str, how: str, code: int, said: str) -> None:
        """Also where the terminal's encoding has no sign for what is said."""
        done = subprocess.run(
            ["sh", "-c", f"'{sys.executable}' -P -m fwtui {command} {how}"],
            cwd=Path(towns).parent,
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(fwtui.__file__).parents[1])},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code and "Traceback" not in done.stderr and done.stderr.endswith(said)

    def test_a_name_that_is_no_utf_8(self, towns: str, capfd: pytest.CaptureFixture[str]) -> None:
        strange = os.path.join(os.path.dirname(towns), os.fsdecode(b"caf\xe9.csv"))
        os.rename(towns, strange)
        assert main(["solve", strange, "-o", strange.replace("caf", "out")]) == 0
        assert os.path.exists(strange.replace("caf", "out"))
        assert main(["solve", strange, "--from", os.fsdecode(b"caf\xe9"), "--to", "Berlin"]) == 2
        assert "there is no vertex 'caf'" in capfd.readouterr().err


INTERRUPTED = """
import os, signal, sys
from fwtui import __main__
from fwtui.solver import command

def told():
    os.kill(os.getpid(), signal.SIGTERM)
    return 1

class Collected:
    def __del__(self):
        told()

class Cached:
    def __set_name__(self, owner, name):
        told()

def carry_out(given, start, begun):
    match given.kernel:
        case "collected":
            Collected()
        case "cached":
            type("Owner", (), {"it": Cached()})
        case "compiled":
            try:
                told()
            except BaseException:
                raise RuntimeError("no compiled object yet") from None

command.carry_out = carry_out
sys.exit(__main__.main())
"""
SLOW_WRITER = """
import sys, time
from fwtui import __main__
from fwtui.solver import output
plain = output.plain
output.plain = lambda distance: time.sleep(0.001) or plain(distance)
sys.exit(__main__.main())
"""
COMPUTING = """
import sys, time
from fwtui import __main__
from fwtui.solver import rows
rows.answer = lambda *given, **named: print("computing", flush=True) or time.sleep(60)
sys.exit(__main__.main())
"""
