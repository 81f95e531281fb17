"""Processes of this checkout: `fwtui` and Python programs that run to their end, and the end of a process."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def environment(folder: Path) -> dict[str, str]:
    """Return variables for a process of this checkout that keeps its user's data in the folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "data")}


def fwtui(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the program in that folder to its end."""
    command = [sys.executable, "-P", "-m", "fwtui", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(folder), cwd=folder, **more)


def run_python(program: str, *words: str, cwd: Path | None = None, **variables: str) -> str:
    """Run a Python program of this checkout with further environment variables and return its standard output.

    Fails with its standard error if its exit code is not 0.
    """
    command = [sys.executable, "-P", "-c", program, *words]
    given = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=given, cwd=cwd)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def gone(pid: int) -> bool:
    """Return True for a dead process, even if whoever adopted it has not reaped it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
