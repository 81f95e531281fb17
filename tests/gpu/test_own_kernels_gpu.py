"""The examples in CUDA C++ on a GPU: correct, timed, and reported like a rung."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from small_runs import ran, wrong

import fwtui_kernels
from fwtui.experiment.experiment import Experiment, kernel_named
from fwtui.measure.user_kernel_process import register_here

pytestmark = pytest.mark.gpu
EXAMPLES = Path(fwtui_kernels.__file__).parent / "examples"
SIZES = (1, 31, 32, 33, 64, 65, 257)


@pytest.mark.parametrize("name", ["one_thread", "tile_32", "tile_64"])
def test_every_type_tile_size_and_launch_mode_equals_scipy(engine: Any, name: str) -> None:
    register_here(name, str(EXAMPLES / f"{name}.cu.py"), "")
    kernel = kernel_named(name)
    asked = [Experiment(kernel=name, n=200, dtype="int32", negative=0.3, density=0.1, repeats=2, verify="full")]
    for n, dtype, launch in product(SIZES, kernel.dtypes, kernel.launch_modes):
        for tile in kernel.tiles_for(False, dtype) or (0,):
            asked.append(Experiment(kernel=name, n=n, dtype=dtype, tile=tile, launch=launch, repeats=2, verify="full"))
    assert not wrong(engine, *asked)


def test_a_run_reports_the_compilers_and_the_timers_results(engine: Any) -> None:
    register_here("tile_64", str(EXAMPLES / "tile_64.cu.py"), "")
    run = ran(engine, Experiment(kernel="tile_64", n=1024, repeats=5)).runs[1]
    assert run.verified
    occupancy = {e.op: e for e in run.occupancies}
    assert set(occupancy) == {"pivot", "panels", "rest"}
    rest = occupancy["rest"]
    assert rest.threads == 256 and rest.shared_bytes == 2 * 64 * 64 * 4 and rest.registers > 0 and rest.source == "driver"
    assert run.instrumented_repetition is not None and run.instrumented_repetition.seconds > 0
    assert {part.phase for part in run.instrumented_repetition.parts} == {"pivot", "panels", "rest"}
    assert run.done is not None and run.done.outcome == "done" and run.done.median


def test_a_write_out_of_bounds_is_reported_by_the_gpu(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in a separate process, because the error destroys the CUDA context."""
    for suffix in (".cu.py", ".cu"):
        text = (EXAMPLES / f"one_thread{suffix}").read_text()
        (tmp_path / f"far{suffix}").write_text(text.replace("if (i < n && j < n)", "distance += 1L << 42;\n    if (i < n)"))
    command = [sys.executable, "-P", "-m", "fwtui", "run", "-k", str(tmp_path / "far.cu"), "-n", "64", "--trust"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(EXAMPLES.parents[1]), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text("")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 4 and "outside its memory" in done.stderr
