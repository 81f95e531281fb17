"""Kernels on the disk are loaded without the compiler, and damaged ones compiled again; for a GPU that is not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from types import SimpleNamespace
from numba.cuda import dispatcher, types
from numba.cuda.cudadrv import devices

context = SimpleNamespace(device=SimpleNamespace(compute_capability=(9, 0), id=0))
devices.get_context = lambda *_: context
dispatcher.get_current_device = lambda: context.device
dispatcher._Kernel.bind = lambda kernel: kernel._codelibrary.get_cubin()

from fwtui.solver.launching import compiled
with compiled():
    from fwtui.solver.graph_kernels import diagonal
before = set(sys.modules)
kernel = diagonal.compile((types.Array(types.int32, 2, "C"), types.int32, types.Array(types.float64, 1, "C")))
found = sum(diagonal._cache_hits.values())
cubin = kernel._codelibrary.get_cubin().code
imported = len(set(sys.modules) - before)
from fwtui_kernels.compiled import cubin_cache
from fwtui.common.environment import cache_folder
types = "array(int32, 2d, C)", "int32", "array(float64, 1d, C)"
kept = cubin_cache.load(cubin_cache.folder(cache_folder()), cubin_cache.key(diagonal, {"cache": True}, types, (9, 0)))
assert kept.cubin == cubin and kept.entry.encode() in cubin
print(json.dumps([found, imported, len(cubin)]))
"""


def test_a_kernel_is_found_without_the_compiler_and_damage_is_mended(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    pytest.importorskip("cuda.core")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "NUMBA_ENABLE_CUDASIM": "0"}
    environment.pop("NUMBA_CACHE_DIR", None)

    def loaded() -> tuple[int, int, int]:
        done = subprocess.run([sys.executable, "-P", "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return tuple(json.loads(done.stdout))

    found, imported, size = loaded()
    assert (found, imported > 100) == (0, True), "the first process compiles it"
    for kept in (*tmp_path.rglob("loaded/*"), *tmp_path.rglob("*diagonal*.nb[ci]")):
        kept.write_bytes(kept.read_bytes()[:40])
    assert loaded()[0] == 0, "damaged"
    for kept in tmp_path.rglob("loaded/*"):
        kept.write_bytes(kept.read_bytes()[:40])
    assert loaded() == (1, 0, size), "replaced, and found; what is kept for processes without numba is mended too"
