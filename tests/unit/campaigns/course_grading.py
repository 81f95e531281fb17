"""A course for tests of grading: a rubric, a folder for it, and what comes of submissions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fwtui.__main__ import main
from fwtui.campaigns.grading.rubric import Rubric, rubric

SMALL = """
limits = {seconds = 4, memory = 1}
[[graphs]]
name = "random"
points = 8
n = [2, 7]
seeds = [1, 2]
[[graphs]]
name = "unreachable"
points = 2
n = [9]
density = 0.1
unreachable = true
seeds = [3]
[time]
points = 5
n = 64
against = "naive"
full = 1.0
zero = 3.0
"""


def small() -> Rubric:
    return rubric(SMALL, "r.toml")


def graded(
    course: Path, capsys: pytest.CaptureFixture[str], *files: Path, jobs: int = 1, more: Sequence[str] = ()
) -> tuple[int, list[dict], str]:
    words = ["grade", *map(str, files), "--against", str(course / "r.toml"), "--trust", "--json"]
    words += ["--jobs", str(jobs), "--device", "simulator", *more]
    code = main(words)
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err
