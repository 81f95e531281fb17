"""`solve` over several processes on the CPU: as a job of its own, and in an MPI program whose ranks call it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse
from scipy.sparse.csgraph import NegativeCycleError
from test_solve import by_scipy, check_paths, least, random_arcs

from fwtui.common.child_process import python
from fwtui.common.environment import worker_environment
from fwtui.common.errors import Failed, NoGpu, Refused
from fwtui.live import rank_job
from fwtui.live.rank_job import RankJob, mpiexec
from fwtui.solver.solve import solve

HERE = Path(__file__).parent
TILE = 64
HANGS = 300.0  # seconds


def matrix(n: int, seed: int, density: float = 0.1, real: bool = False, lifted: bool = False, scale: int = 1) -> np.ndarray:
    """Weights with +inf for no edge; `lifted`: some are negative, but no cycle is."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 50, (n, n)) * float(scale)
    if real:
        weights = rng.random((n, n)).astype(np.float32).astype(float)
    if lifted:
        lift = (rng.random(n) * 0.5).astype(np.float32) if real else rng.integers(0, 40, n) * float(scale)
        weights += lift[:, None] - lift[None, :]
    weights[rng.random((n, n)) >= density] = np.inf
    np.fill_diagonal(weights, 0)
    return weights


def names(graph: np.ndarray) -> Any:
    import networkx as nx

    found = nx.DiGraph()
    found.add_nodes_from(f"town {v}" for v in range(len(graph)))
    found.add_weighted_edges_from((f"town {u}", f"town {v}", graph[u, v]) for u, v in zip(*np.nonzero(np.isfinite(graph))) if u != v)
    return found


GRAPHS = {
    "one vertex": matrix(1, 0),
    "smaller than a tile": matrix(5, 1, 0.5),
    "whole": matrix(2 * TILE + 9, 2),
    "as many rows as tiles": matrix(2 * TILE, 3),
    "int32": matrix(150, 4, scale=1000),
    "beyond float32": matrix(130, 5, 0.02, scale=3_000_000),
    "unreachable": matrix(140, 6, 0.008),
    "negative": matrix(150, 7, lifted=True),
    "real": matrix(150, 8, real=True),
    "negative real": matrix(150, 9, 0.2, real=True, lifted=True),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two ranks of an MPI program got, by the name of the request."""
    folder = tmp_path_factory.mktemp("ranks")
    sparse = GRAPHS["whole"].copy()
    sparse[np.isinf(sparse)] = 0
    cyclic = GRAPHS["negative"].copy()
    cyclic[3, 4], cyclic[4, 3] = -100, 50
    asked: dict[str, tuple[Any, dict[str, Any]]] = {name: (graph, {"predecessors": True}) for name, graph in GRAPHS.items()}
    asked |= {
        "sparse": (scipy.sparse.csr_array(sparse), {"predecessors": True}),
        "names": (names(GRAPHS["smaller than a tile"]), {"predecessors": False}),
        "too long for its type": (matrix(130, 10, 0.02, scale=400), {"predecessors": False, "dtype": "int16"}),
        "gathered": (GRAPHS["negative"], {"predecessors": True, "gather": True}),
        "cycle": (cyclic, {"predecessors": False}),
        "no graph": (np.zeros((3, 2)), {"predecessors": False}),
        "too large": (scipy.sparse.csr_array((2_000_000, 2_000_000)), {"predecessors": False}),
        "wrong kernel": (GRAPHS["whole"], {"predecessors": False, "kernel": "tiled-cpu"}),
    }
    (folder / "asked").write_bytes(pickle.dumps(list(asked.values())))
    program = [sys.executable, str(HERE / "ranked_program.py"), str(folder / "asked"), str(folder / "found")]
    environment = {**os.environ, **worker_environment("real")}
    ended = subprocess.run([mpiexec(), "-n", "2", *program], env=environment, capture_output=True, timeout=HANGS)
    assert ended.returncode == 0, ended.stderr.decode()
    return dict(zip(asked, pickle.loads((folder / "found").read_bytes()), strict=True))


def put_together(ranks: list[dict[str, Any]], what: str) -> np.ndarray:
    rows = np.concatenate([rank["rows"] for rank in ranks])
    assert sorted(rows) == list(range(len(rows)))
    return np.concatenate([rank[what] for rank in ranks])[np.argsort(rows)]


@pytest.mark.parametrize("name", GRAPHS)
def test_each_rank_has_its_rows_of_distances_and_predecessors(told: dict[str, Any], name: str) -> None:
    ranks, graph = told[name], GRAPHS[name]
    assert all("error" not in rank for rank in ranks), ranks
    distances, expected = put_together(ranks, "distances"), by_scipy(graph)
    tolerance = 1e-5 if "real" in name else 0
    assert np.allclose(distances, expected, rtol=0, atol=tolerance)
    check_paths(graph, distances, put_together(ranks, "predecessors"), 4 * tolerance)
    assert all(len(np.unique(rank["rows"] // TILE % 2)) <= 1 for rank in ranks)  # rows of tiles in turn
    for rank in ranks:
        path = rank["path"]
        assert not path or (path[0] == rank["rows"][0] and path[-1] == 1)
    stats = ranks[1]["stats"]
    assert stats == ranks[0]["stats"] and stats.kernel == "distributed-cpu"
    assert stats.devices == ("rank 0 (CPU)", "rank 1 (CPU)") and stats.seconds["kernels"] > 0


def test_types_are_those_of_one_device(told: dict[str, Any]) -> None:
    for name, graph in GRAPHS.items():
        alone, found = solve(graph, device="cpu"), told[name][0]
        assert (found["stats"].dtype, found["stats"].proof) == (alone.stats.dtype, alone.stats.proof), name
        assert found["distances"].dtype == alone.distances.dtype, name


def test_sparse_graphs_and_names(told: dict[str, Any]) -> None:
    assert (put_together(told["sparse"], "distances") == put_together(told["whole"], "distances")).all()
    assert told["names"][1]["names"] == [f"town {v}" for v in range(5)] and told["names"][1]["predecessors"] is None


def test_rank_0_has_all_rows_if_they_are_gathered(told: dict[str, Any]) -> None:
    first, second = told["gathered"]
    assert first["rows"] is None and (first["distances"] == put_together(told["negative"], "distances")).all()
    check_paths(GRAPHS["negative"], first["distances"], first["predecessors"], 0)
    assert len(second["rows"]) == len(second["distances"]) == len(second["predecessors"]) == 0


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("cycle", "NegativeCycleError", "the graph has a negative cycle: "),
        ("no graph", "Refused", "an array of shape (3, 2) is not a graph"),
        ("too large", "Refused", "for each of 2 ranks"),
        ("wrong kernel", "Refused", "kernel tiled-cpu does not run on these devices; choose distributed-cpu"),
        ("too long for its type", "Refused", "some distances are beyond what int16 can hold"),
    ],
)
def test_all_ranks_raise_what_rank_0_refuses(told: dict[str, Any], name: str, kind: str, words: str) -> None:
    errors = [rank["error"] for rank in told[name]]
    assert errors[0] == errors[1] and errors[0][0] == kind and words in errors[0][1]
