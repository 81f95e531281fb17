"""What only a GPU can tell of its limits, and of other packages beside it. Run on a machine with one: pytest -m gpu."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fwtui.experiment.experiment import Experiment
from fwtui.machine import hardware
from fwtui.stream import events

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]


def test_the_limits_of_this_gpu_are_plausible(engine: Any) -> None:
    """The probes compare their results with NumPy's themselves."""
    from fwtui.measure.probe import measure
    from fwtui_kernels.probes.probe_forms import forms_of

    told: list[events.Limits] = []
    measure(engine, told.append, lambda: 0.0)
    last = told[-1]
    rates = {f.form: f.relaxations_per_second or 0.0 for f in last.forms}
    assert last.complete and set(rates) == {form.key for form in forms_of("cuda", engine.target.cc)}
    gpu = hardware.gpus().gpus[0]
    clocks = [f.clock_mhz or 0.0 for f in last.forms]
    assert all(200 < clock < 1.05 * (gpu.max_clock_mhz or 4000) for clock in clocks), clocks
    # 64 lanes a clock and multiprocessor take minima in every generation that is supported, and nothing takes more than 256
    per_clock = {f.form: rates[f.form] / (f.clock_mhz or 1.0) / 1e6 / engine.target.multiprocessors for f in last.forms}
    assert all(15 < lanes < 256 for lanes in per_clock.values()), per_clock
    if engine.target.cc == (9, 0):
        assert 0.9 * 64 < per_clock["int32"] < 1.02 * 64, "an addition with a minimum is one instruction, 64 of them a clock"
    if engine.target.cc >= (9, 0):
        assert rates["int16"] > 1.7 * rates["int32"] and rates["float32-two"] > 1.05 * rates["float32"]
    assert last.copy_bytes_per_second and gpu.peak_bytes_per_second
    assert 0.4 * gpu.peak_bytes_per_second < last.copy_bytes_per_second <= 1.02 * gpu.peak_bytes_per_second


@pytest.mark.parametrize("peer", ["cupy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int16"])
def test_a_peer_on_the_gpu_is_timed_in_our_stream_and_right(engine: Any, peer: str, dtype: str) -> None:
    pytest.importorskip(peer)
    from small_runs import ran

    run = ran(engine, Experiment(kernel=peer, n=500, dtype=dtype, repeats=3, verify="full"), brief=True).runs[1]
    assert run.verified and run.done is not None and run.done.outcome == "done"
    # a kernel that ran in another stream would seem to take no time: n launches of a pass over 500 KB take microseconds each
    assert run.done.median and run.done.median > 500 * 1e-6


def test_bench_and_tune_work_on_this_gpu(tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "XDG_DATA_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    def fwtui(*words: str) -> list[Any]:
        command = [sys.executable, "-P", "-m", "fwtui", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    trials = fwtui("tune", "--json", "-n", "512", "--dtype", "int32", "--seconds", "60")
    best = min((t for t in trials if t["seconds"]), key=lambda t: t["seconds"])
    (told,) = fwtui("bench", "--json", "-n", "512", "--dtype", "int32", "--rounds", "2", "--seconds", "120")
    auto = next(r for r in told["results"] if r["auto"] == "measured here")
    assert (auto["kernel"], auto["tile"] or 0) == (best["kernel"], best["tile"])
    assert all(r["verified"] for r in told["results"]) and len({r["checksum"] for r in told["results"]}) == 1
    assert all(0 < r["share_of_limit"] < 1.02 for r in told["results"])
    assert {"GPU", "CPU"} == {"GPU" if r["backend"] == "cuda" else "CPU" for r in told["results"]}
