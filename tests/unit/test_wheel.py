"""What an installation gets: the packages, and the sessions and texts that they read; nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = {".py", ".pyi", ".cu", ".css", ".html", ".js", ".toml", ".md"}
DATA = {".gz", ".json", ".toml", ".md"}
ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


@pytest.mark.slow
def test_the_wheel_holds_what_is_tracked_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {info.filename for info in archive.infolist()}
    listed = subprocess.run(["git", "ls-files", "fwtui", "kernels", "sessions"], cwd=ROOT, capture_output=True, text=True)
    if not listed.stdout:
        pytest.skip("this is no git checkout")
    tracked = {f"fwtui/_{name}" if name.startswith("sessions/") else name for name in listed.stdout.split()}
    tracked = {name.removeprefix("kernels/") for name in tracked - {"kernels/README.md"}}
    about = {name for name in held if ".dist-info/" in name}
    assert held - about == tracked
    assert {name.split(".dist-info/")[1] for name in about} == ABOUT
    for name in tracked:
        assert Path(name).suffix in (DATA if name.startswith("fwtui/_sessions/") else CODE), name
