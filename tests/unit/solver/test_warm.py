"""The choice from the second call on, and the code that is loaded for it: NumPy's answers, kept safely, also after a fork."""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from pretending import Pretend
from scipy.sparse import csr_array
from scipy.sparse.csgraph import floyd_warshall

from fwtui.common.environment import cache_folder
from fwtui.engine.engine import HostEngine
from fwtui.experiment.device import FIRST_GPU
from fwtui.solver import choose, launching, warm
from fwtui.solver.solve import solve
from fwtui_kernels.compiled.object_code import suits
from fwtui_kernels.one_core import OneCore
from fwtui_kernels.plan import Target


@pytest.fixture(scope="module", autouse=True)
def code() -> OneCore:
    """Compiled once for this version of the program, by whichever process of the tests needs it first."""
    here().parent.mkdir(parents=True, exist_ok=True)
    with open(here().with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if warm.load() is None:
            warm.compile_and_keep()
    code = warm.load()
    assert code is not None
    return code


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """From now on an empty folder is the cache; the code that was kept."""
    kept = here().read_bytes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder.cache_clear()
    yield kept
    cache_folder.cache_clear()


def here() -> Path:
    """The code for this machine."""
    return warm.path(suits())


@pytest.fixture
def loaded(fresh: warm.SmallGraphCode, code: OneCore) -> None:
    fresh._code = code


def graph(n: int, kind: str = "whole") -> np.ndarray:
    rng = np.random.default_rng(n)
    weights = rng.integers(1, 100, (n, n)).astype(np.float64)
    if kind == "real":
        weights = rng.random((n, n)) * 10
    weights *= {"quarters": 1 / 4, "long": 2**20, "wide": 2**22}.get(kind, 1)
    if kind == "negative":
        weights += np.subtract.outer(np.arange(n) % 7, np.arange(n) % 7) * 20
    weights[rng.random((n, n)) < (0.995 if kind == "apart" else 0.5)] = np.nan if n % 2 else np.inf
    np.fill_diagonal(weights, 5 if kind == "loops" else 0)
    return weights


class TestTheCode:
    @pytest.mark.parametrize(
        "kind",
        [
            *("whole", "real", "negative", "loops"),
            *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("quarters", "long", "wide", "apart")),
        ],
    )
    def test_it_answers_as_numpy_does(self, loaded: None, kind: str) -> None:
        for n in (1, 2, 3, 17, 64, 65, 129, 200):
            given = graph(n, kind)
            expected, got = solve(given, kernel="numpy"), solve(given)
            assert got.stats.kernel == "one-core" and got.distances.dtype == expected.distances.dtype
            assert np.allclose(got.distances, expected.distances, rtol=1e-5 if kind == "real" else 0)
            for fact in ("n", "edges", "dtype", "exact", "device", "devices"):
                assert getattr(got.stats, fact) == getattr(expected.stats, fact), (n, fact)
            assert np.signbit(got.distances).sum() == (got.distances < 0).sum(), "0 is never -0"
        assert not np.signbit(solve(np.array([[0, -0.0, np.inf], [np.inf, 0, 0.1], [1.3, np.inf, 0]])).distances).any()

    @pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
    def test_every_number_type_and_paths(self, loaded: None, dtype: str) -> None:
        given = graph(70)
        got = solve(given, dtype=dtype, predecessors=True)
        assert (got.distances == floyd_warshall(given)).all() and got.stats.dtype == dtype and got.predecessors is not None
        path = got.path(0, 69)
        assert sum(given[a, b] for a, b in pairwise(path)) == got.distances[0, 69]

    def test_whatever_holds_the_weights(self, loaded: None) -> None:
        given = np.where(np.isfinite(graph(66)), graph(66), np.inf)
        expected = solve(given, kernel="numpy").distances
        rows, columns = np.nonzero(np.isfinite(given) & (given > 0))
        whole = np.where(np.isfinite(given), given, 0).astype(np.int64)
        forms: list[Any] = [
            np.asfortranarray(given),
            given[::-1, ::-1][::-1, ::-1],
            given.astype(np.float32),
            given.astype(">f8"),
            np.ma.masked_invalid(given),
            np.ma.array(whole, mask=~np.isfinite(given)),
            given.tolist(),
            csr_array((given[rows, columns], (rows, columns)), shape=given.shape),
        ]
        for form in forms:
            before = form.copy()
            got = solve(form)
            assert got.stats.kernel == "one-core" and (got.distances == expected).all()
            assert form is forms[-1] or np.array_equal(form, before, equal_nan=True) or isinstance(form, np.ma.MaskedArray)

    def test_weights_that_a_search_has_to_prove(self, loaded: None) -> None:
        given = np.full((300, 300), 200.0)
        np.fill_diagonal(given, 0)
        assert solve(given).stats.proof == "proved by two searches from vertex 0" and solve(given).stats.dtype == "int16"
        line = np.full((300, 300), np.inf)
        line[np.arange(299), np.arange(1, 300)] = 200
        assert solve(line).stats.dtype == "int32" and solve(line).distances[0, 299] == 200 * 299, (
            "the search ends too late for 16 bits"
        )


class TestTheChoice:
    def test_a_call_that_takes_longer_than_loading_is_not_left_to_numpy(self) -> None:
        assert solve(graph(900)).stats.kernel == "one-core"

    def test_tiny_graphs_wait_until_loading_has_paid(self, fresh: warm.SmallGraphCode) -> None:
        assert {solve(graph(9)).stats.kernel for _ in range(5)} == {"numpy"}
        fresh.took(SimpleNamespace(n=9, seconds={"kernels": warm.LOADING}))  # type: ignore[arg-type]
        assert solve(graph(9)).stats.kernel == "one-core"

    def test_named_kernels_and_large_graphs_are_left_alone(self, loaded: None) -> None:
        assert solve(graph(64), kernel="scipy").stats.kernel == "scipy"
        assert solve(graph(65)).stats.kernel == "one-core"
        warm.everyday.most = 64
        assert solve(graph(65)).stats.kernel != "one-core"

    def test_compiling_begins_once_after_a_moment_of_numpy(self, fresh: warm.SmallGraphCode, own_folder: bytes) -> None:
        begun: list[bool] = []
        fresh._compile_for_later = lambda: begun.append(True)
        assert [solve(graph(64)).stats.kernel for _ in range(3)] == ["numpy"] * 3 and not begun
        fresh.patience = 0.0
        solve(graph(64), kernel="numpy")
        assert not begun, "who names a kernel needs no other"
        for _ in range(3):
            solve(graph(64))
        assert begun == [True]

    def test_a_gpu_that_stands_is_used_once_the_cpu_has_cost_more(
        self, fresh: warm.SmallGraphCode, monkeypatch: pytest.MonkeyPatch, pretend: Pretend
    ) -> None:
        there = HostEngine(Target("cuda", (9, 0)))
        pretend.driver(True, lambda gpu: there)
        started = set[int]()
        monkeypatch.setattr(choose, "_started_by", started)
        spent = SimpleNamespace(n=1000, seconds={"kernels": 2 * warm.LOADING_ON_GPU})
        fresh.took(spent)  # type: ignore[arg-type]
        assert choose.choose_engine(None, 1000) is choose.CPU, "none stands"
        started.add(os.getpid())
        assert choose.choose_engine(None, 1000) is there and choose.choose_engine(None, 500) is choose.CPU
        monkeypatch.setattr(warm, "everyday", warm.SmallGraphCode(lambda: None))
        assert choose.choose_engine(None, 1000) is choose.CPU and choose.choose_engine(None, 4000) is there
        started.clear()
        started.add(1)
        assert choose.choose_engine(None, 4000) is choose.CPU, "a fork has lost it"
        assert choose.choose_engine(FIRST_GPU.index, 4000) is there, "and is told so by CUDA if it asks for it"


class TestTheFile:
    @pytest.fixture
    def folder(self, own_folder: bytes) -> None:
        here().write_bytes(own_folder)
        here().chmod(0o600)

    def test_damage_is_seen_and_mended_and_a_damaged_file_read_once(self, folder: None, fresh: warm.SmallGraphCode) -> None:
        data = here().read_bytes()
        middle = len(data) // 2
        for broken in (b"", data[:10], data[:-1], data + b"x", data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]):
            here().write_bytes(broken)
            assert warm.load() is None
        warm.keep(data[32:])
        assert here().read_bytes() == data and warm.load() is not None
        here().write_bytes(b"damaged")
        assert [solve(graph(64)).stats.kernel for _ in range(3)] == ["numpy"] * 3
        here().write_bytes(data)
        assert solve(graph(64)).stats.kernel == "one-core"

    def test_code_for_another_machine_or_compiler_is_not_run(self, folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
        data = here().read_bytes()
        monkeypatch.setattr("fwtui_kernels.compiled.object_code.suits", lambda: "another processor")
        assert warm.load() is None
        warm.path("another processor").write_bytes(data)
        assert warm.load() is None
        warm.keep(data[32:])
        assert warm.load() is not None and here().read_bytes() == data, "machines that share a folder keep code for each"

    @pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError])
    def test_without_a_sound_compiler_there_is_no_code(
        self, folder: None, error: type[Exception], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "fwtui_kernels.compiled.object_code.suits", Mock(side_effect=error("libllvmlite.so cannot be loaded"))
        )
        assert warm.load() is None

    def test_code_that_others_may_write_is_not_run_and_not_made(self, folder: None) -> None:
        data = here().read_bytes()
        here().chmod(0o666)
        assert warm.load() is None
        before = os.umask(0)
        try:
            warm.keep(data[32:])
        finally:
            os.umask(before)
        assert warm.load() is not None


def run(script: str) -> subprocess.CompletedProcess[str]:
    begin = "import os, sys\nimport numpy as np\nfrom fwtui import solve\n"
    begin += "def graph(n): return np.random.default_rng(n).integers(1, 100, (n, n)) * (1.0 - np.eye(n))\n"
    return subprocess.run([sys.executable, "-P", "-c", begin + script], capture_output=True, text=True, timeout=100)


def test_no_compiler_is_imported_for_what_is_compiled() -> None:
    done = run(
        "print([solve(graph(64)).stats.kernel for _ in range(3)])\n"
        "print({'numba', 'scipy', 'networkx', 'cuda'} & set(sys.modules))\n"
    )
    assert done.stdout.split("\n")[:2] == ["['numpy', 'one-core', 'one-core']", "set()"], done.stderr


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_layers_before_fork", set[str]())

    def compile() -> None:
        with launching.compiled():
            pass

    with launching.compiled():
        launching._after_fork()
        free = threading.Thread(target=compile, daemon=True)
        free.start()
        free.join(30)
        assert not free.is_alive()


def test_a_forked_process_goes_on_whatever_its_parent_has_done() -> None:
    done = run(
        "import fwtui.solver.warm as warm, fwtui.solver.cpu_predecessors\n"
        "warm.everyday.most = 128\n"
        "solve(graph(100), kernel='tiled-cpu', predecessors=True), solve(graph(100)), solve(graph(100))\n"
        "expected = solve(graph(300))\n"
        "print(expected.stats.kernel)\n"  # on numba's threads
        "sys.stdout.flush()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    large = solve(graph(300))\n"
        "    assert (large.distances == expected.distances).all() and large.stats.kernel == 'one-core', large.stats.kernel\n"
        "    again = solve(graph(100), predecessors=True)\n"
        "    assert len(again.path(0, 99)) > 1 and (again.predecessors.diagonal() == -9999).all()\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print(solve(graph(300)).stats.kernel, solve(graph(100)).stats.kernel)\n"
    )
    assert done.stdout.split("\n")[:3] == ["tiled-cpu", "7", "tiled-cpu one-core"], done.stderr
    assert not launching.threads_lost()


@pytest.mark.slow
def test_what_is_not_there_is_compiled_by_another_process(tmp_path: Path) -> None:
    done = run(
        f"os.environ['XDG_CACHE_HOME'] = {str(tmp_path)!r}\n"
        "import time, fwtui.solver.warm as warm\n"
        "warm.everyday.patience = 0.0\n"
        "print(solve(graph(64)).stats.kernel, 'numba' in sys.modules)\n"
        "end = time.monotonic() + 80\n"
        "while not warm._written() and time.monotonic() < end: time.sleep(0.1)\n"
        "print(solve(graph(64)).stats.kernel, 'numba' in sys.modules)\n"
    )
    assert done.stdout.split("\n")[:2] == ["numpy False", "one-core False"], done.stderr
