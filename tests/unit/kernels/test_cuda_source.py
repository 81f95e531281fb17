"""Kernels in CUDA C++, compiled for GPUs that this machine lacks."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from compiled_off_gpu import need_compiler

import fwtui_kernels
from fwtui_kernels.own import UserKernelError, check, load
from fwtui_kernels.plan import Kernel, Shape, Target

need_compiler()

EXAMPLES = Path(fwtui_kernels.__file__).parent / "examples"
HOPPER, AMPERE = Target("cuda", (9, 0), multiprocessors=132), Target("cuda", (8, 0), multiprocessors=108)


def used(kernel: Kernel, dtype: str, target: Target = HOPPER, **options: int) -> dict[str, Any]:
    shape = Shape(100, kernel.default_tile, dtype, options=tuple(options.items()))
    program: Any = kernel.build(shape, target)
    return {name: op.function.used for name, op in program.ops.items()}


def copied(folder: Path, *changes: tuple[str, str], name: str = "one_thread", to: str = ".cu") -> Kernel:
    """Return the example as a user kernel with replaced texts in its source."""
    for suffix in (".cu.py", ".cu"):
        shutil.copy(EXAMPLES / f"{name}{suffix}", folder / f"mine{suffix}")
    text = (folder / f"mine{to}").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / f"mine{to}").write_text(text)
    return load(folder / "mine.cu.py", "mine")


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("one_thread", {"relax": 0}),
        ("tile_32", {"pivot": 32 * 32, "panels": 2 * 32 * 32, "rest": 2 * 32 * 32}),
        pytest.param("tile_64", {"pivot": 64 * 64, "panels": 2 * 64 * 64, "rest": 2 * 64 * 64}, marks=pytest.mark.slow),
    ],
)
def test_the_examples_compile_for_every_type_without_spills(name: str, shared: dict[str, int]) -> None:
    path = EXAMPLES / f"{name}.cu.py"
    kernel = load(path, name)
    check(kernel, path)
    for dtype, target in (("float32", HOPPER), ("int32", AMPERE), ("int16", HOPPER)):
        cell = 2 if dtype == "int16" else 4
        found = used(kernel, dtype, target)
        assert {op: of.shared_bytes for op, of in found.items()} == {op: cells * cell for op, cells in shared.items()}
        assert all(8 <= of.registers <= 64 and of.spill_bytes == of.stack_bytes == 0 for of in found.values())


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("distance[k * n", "distanse[k * n", 'mine.cu:10:80: identifier "distanse" is undefined: distance[i * n + j] = min(dis'),
        ("int i = blockIdx.y", "int i = blockIdx.y,", 'mine.cu:8:35: expected a ";": int i = blockIdx.y, * blockDim.y'),
        ("// Each", '#include "helper.h"\n// Each', 'mine.cu:1:20: cannot open source file "helper.h": #include "helper.h"'),
        ("    int i = ", "\tint i = nothing + nowhere + ", 'mine.cu:8:10: identifier "nothing" is undefined: int i = nothing'),
        (
            "void relax",
            "void relaxed",
            "mine.cu has no function relax<float>, which build launches; its __global__ functions",
        ),
        ("// Each", "#include <stdio.h>\n// Each", 'mine.cu:1:19: cannot open source file "stdio.h"; NVRTC compiles only'),
        ("// Each", "int main() { return 0; }\n// Each", "mine.cu:1:5: A function without execution space annotations"),
    ],
)
def test_compiler_errors_are_reported_with_line_and_column(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    kernel = copied(tmp_path, (old, new))
    with pytest.raises(UserKernelError) as wrong:
        used(kernel, "float32")
    assert str(wrong.value).startswith(sentence) and str(tmp_path) not in str(wrong.value) and "\n" not in str(wrong.value)


def test_several_errors_are_counted_and_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    kernel = copied(tmp_path, ("n + k] +", "n + kk] +"), ("distance[k", "distance[kk"), ("if (i < n", "if (ii < n"))
    with pytest.raises(
        UserKernelError, match=r'^mine\.cu:9:9: identifier "ii" is undefined: if \(ii < n && j < n\) \(and 1 more\)$'
    ):
        used(kernel, "float32")
    kernel = copied(tmp_path)
    (tmp_path / "mine.cu").unlink()
    with pytest.raises(UserKernelError, match=r"^mine\.cu cannot be read: no such file or directory$"):
        used(kernel, "float32")


def test_tile_options_and_what_is_defined_are_macros_and_folders_are_included(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "cells.h").write_text("const int CELLS = TILE * WIDTH * FACTOR;\n")
    (tmp_path / "mine.cu").write_text(
        '#include "cells.h"\n#include <cuda_fp16.h>\n'
        "#ifndef __CUDACC_RTC__\n#include <cstdio>\nint main() { return 0; }\n#endif\n"
        'extern "C" __global__ void relax(NUMBER *d, int n) { __shared__ NUMBER s[CELLS]; '
        "for (int i = 0; i < CELLS; i++) s[i] = d[i + n]; __syncthreads(); d[threadIdx.x] = s[threadIdx.x]; }\n"
    )
    (tmp_path / "mine.cu.py").write_text(
        "from fwtui_kernels.own import own\nfrom fwtui_kernels.parts import blocked\nfrom fwtui_kernels.plan import Option\n"
        "def build(shape, target):\n"
        "    from fwtui_kernels.programs.cuda_source import Launch, program\n"
        "    relax = Launch('relax', (32, 1), lambda args: (1, 1))\n"
        "    return program(shape, target, __file__, {'relax': relax}, include=['parts'], define={'FACTOR': 3})\n"
        "KERNEL = own(blocked.plan, build, tiles=(4, 8), default_tile=8, options=(Option('width', (1, 2), 2, 'w'),))\n"
    )
    kernel = load(tmp_path / "mine.cu.py", "mine")
    assert used(kernel, "float32", width=2)["relax"].shared_bytes == 8 * 2 * 3 * 4
    assert used(kernel, "int16", width=1)["relax"].shared_bytes == 8 * 1 * 3 * 2


def test_spills_and_registers_are_reported(tmp_path: Path) -> None:
    bounds = ("__global__ void relax", "__global__ void __launch_bounds__(1024, 2) relax")
    many = "T a[64]; for (int q = 0; q < 64; q++) a[q] = distance[q * n]; __syncthreads(); "
    many += "for (int q = 0; q < 64; q++) for (int r = 0; r < 64; r++) distance[q] += a[q] * a[r] + a[(q * r) & 63];"
    kernel = copied(tmp_path, bounds, ("    if (i < n && j < n)", f"    {many}\n    if (i < n && j < n)"))
    found = used(kernel, "float32")["relax"]
    assert found.registers <= 32 and found.spill_bytes + found.stack_bytes > 0
