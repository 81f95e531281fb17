"""Odd options of `solve`: each combination gives SciPy's distances or one sentence."""

from fractions import Fraction
from typing import Any

import numpy as np
from attacking import attack
from hypothesis import strategies as st
from scipy.sparse import csgraph, csr_array

from fwtui import Refused, solve

WEIGHTS = np.array([[0, 3, 8, 9], [2, 0, 2, 5], [7, 1, 0, 4], [6, 5, 3, 0]])
DISTANCES = csgraph.shortest_path(WEIGHTS)
ODD = (
    *(None, "", "auto", "cpu", "é", "\x1b[2J", "9" * 400, b"cpu", 0, -1, 2, 2.5, 10**30, True, [], [0], [[0]], [None], ["0"]),
    *([True, False], (1, 3), {2: 3}, {1}, range(2), slice(2), float("nan"), float("inf"), np.array(1), np.array([[1]])),
    *(np.array([2, 0]), np.array(["a"]), np.array([0.5]), np.float64(1), np.uint64(2**63), Fraction(1), object(), int, "int32"),
    *(np.dtype("int16"), np.dtype("V8"), "float32", "float64", "serial", "scipy", "tiled-cpu", "naive", ["serial"], "device"),
)
NAMES = ("dtype", "kernel", "device", "comm", "sources", "targets", "keep", "weight")
GIVEN = (WEIGHTS, WEIGHTS.astype(np.float32), csr_array(WEIGHTS), WEIGHTS.tolist(), WEIGHTS.astype(">i8"))
CASES = {"options": st.dictionaries(st.sampled_from(NAMES), st.sampled_from(ODD), max_size=3), "graph": st.sampled_from(GIVEN)}


def right_or_refused(options: dict[str, Any], graph: Any) -> None:
    try:
        result = solve(graph, **options)
    except Refused as refusal:
        assert str(refusal) and "\n" not in str(refusal) and "\x1b" not in str(refusal), options
        return
    sources, targets = (_vertices(options.get(ends)) for ends in ("sources", "targets"))
    assert (np.asarray(result.distances) == DISTANCES[sources][:, targets]).all(), options


def _vertices(ends: Any) -> np.ndarray:
    return np.arange(4) if ends is None else np.array([*ends], int)


test_odd_options = attack(150, **CASES)(right_or_refused)
