"""Inner loops of compiled CPU functions, found in their assembly."""

from typing import Any, cast

import numpy as np
import pytest

from fwtui.engine.engine import HostEngine
from fwtui.engine.kernel_instance import load_kernel
from fwtui.measure.cpu_loops import Loop, executed_loop, inner_loop, inner_loops
from fwtui_kernels import registry
from fwtui_kernels.compiled.numba_internals import assembly
from fwtui_kernels.plan import ITEMSIZE, Shape, Target

# a vector loop inside another loop, and its rest, of which each relaxation is a comparison and a jump
X86 = """
relax:
.LBB0_1:
\txorl\t%eax, %eax
.LBB0_2:
\tvaddps\t(%rdi,%rax,4), %zmm0, %zmm1
\tvcmpltps\t(%rsi,%rax,4), %zmm1, %k1
\tvmovups\t%zmm1, (%rsi,%rax,4) {%k1}
\taddq\t$16, %rax
\tcmpq\t%rax, %rcx
\tjne\t.LBB0_2
.LBB0_3:
\tvaddss\t(%rdi,%rax,4), %xmm0, %xmm1
\tvucomiss\t%xmm1, (%rsi,%rax,4)
\tjbe\t.LBB0_3
\tdecq\t%rdx
\tjne\t.LBB0_1
\tretq
"""
ARM = """
relax:
.LBB0_1:
\tldp\tq1, q2, [x0], #32
\tadd\tv1.8h, v1.8h, v0.8h
\tsmin\tv1.8h, v1.8h, v2.8h
\tstr\tq1, [x1], #16
\tcmp\tx1, x2
\tb.ne\t.LBB0_1
\tret
"""
AVX2 = (
    "\n.LBB1_7:\n\tvpaddd\t%ymm0, %ymm1, %ymm1\n\tvpminsd\t%ymm1, %ymm2, %ymm2\n\tvpminsd\t%ymm1, %ymm3, %ymm3\n\tjb\t.LBB1_7\n"
)
NONE = "\n.LBB1_7:\n\tmovq\t(%rax), %rcx\n\taddq\t$8, %rax\n\tjne\t.LBB1_7\n"


@pytest.mark.parametrize(
    ("text", "lanes", "bits", "relaxations", "instructions"),
    [(X86, 16, 32, 16, 6), (ARM, 8, 16, 8, 6), (AVX2, 8, 32, 16, 4)],
    ids=["x86", "arm", "avx2"],
)
def test_the_loop_of_most_relaxations_is_found(text: str, lanes: int, bits: int, relaxations: int, instructions: int) -> None:
    loop = inner_loop(text)
    assert loop is not None
    assert (*loop[:3], sum(loop.mix.values())) == (lanes, bits, relaxations, instructions)
    assert inner_loop(NONE) is None and inner_loop("") is None
    assert inner_loop(AVX2.replace("\tjb", "\tretq\n\tjb")) is None, "a jump back over a return is not a loop"
    assert inner_loop(text, most=4) == (Loop(1, 32, 1, {"vaddss": 1, "vucomiss": 1, "jbe": 1}) if text == X86 else None)


def copied(distance, k):
    row_k = distance[k].copy()
    for i in range(len(distance)):
        to_k = distance[i, k]
        for j in range(len(distance)):
            distance[i, j] = min(distance[i, j], to_k + row_k[j])


def looped(d, first, last):
    for k in range(first, last):
        for i in range(len(d)):
            for j in range(len(d)):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_a_vector_loop_that_a_check_for_overlapping_rows_skips_is_not_the_inner_loop(dtype: str) -> None:
    import numba

    with load_kernel(registry()["serial"], Shape(70, 1, dtype), HostEngine(Target("cpu"))) as it:
        _, serial = next(inner_loops(it, cached=False))
    loop = executed_loop(*assembly(numba.njit(copied), np.ones((70, 70), np.float32), 3), 256)
    assert loop is not None and loop.lanes > 1 and not loop.skipped, "a copy of row k cannot overlap"
    assert serial.lanes == 1 and serial.skipped == loop.lanes * 4 // ITEMSIZE[dtype], "row k is one of the written rows"
    if dtype == "float32":
        loop = executed_loop(*assembly(numba.njit(looped), np.ones((70, 70), np.float32), 0, 64), 256)
        assert loop is not None and (loop.lanes, loop.skipped) == (1, serial.skipped), "also if the function has the loop over k"


def test_cached_code_is_shown_like_new_code(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lower.py").write_text("def lower(row, *b):\n    for j in range(row.size):\n        row[j] = min(row[j], b[0])\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import numba
    from lower import lower  # pyright: ignore[reportMissingImports]

    row, one = np.ones(100, np.float32), np.float32(1)
    fresh, again = (numba.njit(cache=True)(lower) for _ in range(2))
    fresh(row, one)
    again(row, one)
    assert cast("Any", again).stats.cache_hits, "it came from the disk"
    loop = executed_loop(*assembly(fresh, row, one), 256)
    assert loop is not None and loop == executed_loop(*assembly(again, row, one), 256)
    assert assembly(len, row) == ("", ""), "no code of numba's"
