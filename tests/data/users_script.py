"""A user's program: it must run, and type checkers must resolve each type in it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pyarrow  # type: ignore[import-untyped, import-not-found, unused-ignore]  # pyright: ignore[reportMissingImports]

import fwtui
from fwtui import Failed, Refused, Result, shortest_path, solve

inf = float("inf")
matrix = np.array([[0, 3, inf], [inf, 0, 4], [1, inf, 0]])
result = solve(matrix, dtype="int32", predecessors=True)
assert_type(result, Result)
assert_type(result.path(0, 2), list[int])
assert result.path(0, 2) == [0, 1, 2]
assert_type(result.stats.seconds["kernels"], float)
assert_type(result.stats.rate, float | None)
assert result == result and result != solve(matrix) and len({result, result}) == 1

roads: object = pyarrow.table({"source": ["a", "b", "c"], "target": ["b", "c", "a"], "weight": [3, 4, 1]})
named = solve(roads)
assert_type(named.path("a", "c"), list[Any])
assert named.path("a", "c") == ["a", "b", "c"] and named.path(0, 2) == [0, 1, 2]
assert repr(named.vertices) == "Vertices(['a', 'b', 'c'])"

assert_type(shortest_path(matrix), np.ndarray)
distances, predecessors = shortest_path(matrix, return_predecessors=True)
assert_type(predecessors, np.ndarray)

try:
    named.path("a", "nowhere")
except Refused as refusal:
    assert_type(str(refusal), str)
    assert "there is no vertex 'nowhere'" in str(refusal)
else:
    raise AssertionError("an unknown name is refused")
runs = fwtui.run(["serial"], n=[8, 9], repeats=2, verify="full")
assert_type(runs, fwtui.Session)
assert_type(runs[1].speedup, float | None)
assert_type(runs[1].phases, dict[str, float])
assert [run.state for run in runs] == ["done", "done"] and next(iter(fwtui.kernels())) in str(runs)
assert_type(fwtui.sessions(), dict[str, str])
assert len(fwtui.load("h200-ladder-n4096")) > 9 and len(fwtui.sessions()) > 9

assert issubclass(Failed, RuntimeError) and set(fwtui.__all__) <= set(dir(fwtui))
print(fwtui.__version__)
