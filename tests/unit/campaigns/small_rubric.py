"""A rubric of a few small graphs."""

from __future__ import annotations

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
