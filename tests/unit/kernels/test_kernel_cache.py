"""A kernel is compiled once, for a GPU that is not here; other processes load it without numba, and damage is mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from fwtui.solver.launching import compiled
from fwtui_kernels.compiled import cubin_cache
with compiled():
    from fwtui.solver.graph_kernels import diagonal
    types = "array(int32, 2d, C)", "int32", "array(float64, 1d, C)"
    code = cubin_cache.found_or_compiled(diagonal, types, (9, 0))
assert code.entry.encode() in code.cubin and not code.cooperative
print(json.dumps(["numba" in sys.modules, len(code.cubin)]))
"""


def test_a_kernel_is_compiled_once_and_damage_is_mended(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cuda.core")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "NUMBA_ENABLE_CUDASIM": "0"}
    environment.pop("NUMBA_CACHE_DIR", None)

    def found() -> tuple[bool, int]:
        done = subprocess.run([sys.executable, "-P", "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return tuple(json.loads(done.stdout))

    compiling, size = found()
    assert compiling and found() == (False, size), "the first process compiles it, the next one loads it"
    (kept,) = tmp_path.rglob("loaded/*")
    kept.write_bytes(kept.read_bytes()[:40])
    assert found()[0] and found() == (False, size), "replaced"
