"""The data type that holds every distance, and its proof."""

import re
from typing import Any

import numpy as np
import pytest
from test_graphs import graph_from

from fwtui.common.errors import Refused
from fwtui.engine.reference_distances import distances_from
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs import bounds
from fwtui.graphs.graph import GraphInput
from fwtui_kernels.plan import DTYPES, FLOATS, NO_EDGE

INT16, INT32, MAX = NO_EDGE["int16"], NO_EDGE["int32"], float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
EDGES, SEARCHED, AFTER = bounds.BY_EDGES, bounds.BY_SEARCHES, bounds.AFTERWARDS
WIDE = ("float64", EDGES)
WIDER = "choose float64, or smaller weights"
ROOM = "leave no room in int32; choose weights nearer to 0, or a smaller graph"


def check_range(graph: GraphInput, dtype: str) -> str:
    return bounds.check_range(graph, dtype, distances_from)


@pytest.mark.parametrize(
    ("n", "low", "high", "what", "asked", "reach", "expected"),
    [
        (3, 1, 8191, "whole", None, None, [("int16", EDGES), ("int32", EDGES), WIDE]),
        (3, 1, 8192, "whole", None, (16382, True), [("int16", SEARCHED), ("int32", EDGES), WIDE]),
        (3, 1, 8192, "whole", None, (16382, False), [("int16", AFTER), ("int32", EDGES), WIDE]),
        (3, 1, 8192, "whole", None, (16383, True), [("int32", EDGES), WIDE]),
        (3, 1, 8192, "whole", "int16", (16383, False), [("int16", AFTER)]),
        (3, 1, INT16, "whole", None, None, [("int32", EDGES), WIDE]),
        (3, -1, INT16, "whole", None, None, [("int32", EDGES), WIDE]),
        (3, 0, 2**23, "whole", None, None, [("int32", EDGES), WIDE]),
        (3, 0, 2**23, "whole", "float32", None, [("float32", AFTER)]),
        (3, -1, 2**29, "whole", None, (2**30 - 6, True), [("int32", SEARCHED), WIDE]),
        (3, -1, 2**29, "whole", None, (2**30 - 6, False), [WIDE]),
        (3, 1, 2**29, "rounded", None, (9, True), [("int32", SEARCHED), ("float64", bounds.rounded("float64"))]),
        (3, 0.25, 2**15 - 0.25, "real", None, None, [("float32", EDGES), WIDE]),
        (3, 0.25, 2**15, "real", None, None, [("float32", AFTER), WIDE]),
        (3, 1, 2**52, "whole", None, None, [("float64", AFTER)]),
        (3, 0.25, 2**44, "real", None, None, [("float32", AFTER), ("float64", AFTER)]),
        (1, None, None, "whole", None, None, [("int16", EDGES), ("int32", EDGES), WIDE]),
        (4, -INT32 // 6, 1, "whole", None, None, [WIDE]),
        (3, 1, MAX / 4, "rounded", "float32", None, [("float32", bounds.rounded("float32"))]),
        (2, -(2**29) + 1, 1, "whole", "int32", (0, True), [("int32", SEARCHED)]),
        (1, -MAX / 1.5, None, "real", None, None, [("float32", EDGES), WIDE]),
        (3, 0, TINY, "real", None, None, [("float32", EDGES), WIDE]),
        (3, -TINY / 2, 0, "real", None, None, [WIDE]),
        (3, 1, 9, "whole", "float64", None, [WIDE]),
        (3, 1, MAX / 3, "real", None, None, [("float64", AFTER)]),
        (3, 0, TINY / 2, "real", "float32", None, "weights up to 5.87747e-39 are too small for float32; choose float64"),
        (1, -INT32, None, "whole", "int32", None, "weight -1.07374e+09 on 1 vertices leaves no room in int32; choose float64"),
        (3, 1, 9, "whole", "int64", None, "dtype 'int64' is not supported; choose one of " + ", ".join(DTYPES)),
        (3, 1, MAX / 3, "real", "float32", None, "weights up to 1.13427e+38 leave no room for sums in float32; choose float64"),
        (3, -1e308, 1, "real", None, None, "weights up to 1e+308 leave no room for sums in float64; scale them down"),
        (3, 1, 9, "real", "int32", None, "weights that are not integers do not fit int32; choose float32 or float64"),
        (3, -2, 9, "whole", "int16", None, "int16 does not support negative weights such as -2; choose int32 or float64"),
        (3, 1, INT16, "whole", "int16", None, "weight 16383 on 3 vertices leaves no room in int16; choose int32"),
        (3, 1, INT32, "whole", "int32", None, "weight 1.07374e+09 on 3 vertices leaves no room in int32; choose float64"),
        (2000, -(10**6), 5, "whole", "int32", None, "weight -1e+06 on 2,000 vertices leaves no room in int32; choose float64"),
    ],
)  # fmt: skip
def test_types_are_tried_narrowest_first_each_with_its_proof(
    n: int, low: float | None, high: float | None, what: str, asked: str | None, reach: Any, expected: Any
) -> None:
    facts = bounds.EdgeFacts(n, 4, low, high, what != "real", what != "rounded")
    within: list[float] = []
    found: Any
    try:
        chosen = [*bounds.choices(facts, asked, lambda most: within.append(most) or reach)]
        found = [(choice.dtype, choice.proof) for choice in chosen]
        for choice in chosen:
            below = bounds.exact_below(facts, choice.dtype) if choice.dtype in FLOATS and choice.proof == AFTER else np.inf
            assert choice.exact_below == (0 if choice.proof == bounds.rounded(choice.dtype) else below)
            assert choice.far == bounds.far_of(facts, choice.dtype)
    except Refused as refusal:
        found = str(refusal)
    assert found == expected
    assert within == ([bounds.limit(facts, "int16" if asked != "int32" and high and high < INT16 else "int32")] if reach else [])


def test_floating_types_represent_these_sums_exactly() -> None:
    whole, real, below = (bounds.EdgeFacts(3, 2, low, 9, integer, True) for low, integer in ((1, True), (1, False), (-2, True)))
    for facts, most, wide in ((whole, 2**24, 2**53), (real, 2**16, 2**45), (below, 2**23 - 4, 2**52 - 4)):
        assert (bounds.exact_below(facts, "float32"), bounds.exact_below(facts, "float64")) == (most, wide)
    assert (bounds.far_of(below, "float32"), bounds.far_of(below, "int16")) == (np.inf, INT16 - 8)


def test_bounds_follow_from_edges_and_from_two_searches() -> None:
    assert bounds.facts_of(3, 0, np.inf, -np.inf, 3) == bounds.EdgeFacts(3, 0, None, None, False, False, vanishing=True)
    assert bounds.facts_of(4, 2, -1, 9, 1) == bounds.EdgeFacts(4, 2, -1.0, 9.0, False, True)
    assert bounds.longest(np.array([0.0, 0.25]), np.array([0.125, np.inf])) == (0.25, False)


def test_range_is_proved_by_edges() -> None:
    assert check_range(generate(Experiment(n=64, dtype="int16")), "int16") == bounds.BY_EDGES
    assert check_range(generate(Experiment(n=1)), "float32") == bounds.BY_EDGES
    assert check_range(generate(Experiment(n=50, low=-9, high=9, dtype="int32")), "int32") == bounds.BY_EDGES, "cycles below 0"
    assert check_range(graph_from([[0, -(2**29) + 1], [None, 0]]), "int32") == bounds.BY_EDGES, "room for a distance of 0"


def test_range_is_proved_by_searches_from_both_sides() -> None:
    asked: list[tuple[np.ndarray, ...]] = []

    def search(matrix: np.ndarray, *more: Any) -> np.ndarray:
        asked.append((matrix, *more))
        return distances_from(matrix, *more)

    kind: dict[str, Any] = {"n": 60, "dtype": "int16", "high": 1000}
    assert check_range(generate(Experiment(**kind, connected=True)), "int16") == bounds.BY_SEARCHES
    assert check_range(generate(Experiment(**kind, density=0.02)), "int16") == bounds.AFTERWARDS
    negative = generate(Experiment(n=300, real=True, high=200, negative=0.05, connected=True, density=0.5))
    assert negative.potentials is not None
    cycle = graph_from([[0, -1, 8190], [5, 0, None], [5, None, 0]], "int16")
    for graph, dtype, forth in ((negative, "float32", negative.potentials), (cycle, "int16", None)):
        asked.clear()
        assert bounds.check_range(graph, dtype, search) == bounds.BY_SEARCHES
        matrix = graph.matrix if forth is not None else np.maximum(graph.matrix, 0)
        for found, cells, potentials in zip(asked, (matrix, matrix.T), (forth, None if forth is None else -forth), strict=True):
            assert (found[0] == cells).all() and (found[1] == np.zeros(1, np.int64)).all() and found[1].dtype == np.int64
            assert (found[2] is None) if potentials is None else (found[2] == potentials).all()


@pytest.mark.parametrize(
    ("rows", "dtype", "sentence"),
    [
        ([[0, 16000, None], [None, 0, 16000], [16000, None, 0]], "int16", "64,000, and int16 holds them only below 16,383 here;"),
        ([[0, 8192, 1], [8191, 0, None], [1, None, 0]], "int16", "may reach 16,383, and int16 holds them only below 16,383"),
        ([[0, 9000, 9000], [9000, 0, None], [9000, None, 0]], "int16", "18,000, and int16 holds them only below 16,383"),
        ([[0, 2**24, None], [None, 0, 9], [9, None, 0]], "float32", "holds them exactly only below 1.67772e+07 here; choose int"),
        ([[0, 65535.5, None], [None, 0, 9], [9, None, 0]], "float32", f"exactly only below 65,536 here; {WIDER}"),
        ([[0, 2**29, None], [None, 0, 2**29], [9, None, 0]], "int32", f"only below 1.07374e+09 here; {WIDER}"),
        ([[0, -(2**29), None], [None, 0, 1], [1, None, 0]], "int32", f"weights down to -5.36871e+08 on 3 vertices {ROOM}"),
        ([[0, -(2**23)], [None, 0]], "float32", "on 2 vertices leave no room in float32"),
    ],
)
def test_range_that_is_reached_is_refused(rows: Any, dtype: str, sentence: str) -> None:
    with pytest.raises(Refused, match=re.escape(sentence)):
        check_range(graph_from(rows, dtype, "65,536" not in sentence), dtype)


def test_range_is_left_to_the_count_where_vertex_0_does_not_reach_all() -> None:
    assert check_range(graph_from([[0, 9000, None], [None, 0, 7000], [None, None, 0]], "int16"), "int16") == bounds.AFTERWARDS
    with pytest.raises(Refused, match="may reach 18,000"):
        check_range(graph_from([[0, 9000, None], [None, 0, 9000], [None, None, 0]], "int16"), "int16")
