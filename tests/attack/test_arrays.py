"""Random matrices of every kind: `fwtui.shortest_path` returns SciPy's result and refuses what SciPy refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from attacking import SEED, sized
from scipy.sparse import csgraph

from fwtui import shortest_path

SIGNALLING = np.array([0x7FF00000000007A2], np.uint64).view(np.float64)  # R's NA
KINDS = {
    "whole": lambda rng, n: rng.integers(1, 30, (n, n)),
    "small": lambda rng, n: rng.integers(0, 2, (n, n)),
    "quarters": lambda rng, n: rng.integers(1, 300, (n, n)) / 4,
    "real": lambda rng, n: rng.random((n, n)),
    "negative": lambda rng, n: rng.integers(0, 30, (n, n)) - 3 * (rng.random((n, n)) < 0.02),
    "beyond float32": lambda rng, n: rng.integers(2**23, 2**31 - 1, (n, n)),
    "beyond int32": lambda rng, n: rng.integers(1, 2**62, (n, n)),
    "huge": lambda rng, n: rng.random((n, n)) * 1e300,
    "truth values": lambda rng, n: rng.random((n, n)) < 0.5,
    "NaN": lambda rng, n: np.where(rng.random((n, n)) < 0.1, np.nan, 3),
    "signalling NaN": lambda rng, n: np.where(rng.random((n, n)) < 0.1, SIGNALLING, 3),
    "infinite": lambda rng, n: np.where(rng.random((n, n)) < 0.1, np.inf, 3),
}


def outcome(function: Callable[..., Any], graph: object, *arguments: object) -> Any:
    try:
        return function(graph, *arguments)
    except (ValueError, csgraph.NegativeCycleError) as error:
        return type(error), str(error) if isinstance(error, ValueError) else ""


@pytest.mark.attack
@pytest.mark.parametrize("count", [8, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_types_and_errors(kind: str, count: int) -> None:
    for number in range(sized(count)):
        rng = np.random.default_rng((SEED, number))
        n = int(rng.integers(1, 20))
        present = rng.random((n, n)) < rng.choice([0.1, 0.3, 0.8])
        weights = np.where(present, KINDS[kind](rng, n), 0)
        rows, columns = np.nonzero(present)
        stored = weights[rows, columns], (rows, columns)  # with zeros
        graphs = weights, scipy.sparse.csr_array(stored, shape=(n, n)), scipy.sparse.csc_matrix(stored, shape=(n, n))
        for graph in graphs:
            for method, directed, unweighted in [("auto", True, False), ("FW", False, False), ("FW", True, True)]:
                expected = outcome(csgraph.shortest_path, graph, method, directed, True, unweighted)
                found = outcome(shortest_path, graph, method, directed, True, unweighted)
                if isinstance(expected[0], type):
                    assert found == expected
                    continue
                assert (found[0] == expected[0]).all() and found[0].dtype == np.float64
                assert ((found[1] >= 0) == (expected[1] >= 0)).all() and found[1].dtype == np.int32
