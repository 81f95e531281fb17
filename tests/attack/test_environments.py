"""Environments in which variables have odd values: every command ends with its exit code and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attacking import attack
from hypothesis import strategies as st
from processes import ROOT

FOLDERS = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "NUMBA_CACHE_DIR")
NAMES = (
    *("TERM", "COLUMNS", "LINES", "LANG", "LC_ALL", "TZ", "NO_COLOR", "PATH", "CUDA_VISIBLE_DEVICES", "TEXTUAL_DRIVER"),
    *("NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT", "NUMBA_THREADING_LAYER", "OMP_NUM_THREADS", "MPI4PY_RC_THREADS"),
    *("FWTUI_KERNEL", "FWTUI_N", "FWTUI_THEME", "FWTUI_REPEATS", "FWTUI_DEVICE", "FWTUI_NONSENSE"),
)
VALUES = (
    "",
    "0",
    "-1",
    "1",
    "4096",
    "no",
    "é",
    "9" * 400,
    "\x1b[2J",
    "a b",
    "1e999",
    "/dev/null",
    "C",
    "xterm",
    "UTC+26",
    os.fsdecode(b"\xff"),
)
PLACES = ("", "/dev/null", "/proc", "/proc/nowhere/at/all", "relative", os.fsdecode(b"/tmp/\xff"), "/" + "x" * 300)
COMMANDS = (
    *(("list",), ("kernels",), ("--help",), ("--version",), ("config",), ("check", "lecture-tiles"), ("solve", "g.csv")),
    *(("replay", "lecture-tiles", "--json"), ("render", "lecture-tiles", "-o", "out.txt"), ("new", "mine.py")),
    ("run", "-k", "serial", "-n", "8", "--repeats", "1", "--telemetry-hz", "0"),
)
CASES = {
    "changes": st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=3),
    "folders": st.dictionaries(st.sampled_from(FOLDERS), st.sampled_from(PLACES), max_size=2),
    "command": st.sampled_from(COMMANDS),
}


def in_an_environment(tmp_path: Path, changes: dict[str, str], folders: dict[str, str], command: tuple[str, ...]) -> None:
    for old in tmp_path.glob("[!x]*.*"):
        old.unlink()
    (tmp_path / "g.csv").write_text("a,b,1\nb,c,2\n")
    own = {name: str(tmp_path / "x") for name in FOLDERS if name.startswith("XDG")}
    environment = {**os.environ, **own, "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)), **changes, **folders}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fwtui", *command],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode in range(6), done
    assert b"Traceback" not in done.stderr and b"\x1b[2J" not in done.stdout + done.stderr, done
    assert done.returncode == 0 or done.stderr, done


test_odd_variables = attack(3, **CASES)(in_an_environment)
test_odd_variables_in_many_cases = pytest.mark.slow(attack(1000, **CASES)(in_an_environment))
