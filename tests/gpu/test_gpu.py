"""Tests that need a GPU: pytest -m gpu."""

import os
import shutil
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwtui.experiment.experiment import KINDS, Experiment, changed, settle
from fwtui_kernels import registry

pytestmark = pytest.mark.gpu
HERE = Path(__file__).parent
SMALL = HERE / "small_runs.py"


def test_every_kernel_type_tile_block_and_launch_mode_equals_scipy(engine):
    from small_runs import experiments, wrong

    assert not wrong(engine, *experiments((1, 31, 32, 33, 100, 257), engine.target))


@pytest.mark.parametrize("kernel", ["naive", "katz-kider", "register-tiled", "look-ahead", "resident"])
@pytest.mark.parametrize(
    "graph",
    [
        {"negative": 0.3, "dtype": "int32"},
        {"negative": 0.45, "dtype": "float32"},
        {"density": 0.004, "dtype": "int32"},  # most pairs unreachable
        {"density": 0.004, "dtype": "int16"},
        {"density": 0.02, "negative": 0.3, "dtype": "int32"},
        {"real": True, "low": 0.0, "high": 3.5, "dtype": "float32"},
        {"density": 0.0, "dtype": "float32"},
        {"density": 1.0, "connected": True, "dtype": "int16"},
        {"real": True, "negative": 0.3, "density": 0.02, "dtype": "float32"},
        {"exact": True, "density": 0.5, "dtype": "int32"},
    ],
)
def test_kinds_of_graphs_equal_scipy(engine, kernel, graph):
    from small_runs import wrong

    sizes = (1, 2, 65, 500, 700) if not graph.get("negative") else (65, 500, 700)
    asked = [settle(Experiment(kernel=kernel, n=n, repeats=1, verify="full", **graph)) for n in sizes]
    assert not wrong(engine, *(e for e in asked if registry()[kernel].lacks(e.shape(e.n), engine.target) is None))


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize(
    "more", [{"dtype": "int16"}, {"dtype": "int32", "negative": 0.3}, {"real": True}, {"real": True, "negative": 0.3}], ids=str
)
def test_sparse_graphs_equal_scipy(engine, kind, more):
    from small_runs import wrong

    asked = [Experiment(kernel="sparse", kind=kind, n=n, repeats=1, verify="full", **more) for n in (300, 1500, 2500)]
    assert not wrong(engine, *asked)


@pytest.mark.parametrize("kernel", ["naive", "katz-kider"])
def test_the_largest_size_that_is_compared_cell_by_cell_and_a_negative_cycle(engine, kernel):
    from small_runs import ran

    usual = Experiment(kernel=kernel, n=2048, dtype="int32", repeats=1, verify="full")
    whole, cyclic = ran(engine, usual, changed(usual, n=200, low=-3, high=9)).runs.values()
    assert whole.verified and whole.verdict is not None and whole.verdict.cells == 2048**2
    assert cyclic.verdict is not None and cyclic.verdict.verdict == "negative cycle" and cyclic.verdict.cycle


def test_the_generator_writes_the_same_bytes_as_numpy(engine):
    from fwtui.engine.generate_cuda import fill_cuda
    from fwtui.experiment.generate import fill_numpy, recipe_for

    exact = {"exact": True}
    kinds: list[dict[str, Any]] = [{}, {"negative": 0.3}, {"connected": True}, exact, {**exact, "connected": True}]
    kinds += [{"kind": kind} for kind in KINDS[1:]]
    for changes, dtype, n in product(kinds, ("float32", "int32", "int16", "float64"), (1, 2, 33, 700)):
        if (dtype == "int16" and "negative" in changes) or (n < 3 and changes):  # too few pairs for that many edges
            continue
        recipe = recipe_for(Experiment(n=n, dtype=dtype, **changes))
        expected = np.empty((n, n), dtype)
        fill_numpy(expected, recipe)
        assert fill_cuda(recipe).copy_to_host().tobytes() == expected.tobytes(), (changes, dtype, n)


def test_our_occupancy_table_agrees_with_the_drivers_calculator(engine):
    from small_runs import ran

    from fwtui.analysis.occupancy import occupancy

    tiles = ("naive", 0), ("katz-kider", 8), ("katz-kider", 16), ("katz-kider", 32)
    for run in ran(engine, *(Experiment(kernel=kernel, n=100, tile=tile, repeats=1) for kernel, tile in tiles)).runs.values():
        assert run.occupancies
        for e in run.occupancies:
            table = occupancy(engine.target.cc, e.threads, e.registers, e.shared_bytes)
            assert e.source == "driver" and table is not None and table.blocks == e.blocks


def test_phases_of_a_captured_pass_are_all_there(engine):
    from small_runs import ran

    phases = ran(engine, Experiment(kernel="katz-kider", n=1000, launch="graph", repeats=2)).runs[1].instrumented_repetition
    assert phases is not None and phases.captured and [p.phase for p in phases.parts] == ["pivot", "panels", "rest"]
    assert all(p.seconds > 0 for p in phases.parts)
    assert sum(p.relaxations for p in phases.parts) == 1024**3


def test_an_illegal_address_ends_the_worker_and_is_named():
    code = """
import numpy as np
from numba import cuda
from fwtui.measure.worker import diagnose
@cuda.jit
def wild(a):
    a[1 << 40] = 1
try:
    wild[1, 32](cuda.device_array(4, np.int32)); cuda.synchronize()
except Exception as error:
    print(diagnose(error))
"""
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120)
    assert "'cuda'" in answer.stdout and "True)" in answer.stdout, answer


def test_live_worker_killed_while_the_gpu_works():
    from fwtui.live.session import Live

    live = Live()
    try:
        big = settle(Experiment(kernel="naive", n=8192, repeats=3, verify="off"))
        for _ in range(3):
            live.start(live.settled(big))
            end = time.monotonic() + 60
            while time.monotonic() < end and (live.model.run is None or live.model.run.stage not in ("warm-up", "clean")):
                live.drain()
                time.sleep(0.02)
            os.kill(live.worker.child.pid, 9)  # type: ignore[union-attr]
            killed = time.monotonic()
            while live.busy and time.monotonic() < killed + 5:
                live.drain()
                time.sleep(0.01)
            assert live.model.fault is not None and time.monotonic() - killed < 0.5
        live.start(live.settled(settle(Experiment(kernel="katz-kider", n=512, repeats=2))))
        end = time.monotonic() + 120
        while live.busy and time.monotonic() < end:
            live.drain()
            time.sleep(0.02)
        assert live.model.run is not None and live.model.run.verified
        assert live.model.gpu is not None and live.model.gpu.peak_bytes_per_second
        assert any(r.gpu_power_watts for r in live.model.telemetry)
    finally:
        live.close()


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_compute_sanitizer_is_clean(tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    answer = subprocess.run(
        [sanitizer, "--tool", tool, "--error-exitcode", "99", sys.executable, str(SMALL), "9", "70"],
        capture_output=True,
        text=True,
        timeout=540,
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    assert "0 errors" in answer.stdout or "0 hazards" in answer.stdout, answer.stdout[-2000:]
