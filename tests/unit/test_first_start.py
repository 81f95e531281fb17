"""What `make` says where it cannot begin."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["PYTHON=no-such-python"], "there is no no-such-python here; name a Python: make PYTHON=python3.12 run"),
        (["PYTHON=false"], "fwtui needs Python 3.11 or newer; name one: make PYTHON=python3.12 run"),
        (
            ["PYTHON=true", "VENV=/dev/null/venv"],
            "this folder cannot be written to; name another for the environment: make VENV=",
        ),
        (["PYTHON=true"], "true has no working venv; on Debian and Ubuntu run: sudo apt install python3-venv"),
    ],
)
def test_what_is_missing_is_one_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").touch()
    command = ["make", "--no-print-directory", "run", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # make may run this test
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    lines = [line for line in done.stdout.splitlines() if not line.startswith("making ")]
    assert done.returncode == 2 and len(lines) == 1 and lines[0].startswith(said), done
