"""User kernels compiled for a GPU that this machine lacks."""

import re
from pathlib import Path

import pytest
from data.broken_kernels import edits

import fwtui_kernels
from fwtui.commands.new import python
from fwtui.live.watch_events import compile_kernel
from fwtui.measure.compile_process import rewrites
from fwtui.stream.kernel_tests import CompileRequest
from fwtui_kernels.own import files_of

BLOCKED, BY_VERTEX = (edits.FOLDER / name for name in (edits.BLOCKED, edits.BY_VERTEX))
EXAMPLE = Path(fwtui_kernels.__file__).parent / "examples" / "one_thread.cu.py"


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


HEAVY = "float kept[150]; for (int at = 0; at < 150; at++) kept[at] = distance[at * n + k]; __syncthreads(); "
HEAVY += "for (int at = 0; at < 150; at++) distance[(149 - at) * n + k] += kept[at];"
LARGE = "__shared__ T row[16384]; row[k] = distance[n]; __syncthreads(); distance[k] = row[n];"
N, BODY, TO_K = "int n, int k)", "int n, int k)\n{", "to_k = distance[i, k]"
LAUNCHED, MAY_TAKE = "relax is launched with", "bytes of shared memory per block; the maximum is 49,152:"
COMPILES_NOT = "relax does not compile:"
SHARED = "closed = cuda.shared.array(({0}, {0})"
WRONG = [
    (BY_VERTEX, TO_K, "to_k = sorted([distance[i, k]])[0]", rf"mine\.py:31: {COMPILES_NOT} TypingError: .* sorted\(list.*"),
    (EXAMPLE, BODY, "int k)\n{\n    int n = 9;", r"mine\.cu:\d+: relax takes 2 parameters, but .* passes 3: .*"),
    (EXAMPLE, N, N.replace("int n", "long n"), r"mine\.cu:\d+: relax takes parameters of 8, 8, 4 bytes, but .*: 1 pointer, n .*"),
    (
        EXAMPLE,
        "T *distance, " + BODY,
        f"int *cells, {BODY} T *distance = (T *)cells;",
        r"mine\.cu:\d+: relax takes int \*, but .* are float32; .*",
    ),
    (EXAMPLE, BODY, BODY + HEAVY, rf"mine\.cu:\d+: {LAUNCHED} 1024 threads of \d+ registers .*"),
    (EXAMPLE, BODY, BODY + LARGE, rf"mine\.cu:\d+: relax takes 65,536 {MAY_TAKE} .*row\[16384\];.*"),
    (BY_VERTEX, "else 16", "else 64", rf"mine\.py:27: {LAUNCHED} blocks of 64 x 64 threads; a block has 1 to 1024: .*"),
    (BLOCKED, SHARED.format("tile"), SHARED.format(128), rf"mine\.py:\d+: panels takes 69,632 {MAY_TAKE} own = .*"),
    (BY_VERTEX, TO_K, "return distance[i, k]", rf"mine\.py:27: {COMPILES_NOT} TypeError: CUDA kernel must have void return .*"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"), [pytest.param(*of, marks=[pytest.mark.slow] * (at > 0)) for at, of in enumerate(WRONG)]
)
def test_an_impossible_launch_has_its_line(file: Path, old: str, new: str, sentence: str, tmp_path: Path) -> None:
    pytest.importorskip("cuda.core")
    for source in files_of(file):
        text = source.read_text()
        name = f"mine{''.join(source.suffixes)}"
        (tmp_path / name).write_text(text.replace(old, new).replace("block=(32, 8)", "block=(32, 32)"))
    path = str(tmp_path / f"mine{''.join(file.suffixes)}")
    found = compile_kernel(CompileRequest(kernel="mine", path=path, capability=(9, 0)))
    assert found is not None and re.fullmatch(sentence, found.wrong), found


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
def test_stores_within_the_loop_over_k_are_not_in_registers(inside: str, after: str, wanted: bool) -> None:
    assert rewrites(PTX.replace("{inside}", inside).replace("{after}", after)) == wanted
