"""What the compiler makes of the search for predecessors, for real GPUs."""

from __future__ import annotations

import os

import pytest

from fwtui_kernels.forms import FORMS
from fwtui_kernels.paths import few_arcs, short_arcs, trace
from fwtui_kernels.paths.predecessors import BLOCK, PAIRS, SINGLE, Way


@pytest.mark.parametrize("dtype", ["int32", *(pytest.param(t, marks=pytest.mark.slow) for t in ("rounded", "float32", "int16"))])
@pytest.mark.parametrize(("way", "form", "expected"), [
    pytest.param(SINGLE, "int32-mixed", {"VIADDMNMX": 344, "VIMNMX3": 84}, marks=pytest.mark.slow),
    (PAIRS, "int16-mixed", {"VIADDMNMX.S16x2": 344, "VIMNMX3.U16x2": 84}),
], ids=["single", "pairs"])  # fmt: skip
def test_the_search_is_made_of_the_third_phase_s_instructions(way: Way, form: str, expected: dict[str, int], dtype: str) -> None:
    pytest.importorskip("cuda.core", reason="the CUDA compiler wheels are not installed")
    pytest.importorskip("numba.cuda")
    from compiled_off_gpu import compiled, instructions
    from numba import float32, int16, int32

    rounded = dtype == "rounded"
    number = {"int32": int32, "int16": int16}.get(dtype, float32)
    if rounded and way is PAIRS:
        pytest.skip("rounded lengths need all bits")
    search = trace.trace_of(way.cut, [f.key for f in FORMS].index(form), way.none, rounded)
    words, keys = int32[:, ::1], (int16 if way is PAIRS else int32)[:, ::1]
    cells, scale = number[:, ::1], float32 if rounded else int32
    signature = (words, keys, words, int32[::1], cells, cells, words, int32, int32, scale, int32, number, int32)
    got = compiled(search.py_func, signature, (9, 0), way.cut.bounds)
    assert got.spills == 0 and got.registers <= 128 and got.shared < 49152
    assert got.stack == 4 * way.cut.rows * way.cut.columns, "a copy of the results for the looks, and nothing else"
    found = instructions(got.cubin)
    assert {name: found[name] for name in expected} == expected
    assert found["LDS.128"] == 4 * 8 and found["LDGSTS.E.BYPASS.128"] >= 8 and not found["STS"]


@pytest.mark.skipif(os.environ.get("NUMBA_ENABLE_CUDASIM") == "1", reason="the simulator compiles nothing")
@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_what_surrounds_the_search_compiles_for_real_gpus(ends: bool) -> None:
    pytest.importorskip("numba.cuda")
    from numba import float32, int16, int32, int64, uint8

    from fwtui_kernels.compiled import compiler

    line, words = int32[::1], int32[:, ::1]
    for number, scale in ((float32, float32), (int16, int32)) if ends else ((int32, int32), (float32, int32)):
        functions = short_arcs.functions(BLOCK, SINGLE.cut.slab, scale is float32)
        cells = number[:, ::1]
        for function, signature in (
            (functions.lowest, (cells, line, int32, scale, number)),
            *(
                (
                    functions.sift,
                    (cells, cells, line, keys, uint8[:, ::1], line, int32, scale, *[int32] * 2, number, number, int32),
                )
                for keys in (words, int16[:, ::1])
            ),
            (functions.enlist, (uint8[:, ::1], words, line, int32)),
            (functions.weak_arcs, (cells, cells, line, int64[::1], line, line, int32, scale, number, number, int32)),
            (functions.turn, (cells, int32, words, int32, scale, *[int32] * 3, number)),
            (functions.begin, (cells, cells, words, int32, int32, number)),
            (functions.spread, (cells, words, int32, int64[::1], line, int32, scale, number, number)),
            (functions.settle, (cells, cells, words, words, int32, int32, int32, number, number)),
            (functions.unfound, (cells, words, int32, int32, number, uint8[::1])),
        ):
            assert compiler.unlinked(function.py_func, signature, (9, 0))


@pytest.mark.slow
def test_arc_after_arc_reads_four_sources_at_once() -> None:
    pytest.importorskip("cuda.core", reason="the CUDA compiler wheels are not installed")
    pytest.importorskip("numba.cuda")
    from compiled_off_gpu import compiled, instructions
    from numba import int16, int32, int64

    do, words, line = few_arcs, int32[:, ::1], int32[::1]
    for keys in (words, int16[:, ::1]):
        compiled(do.count.py_func, (keys, line, int32, int32), (9, 0))
        compiled(do.gather.py_func, (keys, int64[::1], *[line] * 3, *[int32] * 4), (9, 0))
    got = compiled(do.follow.py_func, (words, int64[::1], line, line, words, *[int32] * 3), (9, 0))
    assert got.spills == 0 and got.stack == 0 and got.registers <= 64, "enough blocks to wait for the cache"
    assert instructions(got.cubin)["LDG.E.128"] >= 2, "what is kept of a vertex, and what is read of each arc"
