"""A kernel of the user's own compiled for a GPU that is not here."""

from __future__ import annotations

from pathlib import Path

import pytest

import fwtui_kernels
from fwtui.commands.new import python
from fwtui.live.compiling import compile_kernel
from fwtui.measure.off_gpu_compile import rewrites
from fwtui.stream.trials import CompileRequest


def test_a_function_that_the_kernel_calls_needs_no_gpu_either(tmp_path: Path) -> None:
    pytest.importorskip("cuda.core")
    text = python(None, "mine")
    sum_of_two = "number(distance[i, k] + distance[k, j])"
    assert text.count(sum_of_two) == 1
    through = f"@jit(device=True)\ndef through(number, distance, i, j, k):\n    return {sum_of_two}\n\n\n"
    text = text.replace(sum_of_two, "through(number, distance, i, j, k)").replace("@jit\n", f"{through}@jit\n")
    (tmp_path / "mine.py").write_text(text)
    found = compile_kernel(CompileRequest(kernel="mine", path=str(tmp_path / "mine.py"), capability=(9, 0)))
    assert found is not None and not found.lacking and not found.wrong
    (used,) = found.used
    assert used.registers > 0 and (used.op, used.phase, used.tile, used.itemsize) == ("relax", "all", 0, 4)


# the parts of PTX that tell: a loop over k in a loop over tiles
PTX = """
$L__BB0_1:
    st.shared.f32 [%r1], %f1;
    bar.sync 0;
$L__BB0_2:
    ld.shared.f32 %f2, [%r2];
    {inside}
    @%p1 bra $L__BB0_2;
    {after}
    @%p2 bra $L__BB0_1;
    ret;
"""


@pytest.mark.parametrize(
    ("inside", "after", "wanted"),
    [
        ("", "st.global.f32 [%rd1], %f3;", False),
        ("st.shared.f32 [%r3], %f3;", "st.global.v4.f32 [%rd1], {%f3};", False),
        ("st.global.f32 [%rd1], %f3;", "", True),
        ("st.f32 [%rd1], %f3;", "", True),
        ("red.global.min.s32 [%rd1], %r3;", "", True),
    ],
)
def test_what_is_written_within_the_loop_over_k_is_not_kept_in_registers(inside: str, after: str, wanted: bool) -> None:
    assert rewrites(PTX.replace("{inside}", inside).replace("{after}", after)) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "wanted"), [("blocked-global", True), ("register-tile", False), ("tile_64", False)])
def test_a_rung_in_global_memory_is_told_from_those_in_registers(kernel: str, wanted: bool) -> None:
    pytest.importorskip("cuda.core")
    example = Path(fwtui_kernels.__file__).parent / "examples" / f"{kernel}.py"
    path = str(example) if example.exists() else ""
    found = compile_kernel(CompileRequest(kernel=kernel, path=path, capability=(9, 0)))
    assert found is not None
    (rest,) = (used for used in found.used if used.phase == "rest")
    assert rest.tile**2 >= 2 * rest.threads and rest.rewrites == wanted
