"""`solve` with CUDA kernels: in Numba's simulator, in a process of its own, as numba chooses it when it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fwtui
from fwtui.errors import NoGpu, Refused
from fwtui.solving import device

ROOT = Path(__file__).resolve().parents[2]

SIMULATED = """
import numpy as np
from scipy.sparse.csgraph import NegativeCycleError, shortest_path
from fwtui.graphs.objects import accept
from fwtui.measure.host_engine import HostEngine
from fwtui.solving.solver import answer
from kernels.device import SIM, cuda
from kernels.plan import Target
assert SIM
engine = HostEngine(Target("simulator"), cuda.stream())
rng = np.random.default_rng(4)
for n, low, kernel in ((5, 1, "auto"), (9, 1, "katz-kider"), (9, -2, "staged-load"), (1, 1, "naive")):
    matrix = np.where(rng.random((n, n)) < 0.5, rng.integers(1, 30, (n, n)), np.inf)
    lift = rng.integers(0, 20, n) * (low < 0)
    matrix += lift[:, None] - lift[None, :]
    np.fill_diagonal(matrix, 0)
    told = []
    result = answer(accept(matrix), kernel=kernel, predecessors=True, engine=engine, tell=told.append)
    expected, before = shortest_path(matrix, return_predecessors=True, method="FW")
    assert (result.distances == expected).all() and ((result.predecessors >= 0) == (before >= 0)).all()
    stats = result.stats
    assert stats.device == "simulator" and (kernel == "auto" or stats.kernel == kernel)
    assert stats.dtype == ("int32" if low < 0 else "int16") and {"compile", "copy in", "kernels"} <= set(stats.seconds)
    assert told and told == sorted(told)
try:
    answer(accept(np.array([[0, 1.0], [-2, 0]])), engine=engine)
except NegativeCycleError as error:
    print("cycle", error)
"""


def test_cuda_kernels_answer_too() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", SIMULATED],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "the graph has a negative cycle" in done.stdout


class TestChoice:
    def test_no_gpu_is_no_reason_to_fail_unless_one_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(index: int) -> None:
            raise RuntimeError("no driver\nin many lines")

        monkeypatch.setattr(device, "_cuda_engine", none)
        monkeypatch.setattr("fwtui.hardware.driver_present", lambda: True)
        assert device.engine_for(None, 5000, needed=False) is None
        assert device.engine_for("cpu", 5000, needed=False) is None
        for asked, needed in ((0, False), ("1", False), (None, True)):
            with pytest.raises(NoGpu, match=r"cannot be used \(no driver\); run `fwtui doctor`"):
                device.engine_for(asked, 5, needed)
        with pytest.raises(Refused, match="'cpu' is not the one"):
            device.engine_for("cpu", 5, needed=True)

    def test_small_graphs_stay_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(device, "_cuda_engine", lambda index: pytest.fail("it was started"))
        monkeypatch.setattr("fwtui.hardware.driver_present", lambda: True)
        assert device.engine_for(None, device.WORTH - 1, needed=False) is None
        monkeypatch.setattr("fwtui.hardware.driver_present", lambda: False)
        assert device.engine_for(None, device.WORTH, needed=False) is None

    def test_every_type_has_a_kernel(self) -> None:
        for dtype in ("int16", "int32", "float32"):
            assert dtype in device.fastest(dtype).dtypes

    def test_refusals_of_the_library(self) -> None:
        import numpy as np

        with pytest.raises(Refused, match="'fastest one' is not the one for it"):
            fwtui.solve(np.ones((2, 2)), device="fastest one")
