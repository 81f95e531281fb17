"""`solve` in a process: before and after compiled code is loaded, after a fork, and its report of times."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pretending import Pretend
from processes import run_python

from fwtui.engine.engine import HostEngine
from fwtui.experiment.device import FIRST_GPU
from fwtui.solver import compiled_code, engine_choice
from fwtui.solver.output import spent
from fwtui_kernels.plan import Target


def run(script: str) -> subprocess.CompletedProcess[str]:
    begin = "import os, sys\nimport numpy as np\nfrom fwtui import solve, Refused\n"
    begin += "def graph(n): return np.random.default_rng(n).integers(1, 100, (n, n)) * (1.0 - np.eye(n))\n"
    return subprocess.run([sys.executable, "-P", "-c", begin + script], capture_output=True, text=True, timeout=100)


def test_a_variable_of_numba_does_not_disable_a_kernel() -> None:
    solved = "print(solve(graph(9), kernel='tiled-cpu').stats.kernel)"
    done = run(f"os.environ['NUMBA_DISABLE_JIT'] = '1'\n{solved}; import numba; print(numba.config.DISABLE_JIT)")
    assert done.stdout.split() == ["tiled-cpu", "1"], done.stderr


def test_scipy_solves_tiny_graphs_and_the_first_small_one_of_a_process() -> None:
    done = run(
        "print(*(solve(graph(n), predecessors=n == 70).stats.kernel for n in (9, 70, 9)), 'numba' in sys.modules)\n"
        "print(*(solve(graph(n)).stats.kernel for n in (70, 9)))\n"
    )
    assert done.stdout.split("\n")[:2] == ["scipy scipy scipy False", "tiled-cpu tiled-cpu"], done.stderr


def test_without_a_writable_folder_no_code_is_cached(tmp_path: Path) -> None:
    done = run(
        "os.environ['XDG_CACHE_HOME'] = '/dev/null/nowhere'\n"
        f"os.environ['TMPDIR'] = {str(tmp_path)!r}\n"
        "os.environ.pop('NUMBA_CACHE_DIR', None)\n"
        "print(solve(graph(100), kernel='serial').stats.kernel)\n"
        "import numba, fwtui_kernels\n"
        "print(repr(numba.config.CACHE_DIR))\n"
    )
    assert done.stdout.split("\n")[:2] == ["serial", "''"], done.stderr
    assert not list(tmp_path.iterdir()), "the temporary folder goes with the process"


def test_a_gpu_in_use_takes_smaller_graphs_and_a_fork_has_lost_it(monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
    there = HostEngine(Target("cuda", (9, 0)))
    pretend.driver(True, lambda gpu: there)
    started = set[int]()
    monkeypatch.setattr(engine_choice, "_started_by", started)
    assert engine_choice.choose_engine(None, 1000) is engine_choice.CPU, "none is in use"
    assert engine_choice.choose_engine(None, 4000) is there
    started.add(os.getpid())
    assert engine_choice.choose_engine(None, 1000) is there and engine_choice.choose_engine(None, 500) is engine_choice.CPU
    started.clear()
    started.add(1)
    assert engine_choice.choose_engine(None, 4000) is engine_choice.CPU
    assert engine_choice.choose_engine(FIRST_GPU.index, 4000) is there, "and is told so by CUDA if it asks for it"


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_code, "_layers_before_fork", set[str]())

    def compile() -> None:
        with compiled_code.compiled():
            pass

    with compiled_code.compiled():
        compiled_code._after_fork()
        free = threading.Thread(target=compile, daemon=True)
        free.start()
        free.join(30)
        assert not free.is_alive()


def test_a_forked_process_goes_on_whatever_its_parent_has_done() -> None:
    done = run(
        "expected = solve(graph(1100), predecessors=True)\n"  # on numba's threads
        "print(expected.stats.kernel)\n"
        "sys.stdout.flush()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    for kernel in ('auto', 'tiled-cpu'):\n"
        "        again = solve(graph(1100), kernel=kernel)\n"
        "        assert (again.distances == expected.distances).all() and again.stats.kernel == 'tiled-cpu'\n"
        "    small = solve(graph(100), predecessors=True)\n"
        "    assert len(small.path(0, 99)) > 1 and (small.predecessors.diagonal() == -9999).all()\n"
        "    try:\n"
        "        solve(graph(100), kernel='sparse-cpu')\n"
        "    except Refused as refusal:\n"
        "        print(refusal)\n"
        "    sys.stdout.flush()\n"
        "    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    told = done.stdout.split("\n")
    assert told[0] == "tiled-cpu" and told[1].startswith("kernel sparse-cpu needs numba's threads, which") and told[2] == "7", (
        done.stderr
    )
    assert not compiled_code.threads_lost()


def test_a_small_graph_brings_nothing_that_does_not_solve_it(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("0,1,2\n")
    code = "import sys; from fwtui.__main__ import main; main(sys.argv[1:]); print(*sys.modules)"
    brought = run_python(code, "solve", "g.csv", "-o", "d.npy", cwd=tmp_path).split()
    others = {"fwtui.machine.hardware", "fwtui.measure", "fwtui.stream", "fwtui_kernels.own", "numba", "llvmlite"}
    assert "fwtui.solver.driver" in brought and not others & set(brought)


def test_one_time_work_is_reported_separately() -> None:
    seconds = {"set-up": 0.5, "read": 0.03, "compile": 0.1, "copy in": 0.02, "prepare": 0.01, "kernels": 0.04, "copy out": 0.1}
    told = spent(seconds)
    assert told.startswith("set-up 600 ms once; then 200 ms: read 30.0 ms, copy in 20.0 ms, prepare 10.0 ms, kernels 40.0 ms, ")
    assert told.endswith("copy out 100 ms; 20.0 % of that outside copies and kernels")
    assert spent({"set-up": 0.5}).startswith("set-up 500 ms once; then 0")
