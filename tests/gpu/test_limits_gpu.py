"""Peak rates of a real GPU, and the benchmark against other packages: pytest -m gpu."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT

from fwtui.machine import hardware
from fwtui.stream import events

pytestmark = pytest.mark.gpu


def test_the_limits_of_this_gpu_are_plausible(engine: Any) -> None:
    """Their results need no check here: the probes compare them with NumPy's."""
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


def run_python(folder: Path, *words: str) -> str:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run([sys.executable, "-P", *words], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_and_packages_are_timed_in_turns_and_right(tmp_path: Path) -> None:
    printed = run_python(
        tmp_path, str(ROOT / "tests" / "benchmarks" / "peers.py"), "-n", "512", "--rounds", "2", "--dtype", "int32"
    )
    assert "look-ahead" in printed and "scipy" in printed and "INCORRECT" not in printed
