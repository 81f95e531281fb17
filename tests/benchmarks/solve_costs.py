"""Time of `solve` outside its kernels; times on a GPU need an NVIDIA GPU.

python tests/benchmarks/solve_costs.py streaming [N [GIB]]   with so much device memory, and in core; 32768 and 3 unless given
python tests/benchmarks/solve_costs.py split [N]             stages of `fwtui solve` and of a warm solve(); 4096 unless given

A benchmark, not a test: it asserts nothing.
"""

import cProfile
import os
import pstats
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fwtui import solve
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.graph import EdgeFacts
from fwtui.solver import engine_choice
from fwtui.solver.call import Call
from fwtui.solver.driver import answer


def _turned_rows(n: int) -> np.ndarray:
    """n x n of int32 from 1 to 999: some rows, each many times, turned differently; random numbers alone would take minutes."""
    some = np.random.default_rng(1).integers(1, 1000, (1024, n), dtype=np.int32)
    matrix = np.empty((n, n), np.int32)
    for i in range(n):
        matrix[i] = np.roll(some[i % 1024], 7 * i)
    return matrix


def streaming(n: int, gibibytes: float) -> None:
    """int32, dense; in core first."""
    engine = engine_choice.choose_engine(None, n, needed_by="a test")
    graph = Adjacency(n, dense=_turned_rows(n))
    # the matrix is not looked through for what is known of it
    graph.__dict__["facts"] = EdgeFacts(n, n * (n - 1), 1.0, 999.0, True, True)
    for cap in (None, int(gibibytes * 2**30)):
        if cap is not None:
            engine.free_bytes = lambda cap=cap: cap
        begin = time.perf_counter()
        solved = answer(graph, Call("int32"), engine).stats
        spent = time.perf_counter() - begin
        print(f"n = {n} {solved.kernel} (tile {solved.tile}): {_stages(solved.seconds)}; in all {spent:.1f}")
        del solved


def split(n: int) -> None:
    """Whole weights up to 1000: a dense float64 array, a sparse matrix with three cells of ten, and both as .npz files.

    A command runs twice in processes of their own: the first one may compile. solve() is timed from its third call on, when all
    is loaded; then it is looked into once, which makes it a little slower.
    """
    from scipy.sparse import csr_array, save_npz

    rng = np.random.default_rng(1)
    dense = rng.integers(1, 1001, (n, n)).astype(np.float64)
    np.fill_diagonal(dense, 0)
    sparse = csr_array(np.where(rng.random((n, n)) < 0.3, dense, 0))
    with TemporaryDirectory() as folder:
        np.savez(f"{folder}/dense.npz", dense)
        save_npz(f"{folder}/sparse.npz", sparse, compressed=False)
        for name in ("dense", "sparse"):
            for times in ("first", "second"):
                begin = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-P", "-m", "fwtui", "solve", f"{folder}/{name}.npz", "-o", f"{folder}/out.npy"],
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[2]), *sys.path))},
                )
                spent = time.perf_counter() - begin
                print(f"\nfwtui solve {name}.npz, {times} time: {spent:.3f} s in all\n{done.stderr.strip()}")
    for name, graph in (("dense float64", dense), ("sparse, 30 %", sparse)):
        _warm(name, graph)


def _warm(name: str, graph: Any) -> None:
    solve(graph)
    solve(graph)
    for _ in range(3):
        begin = time.perf_counter()
        stats = solve(graph).stats
        whole = time.perf_counter() - begin
        moved = sum(stats.seconds.get(stage, 0.0) for stage in ("copy in", "kernels", "copy out"))
        way = f"{stats.kernel}, {stats.dtype}, {stats.device}"
        print(f"\nwarm solve(), {name}: {whole:.4f} s, {way}; {(whole - moved) / whole:.0%} outside copies and kernels")
        print(f"  {_stages(stats.seconds)}, in no stage {whole - stats.total:.4f}")
    with cProfile.Profile() as profile:
        solve(graph)
    pstats.Stats(profile).sort_stats("tottime").print_stats(14)


def _stages(seconds: Any) -> str:
    return ", ".join(f"{name} {spent:.4f}" for name, spent in seconds.items())


if __name__ == "__main__":
    kind, numbers = sys.argv[1:2], [float(word) for word in sys.argv[2:]]
    if kind == ["streaming"]:
        size, memory = (numbers + [32768, 3][len(numbers) :])[:2]
        streaming(int(size), memory)
    elif kind == ["split"]:
        split(int((numbers or [4096])[0]))
    else:
        sys.exit(__doc__)
