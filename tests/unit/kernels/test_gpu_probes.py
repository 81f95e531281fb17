"""The GPU probes: their results in the simulator, and their machine instructions."""

import pytest
from in_simulator import in_simulator

from fwtui_kernels.forms import FORMS as INNER_LOOPS
from fwtui_kernels.forms import PLAIN
from fwtui_kernels.probes import probe_cuda

SIMULATED = """
import json, sys
from types import SimpleNamespace
import numpy as np
from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.forms import FORMS
from fwtui_kernels.probes import probe_cuda, probe_forms, probe_reads
from fwtui.measure import probe as limits
assert SIMULATED

def clocked(stream, launch):
    return lambda: launch() or 1e-6

sys.modules["fwtui.engine.cuda_engine"] = SimpleNamespace(event_timer=clocked)
random = np.random.default_rng(3)
right_all = []
for form in range(len(FORMS)):
    source = probe_cuda.packed(form, random.integers(0, 900, 2 * probe_cuda.SLAB))
    cells = probe_cuda.packed(form, random.integers(300, 1500, (probe_cuda.BLOCK, probe_cuda.CELLS)))
    held, clocks = cells.ravel().copy(), np.zeros(1, np.int64)
    probe_cuda.build(form)[1, probe_cuda.BLOCK](held, source, np.int32(0), np.int32(2), clocks)
    right = probe_cuda.expected(form, cells, source)
    right_all += [(held.reshape(right.shape) == right).all(), (right != cells).any(), (right == cells).any()]
print(all(right_all))

def wrong(module, measure):
    right = module.expected
    module.expected = lambda *of: right(*of) + 1
    try:
        measure()
    except limits.ProbeError as error:
        print(error)

limits.SECONDS, limits.TURNS = 0.0, 1
engine = SimpleNamespace(stream=cuda.stream(), target=SimpleNamespace(multiprocessors=1, cc=(9, 0)))
form = next(f for f in probe_forms.FORMS if f.key == "int16-mixed")
rate, clock = limits.cuda_rate(engine, form)
assert rate > 0 and clock == 0, "the simulator has no clock"
wrong(probe_cuda, lambda: limits.cuda_rate(engine, form))
limits.TURNS, engine.target = 4, SimpleNamespace(multiprocessors=3)
for shared, pieces in ((True, probe_reads.NEAR), (False, 8)):
    print(round(limits.cuda_reads(engine, pieces, shared, threads=8)))
wrong(probe_reads, lambda: limits.cuda_reads(engine, 8, False, threads=8))
"""


def test_the_gpus_probes_do_what_numpy_does_and_are_checked_before_their_time_counts() -> None:
    moved = 3 * 8 * 16 * 4 * 10**6  # blocks, threads, bytes, turns; in a microsecond
    assert in_simulator(SIMULATED).splitlines() == [
        "True",
        "the GPU's int16-mixed probe is wrong",
        *[f"{moved}"] * 2,
        "the GPU's probe of the L2 cache is wrong",
    ]


# of 64 cells x 16 k in a turn of the loop: the instructions that one form is made of, each with its count
LOOP = {
    (0, (9, 0)): {"FADD": 1024, "FMNMX": 1024},
    (1, (9, 0)): {"FADD": 1024, "VIMNMX3": 512},
    (2, (9, 0)): {"VIADDMNMX": 1024},
    (3, (9, 0)): {"VIADDMNMX": 688, "VIMNMX3": 168},
    (4, (9, 0)): {"VIADDMNMX.S16x2": 1024},
    (5, (9, 0)): {"VIADDMNMX.S16x2": 688, "VIMNMX3.U16x2": 168},
    (6, (9, 0)): {"DADD": 1024, "FSEL": 2048},
    (0, (8, 0)): {"FADD": 1024, "FMNMX": 1024},
    (2, (8, 0)): {"IMNMX": 1024},
}


LOOPS = [pytest.param(*key, marks=() if key == (5, (9, 0)) else pytest.mark.slow) for key in LOOP]


@pytest.mark.parametrize(("form", "cc"), LOOPS, ids=lambda x: INNER_LOOPS[x].key if isinstance(x, int) else f"sm_{x[0]}{x[1]}")
def test_the_gpu_probe_is_the_instructions_and_nothing_else(form: int, cc: tuple[int, int]) -> None:
    from compiled_off_gpu import compiled, instructions
    from numba import types

    word = types.float32 if form < 2 else types.float64 if form == PLAIN["float64"] else types.int32
    bits = 64 if form == PLAIN["float64"] else 32
    signature = (word[::1], word[::1], types.int32, types.int32, types.int64[::1])
    got = compiled(probe_cuda.build(form).py_func, signature, cc)
    assert (got.stack, got.spills) == (0, 0)
    assert got.registers * probe_cuda.BLOCK * probe_cuda.resident(form) <= 65536
    assert got.shared == 2 * probe_cuda.SLAB * bits // 8
    found = instructions(got.cubin)
    # a row and a column of 8 words take four 128-bit loads for each of 16 k
    expected = {**LOOP[form, cc], "LDS.128": 64 * bits // 32, "LDL": 0, "STL": 0}
    assert {name: found[name] for name in expected} == expected
    if "mixed" in INNER_LOOPS[form].key:
        assert found["IMAD"] >= 336, "the sums of two k are made by the multiply-add pipe"
