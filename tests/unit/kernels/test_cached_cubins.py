"""Compiled kernels on the disk: without a launch a program finds exactly those that a launch takes."""

import json
import os
from pathlib import Path

from processes import run_python

UNIT = Path(__file__).resolve().parents[1]
# names the kernels whose launches look for other files than cached_cubins()
SCRIPT = """
import json
import fake_cuda_core
fake_cuda_core.install()
fake_cuda_core.all_kernels_kept()
from fwtui_kernels import registry
from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.plan import Shape, Target
from fwtui_kernels.programs.cuda_program import cached_cubins

load, names, stream = cubin_cache.load, set(), fake_cuda_core.Stream()
cubin_cache.load = lambda place, name: (names.add(name), load(place, name))[1]
other, found = [], {}
for kernel in registry().values():
    if kernel.backend != "cuda":
        continue
    for dtype in kernel.dtypes:
        tile = kernel.tile_for(0) or 1
        shape = Shape(4 * tile if tile > 1 else 32, tile, dtype, options=tuple(sorted(kernel.defaults)))
        program = kernel.build(shape, Target("cuda", (9, 0), multiprocessors=132))
        plan = list(kernel.plan(shape, False))
        names.clear()
        cubins = len(list(cached_cubins(program, plan, (9, 0))))
        ahead = {*names}
        names.clear()
        buffers = program.allocate()
        for step in {step.op: step for step in plan}.values():
            program.launch(step, buffers, stream)
        found[kernel.id] = cubins
        if ahead != names:
            other.append([kernel.id, dtype, len(ahead), len(names)])
print(json.dumps([other, found]))
"""


def test_a_launch_looks_for_the_code_that_is_found_without_it(tmp_path: Path) -> None:
    path = os.pathsep.join((str(UNIT.parents[1]), str(UNIT.parents[1] / "kernels"), str(UNIT)))
    other, found = json.loads(run_python(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=path))
    assert other == [] and found["look-ahead"] == 4 and found["naive"] == 1
