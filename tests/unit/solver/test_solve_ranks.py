"""`solve` in an MPI program of several processes on the CPU."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from path_checks import by_scipy, check_paths

from fwtui.common.environment import worker_environment
from fwtui.machine.device_choice import mpiexec
from fwtui.solver.solve import solve

HERE = Path(__file__).parent
TILE = 64
MAPS = "/proc/self/maps" if sys.platform == "linux" else os.devnull
HANGS = 150.0  # seconds


def matrix(n: int, seed: int, density: float = 0.1, real: bool = False, lifted: bool = False, scale: int = 1) -> np.ndarray:
    """Return weights with +inf for no edge; `lifted` makes some negative, but no cycle."""
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
    for u, v in np.argwhere(np.isfinite(graph)).tolist():
        found.add_edge(f"town {u}", f"town {v}", weight=graph[u, v])
    return found


GRAPHS = {
    "one vertex": matrix(1, 0),
    "smaller than a tile": matrix(5, 1, 0.5),
    "whole": matrix(2 * TILE + 9, 2),
    "as many rows as tiles": matrix(2 * TILE, 3),
    "int32": matrix(150, 4, scale=1000),
    "unreachable": matrix(140, 6, 0.008),
    "negative": matrix(150, 7, lifted=True),
    "real": matrix(150, 8, real=True),
    "negative real": matrix(150, 9, 0.2, real=True, lifted=True),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of two ranks of an MPI program by the name of the request."""
    folder = tmp_path_factory.mktemp("ranks")
    sparse = GRAPHS["whole"].copy()
    sparse[np.isinf(sparse)] = 0
    cyclic = GRAPHS["negative"].copy()
    cyclic[3, 4], cyclic[4, 3] = -100, 50
    narrow = {"predecessors": False, "dtype": "int16"}
    asked: dict[str, tuple[Any, dict[str, Any]]] = {name: (graph, {"predecessors": True}) for name, graph in GRAPHS.items()}
    asked |= {
        "sparse": (scipy.sparse.csr_array(sparse), {"predecessors": True}),
        "names": (names(GRAPHS["smaller than a tile"]), {"predecessors": False}),
        "too long for its type": (scipy.sparse.diags_array(np.full(99, 1000.0), offsets=1).tocsr(), narrow),
        "cycle": (cyclic, {"predecessors": False}),
        "no graph": (np.zeros((3, 2)), {"predecessors": False}),
        "too large": (scipy.sparse.csr_array((2_000_000, 2_000_000)), {"predecessors": False}),
        "wrong kernel": (GRAPHS["whole"], {"predecessors": False, "kernel": "tiled-cpu"}),
    }
    (folder / "asked").write_bytes(pickle.dumps(list(asked.values())))
    done = ended(2, "-m", "mpi4py", str(HERE / "ranked_program.py"), str(folder / "asked"), str(folder / "found"))
    assert done.returncode == 0, done.stderr
    return dict(zip(asked, pickle.loads((folder / "found").read_bytes()), strict=True))  # noqa: S301 its own


def ended(ranks: int, *program: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program on that many ranks to its end."""
    environment = {**os.environ, **worker_environment("real")}
    command = [mpiexec(), "-n", str(ranks), sys.executable, *program]
    return subprocess.run(command, env=environment, capture_output=True, timeout=HANGS, text=True)


@pytest.mark.slow
def test_the_example_of_the_readme(tmp_path: Path) -> None:
    text = (HERE.parents[2] / "fwtui" / "solver" / "README.md").read_text()
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "comm=" in block]
    (tmp_path / "roads.py").write_text(example.replace('"roads.npz"', repr(str(tmp_path / "roads.npz"))))
    graph = np.where(np.isfinite(GRAPHS["unreachable"]), GRAPHS["unreachable"], 0)
    scipy.sparse.save_npz(tmp_path / "roads.npz", scipy.sparse.csr_array(graph))
    told = ended(2, str(tmp_path / "roads.py"))
    assert told.returncode == 0, told.stderr
    distances = by_scipy(GRAPHS["unreachable"])
    assert f"the longest of 140 x 140 distances is {distances[np.isfinite(distances)].max():g}" in told.stdout


def test_a_rank_that_fails_is_named_and_ends_the_program_without_a_file_left() -> None:
    failing = (
        "from fwtui.engine.distributed_engine import Allocate\nhealthy = Allocate.execute\n"
        "def sick(order, work):\n    if work.rank == 1: raise MemoryError('no more')\n    healthy(order, work)\n"
        "Allocate.execute = sick\n"
        "import numpy as np, fwtui\nfrom mpi4py import MPI\n"
        f"maps = open({MAPS!r}).read()\nprint([word for word in maps.split() if '/mpich_shm_' in word], flush=True)\n"
        "fwtui.solve(np.array([[0, 1.0], [np.inf, 0]]), comm=MPI.COMM_WORLD, device='cpu')"
    )
    told = ended(2, "-c", failing)
    assert told.returncode != 0
    assert "fwtui: rank 1 (CPU): the host's memory is exhausted (no more); choose a smaller n; all ranks end" in told.stderr
    shared = set(re.findall(r"/dev/shm/\w+", told.stdout))
    assert bool(shared) == (os.devnull != MAPS) and not any(map(os.path.exists, shared))


def test_rank_0_has_all_distances_and_predecessors(told: dict[str, Any]) -> None:
    for name, graph in GRAPHS.items():
        ranks, alone = told[name], solve(graph, device="cpu")
        assert all("error" not in rank for rank in ranks), ranks
        first, second = ranks
        tolerance = 1e-5 if "real" in name else 0
        assert first["rows"] is None and np.allclose(first["distances"], by_scipy(graph), rtol=0, atol=tolerance), name
        check_paths(graph, first["distances"], first["predecessors"], apart=4 * tolerance)
        path = first["path"]
        assert not path or (path[0] == 0 and path[-1] == len(graph) - 1)
        assert len(second["rows"]) == len(second["distances"]) == len(second["predecessors"]) == 0
        stats = second["stats"]
        assert stats == first["stats"] and stats.kernel == "distributed-cpu"
        assert stats.devices == ("rank 0 (CPU)", "rank 1 (CPU)") and stats.seconds["kernels"] > 0
        found = stats.dtype, stats.proof, first["distances"].dtype
        assert found == (alone.stats.dtype, alone.stats.proof, alone.distances.dtype), name
    assert (told["sparse"][0]["distances"] == told["whole"][0]["distances"]).all()
    assert told["names"][1]["names"] == [f"town {v}" for v in range(5)] and told["names"][1]["predecessors"] is None


def test_all_ranks_raise_what_rank_0_refuses(told: dict[str, Any]) -> None:
    for name, kind, words in (
        ("cycle", "NegativeCycleError", "the graph has a negative cycle: "),
        ("no graph", "Refused", "an array of shape (3, 2) is not a graph"),
        ("too large", "Refused", "of host memory, but only"),
        ("wrong kernel", "Refused", "kernel tiled-cpu does not run on these devices; choose distributed-cpu"),
        ("too long for its type", "Refused", "some distances overflow int16"),
    ):
        errors = [rank["error"] for rank in told[name]]
        assert errors[0] == errors[1] and errors[0][0] == kind and words in errors[0][1], name
