"""`fwtui solve` without numba on a GPU: SciPy's distances, paths of their lengths; damage does no harm. Run: pytest -m gpu."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from path_checks import by_scipy, check_paths, random_matrix

from fwtui.common.environment import edition, worker_environment
from fwtui.solver.costs import MIN_ON_GPU

pytestmark = pytest.mark.gpu
SCALES = {"int16": 1, "int32": 2000, "float32": 0.25}
N = 2100  # from MIN_ON_GPU on


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the environment of the command, with an empty folder for compiled code."""
    caches = tmp_path_factory.mktemp("compiled")
    folder = caches / "fwtui" / "numba" / edition()
    return {**os.environ, **worker_environment("real"), "XDG_CACHE_HOME": str(caches), "NUMBA_CACHE_DIR": str(folder)}


def solved(environment: Mapping[str, str], file: Path, out: Path, *more: str) -> tuple[str, bool]:
    """Run the command and return its output, and True if it imported numba."""
    words = ["solve", str(file), "-o", str(out), "--force", "--device", "0", *more]
    command = [sys.executable, "-P", "-X", "importtime", "-m", "fwtui", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stderr.splitlines()
    summary = [line for line in lines if not line.startswith("import time:")]
    assert len(summary) == 3, summary  # the second line names the source of the weights
    return "\n".join(summary), any(line.rpartition("|")[2].strip() in ("numba", "numba.cuda", "llvmlite") for line in lines)


def written(folder: Path, matrix: np.ndarray, form: str) -> Path:
    file = folder / f"graph.{'npy' if form == 'dense' else 'txt'}"
    if form == "dense":
        np.save(file, matrix)
    else:
        rows, columns = np.nonzero(np.isfinite(matrix) & ~np.eye(len(matrix), dtype=bool))
        np.savetxt(file, np.column_stack([rows, columns, matrix[rows, columns]]), "%d %d %.8g")
    return file


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", SCALES)
def test_numba_is_needed_once(environment: Mapping[str, str], tmp_path: Path, dtype: str, form: str) -> None:
    matrix = random_matrix(N, 3, density=0.3, scale=SCALES[dtype])
    file = written(tmp_path, matrix, form)
    for again in (False, True):
        out = tmp_path / f"{again}.npz"
        said, numba = solved(environment, file, out, "--paths")
        assert f", {dtype}, " in said and numba != again
        with np.load(out) as found:
            assert (found["distances"] == by_scipy(matrix)).all()
            check_paths(matrix, found["distances"], found["predecessors"], np.arange(0, N, 50))


def test_damaged_code_is_compiled_again(environment: Mapping[str, str], tmp_path: Path) -> None:
    matrix = random_matrix(N, 4)
    file = written(tmp_path, matrix, "dense")
    solved(environment, file, tmp_path / "first.npy")
    assert not solved(environment, file, tmp_path / "kept.npy")[1]
    kept = [*Path(environment["NUMBA_CACHE_DIR"], "loaded").iterdir()]
    for number, code in enumerate(kept):
        data = code.read_bytes()
        code.write_bytes(data[:1000] if number % 2 else data[:-1] + bytes([data[-1] ^ 1]))
    for numba in (True, False):
        assert solved(environment, file, tmp_path / "again.npy")[1] == numba
        assert (np.load(tmp_path / "again.npy") == by_scipy(matrix)).all()


def test_other_sizes_need_no_numba_and_a_mistake_is_one_sentence(environment: Mapping[str, str], tmp_path: Path) -> None:
    """The first sizes compile each tile and the search for predecessors; the others are close to the limits between tiles."""
    for first, sizes in ((True, (2500, 4000, 4200)), (False, (MIN_ON_GPU, 2500, 3100, 4096, 4300))):
        for n in sizes:
            matrix = random_matrix(n, n, density=0.1)
            file = written(tmp_path, matrix, "dense")
            said, numba = solved(environment, file, tmp_path / "out.npz", "--paths")
            assert ", int16, " in said and (first or not numba), n
            with np.load(tmp_path / "out.npz") as found:
                check_paths(matrix, found["distances"], found["predecessors"], np.arange(0, n, 500))
    file = written(tmp_path, random_matrix(8, 8, density=0.5), "dense")
    words = ["-m", "fwtui", "solve", str(file), "--kernel", "no such kernel", "--device", "0"]
    done = subprocess.run([sys.executable, "-P", *words], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("there is no kernel") == 1
