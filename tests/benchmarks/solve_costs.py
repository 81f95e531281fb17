"""What `solve` costs beyond its kernels' time. Needs an NVIDIA GPU to say anything of one.

python tests/benchmarks/solve_costs.py paths [N]             predecessors beside distances; 16384 unless given
python tests/benchmarks/solve_costs.py streaming [N [GIB]]   with so much device memory, and in core; 32768 and 3 unless given

Weights decide how long the search for predecessors takes: how many arcs are shortest paths, whether two lengths share a word, and
whether sums are rounded. A benchmark, not a test: it asserts nothing.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fwtui import solve
from fwtui.graphs.adjacency import Adjacency, Weights
from fwtui.graphs.vertices import Vertices
from fwtui.solving import device

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu"))
turned_rows = import_module("path_checks").turned_rows

CASES = (
    ("int32", 100, 1),
    ("int32", 100, 1000),
    ("int32", 1000, 1),
    ("float32", 100, 256),
    ("int16", 100, 1),
    ("int16", 100, 20),
)


def paths(n: int) -> None:
    """Dense graphs: whole weights from 1 up to a greatest times a factor, and real ones between 0 and 1."""
    for dtype, high, times in CASES:
        weights = np.random.default_rng(1).integers(1, high + 1, (n, n)).astype(np.int32) * np.int32(times)
        np.fill_diagonal(weights, 0)
        _tell(f"{dtype} 1..{high} x {times}", weights, dtype)
    _tell("float32, rounded", 1 - np.random.default_rng(1).random((n, n), np.float32), "float32")


def _tell(name: str, weights: np.ndarray, dtype: str) -> None:
    result: Any = None
    for _ in range(2):  # the first one compiles
        result = None
        result = solve(weights, predecessors=True, dtype=dtype)
    spent = result.stats.seconds
    print(f"{name} {result.stats.kernel}: {_stages(spent)}; with predecessors {1 + spent['paths'] / spent['kernels']:.2f} times")


def streaming(n: int, gibibytes: float) -> None:
    """int32, dense; in core first."""
    engine = device.engine_for(None, n, needed=True)
    assert engine is not None
    graph = Adjacency(n, Vertices(range(n)), dense=turned_rows(n))
    # the matrix is not looked through for what is known of it
    graph.__dict__["weights"] = Weights(n * (n - 1), 1.0, 999.0, True, True)
    for cap in (None, int(gibibytes * 2**30)):
        if cap is not None:
            engine.free_bytes = lambda cap=cap: cap
        begin = time.perf_counter()
        solved = device.run(graph, "int32", None, engine, lambda share: None)
        spent = time.perf_counter() - begin
        print(f"n = {n} {solved.kernel} (tile {solved.tile}): {_stages(solved.seconds)}; in all {spent:.1f}")
        del solved


def _stages(seconds: Any) -> str:
    return ", ".join(f"{name} {spent:.3f}" for name, spent in seconds.items())


if __name__ == "__main__":
    kind, numbers = sys.argv[1:2], [float(word) for word in sys.argv[2:]]
    if kind == ["paths"]:
        paths(int((numbers or [16384])[0]))
    elif kind == ["streaming"]:
        size, memory = (numbers + [32768, 3][len(numbers) :])[:2]
        streaming(int(size), memory)
    else:
        sys.exit(__doc__)
