"""How `fwtui solve` and `fwtui graph` end: signals at any moment, streams that are closed or full, disks that take no more."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import fwtui
from fwtui.__main__ import main


@pytest.mark.parametrize("out", ["o.csv", *(pytest.param(out, marks=pytest.mark.slow) for out in ("o.npy", "o.npz"))])
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


INTERRUPTED = """
import os, signal, sys
from fwtui import __main__
from fwtui.solver import command

def told(*given):
    os.kill(os.getpid(), signal.SIGTERM)
    return 1
"""
COLLECTED = """
command.carry_out = lambda *given: type("Collected", (), {"__del__": told})()
"""
COMPILED = """
def compiling(*given):
    try:
        told()
    except BaseException:
        raise RuntimeError("no compiled object yet") from None

command.carry_out = compiling
"""


class TestStopping:
    @pytest.mark.parametrize("where", [COLLECTED, pytest.param(COMPILED, marks=pytest.mark.slow)], ids=["lost", "another"])
    def test_wherever_it_is_told(self, towns: str, where: str) -> None:
        """Exceptions are lost where no caller hears them, and become others where code is compiled."""
        code = INTERRUPTED + where + "sys.exit(__main__.main())\n"
        process = subprocess.run([sys.executable, "-P", "-c", code, "solve", towns], capture_output=True, text=True)
        assert (process.returncode, process.stdout, process.stderr) == (128 + signal.SIGTERM, "", "")

    @pytest.mark.parametrize(
        ("command", "how", "code", "said"),
        [
            ("solve towns.csv", ">&-", 1, CLOSED),
            ("list", "<&- >&- 2>&-", 1, ""),
            ("--help", ">/dev/full", 1, FULL),
            ("nonsense", "2>/dev/full", 2, ""),
            ("solve towns.csv", "2>/dev/full", 0, ""),
            ("replay -", "<&-", 2, "its first line is not a whole header; `fwtui list` shows the sessions here\n"),
            ("solve towns.csv", "| true", 0, ""),
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
