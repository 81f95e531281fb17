"""Grading on a GPU: what is right is timed against a rung, what breaks the device is told, and the others go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from data.broken_kernels.edits import EDITS

import fwtui_kernels

pytestmark = pytest.mark.gpu
EXAMPLES = Path(fwtui_kernels.__file__).parent / "examples"
RUBRIC = """
limits = {seconds = 15}
[[graphs]]
name = "random"
points = 60
n = [33, 300]
seeds = [1]
[[graphs]]
name = "negative"
points = 20
n = [100]
negative = 0.3
dtype = "int32"
seeds = [2]
[time]
points = 20
n = 1024
against = "naive"
full = 2.0
zero = 100.0
"""
BROKEN = {
    "off by one": "right on ",
    "out of bounds": "the kernel reads or writes outside its memory (",
    "infinite loop": "no end within 15 s: a loop that never ends",
}


def test_right_submissions_are_timed_and_what_breaks_the_device_is_told(tmp_path: Path) -> None:
    for path in EXAMPLES.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "r.toml").write_text(RUBRIC)
    right = ["naive", "one_thread", "tile_32", "tile_64"]
    files = [str(tmp_path / f"{name}.py") for name in right]
    for name in BROKEN:
        (tmp_path / name).mkdir()
        files.append(str(EDITS[name].write(tmp_path / name)))
    (tmp_path / "forged").mkdir()
    forged = EDITS["off by one"].write(tmp_path / "forged")
    forged.write_text(f"{forged.read_text()}\nimport fwtui.engine.verify as verify\nverify._compared = lambda *_: None\n")
    files.append(str(forged))
    command = [sys.executable, "-P", "-m", "fwtui", "grade", *files, "--against", str(tmp_path / "r.toml")]
    (tmp_path / "settings.toml").write_text("")
    done = subprocess.run(
        [*command, "--trust", "--json", "--jobs", "3"],
        capture_output=True,
        text=True,
        timeout=400,
        env={**os.environ, "FWTUI_CONFIG": str(tmp_path / "settings.toml")},
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1 and len(rows) == len(files), done.stderr
    for row in rows[: len(right)]:
        assert row["verdict"].startswith("right on all 3 graphs; ") and row["share"] > 0 and row["time_points"] > 0, row
        assert row["passed"] and row["of"] == 100
    for row, told in zip(rows[len(right) :], [*BROKEN.values(), ": wrong at "], strict=True):
        assert told in row["verdict"] and row["time_points"] == 0 and row["seconds"] is None, row
