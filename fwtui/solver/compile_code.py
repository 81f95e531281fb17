"""`python -P -m fwtui.solver.compile_code [DEVICE DTYPE N ...]`: compiles code ahead of its first use, and keeps it.

With arguments what `solve` needs for graphs of that type and those sizes on that device, by solving some; without, the code for
graphs of everyday size (solver/warm.py).
"""

from __future__ import annotations

import fcntl
import resource
import sys

from fwtui.common.environment import cache_folder
from fwtui.solver import warm

MOST_SECONDS = 300  # of a processor: whatever goes wrong ends
_GREATEST = {"int16": 16, "int32": 1 << 14, "float32": 1}  # weights with which no other type is taken


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    if sys.argv[1:]:
        by_solving(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
        return
    with open(cache_folder() / "one-core.lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process is at it
            return
        if warm.load() is None:
            warm.compile_and_keep()


def by_solving(device: str, dtype: str, n: int, *others: int) -> None:
    """Dense graphs and sparse ones, in the forms that libraries and files have, with predecessors; a dense one of each other
    size.
    """
    import numpy as np
    from scipy.sparse import csr_array

    from fwtui.graphs.library_objects import of_object
    from fwtui.solver.call import Call
    from fwtui.solver.driver import answer
    from fwtui.solver.solve import solve

    rng = np.random.default_rng(1)

    def dense(n: int) -> np.ndarray:
        weights = rng.integers(1, _GREATEST[dtype] + 1, (n, n)).astype(np.float64)
        if dtype == "float32":
            weights += rng.random((n, n))
        np.fill_diagonal(weights, 0)
        return weights

    kernel, weights = "tiled-cpu" if device == "cpu" else "auto", dense(n)
    sparse = csr_array(np.where(rng.random((n, n)) < 0.1, weights, 0))
    for graph in (weights, sparse):
        solve(graph, dtype=dtype, kernel=kernel, device=device, predecessors=True)
    for other in others:
        solve(dense(other), dtype=dtype, kernel=kernel, device=device)
    if device != "cpu":
        solve(weights.astype(dtype), dtype=dtype, device=device)
        answer(of_object(sparse), Call(dtype, device=device))  # arcs, as files of edges have them


if __name__ == "__main__":
    main()
