"""`python -P -m fwtui.solver.compile_code [DTYPE N DEVICE]`: compiles code ahead of its first use, and keeps it.

With arguments what `solve` needs for graphs of that type and size on that device, by solving some; without, the code for
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
        by_solving(sys.argv[1], int(sys.argv[2]), sys.argv[3])
        return
    with open(cache_folder() / "one-core.lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process is at it
            return
        if warm.load() is None:
            warm.compile_and_keep()


def by_solving(dtype: str, n: int, device: str) -> None:
    """A dense graph and a sparse one with predecessors, and on the CPU a stack."""
    import numpy as np
    from scipy.sparse import csr_array

    from fwtui.solver.solve import solve

    rng = np.random.default_rng(1)
    weights = rng.integers(1, _GREATEST[dtype] + 1, (n, n)).astype(np.float64)
    if dtype == "float32":
        weights += rng.random((n, n))
    np.fill_diagonal(weights, 0)
    kernel = "tiled-cpu" if device == "cpu" else "auto"
    for graph in (weights, csr_array(np.where(rng.random((n, n)) < 0.1, weights, 0))):
        solve(graph, dtype=dtype, kernel=kernel, device=device, predecessors=True)
    if device == "cpu":
        for predecessors in (False, True):
            solve(np.array([weights[:8, :8]] * 4096), dtype=dtype, device=device, predecessors=predecessors)


if __name__ == "__main__":
    main()
