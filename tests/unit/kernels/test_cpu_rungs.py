"""Options of the CPU kernels: data order, cores, vector instructions."""

import os
import platform
import re
import sys
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from path_checks import floyd_warshall
from processes import run_python

from fwtui_kernels import k20_tiled_cpu, registry
from fwtui_kernels.compiled import cpu_vectors
from fwtui_kernels.compiled.cpu_vectors import REGISTERS, ROWS, rows, vector_bytes, width_of
from fwtui_kernels.plan import NO_EDGE, Kernel, Shape, Target

TILED = registry()["tiled-cpu"]
SERIAL = registry()["serial"]
# two of the eight have every choice
CHOICES = [
    pytest.param(
        dict(zip(("order", "cores", "vector"), values, strict=True)), marks=() if sum(values) in (0, 3) else pytest.mark.slow
    )
    for values in product((0, 1), repeat=3)
]
PACKED = re.compile(r"\bv?(addps|minps|padd[wd]|pmins[wd])\b")


def graph(n: int, dtype: str, negative: bool = False) -> np.ndarray:
    random = np.random.default_rng(n)
    matrix = np.full((n, n), NO_EDGE[dtype], dtype)
    weights = random.integers(1, 17, (n, n))
    if negative:
        height = random.integers(0, 16, n)
        weights = weights + height[:, None] - height[None, :]
    edge = random.random((n, n)) < 0.1
    matrix[edge] = weights[edge]
    np.fill_diagonal(matrix, 0)
    return matrix


def made(n: int, tile: int, dtype: str, **options: int) -> tuple[Shape, Any]:
    shape = Shape(n, tile, dtype, options=tuple(sorted({**{o.name: o.default for o in TILED.options}, **options}.items())))
    return shape, TILED.build(shape, Target("cpu"))


def solved(matrix: np.ndarray, tile: int, **options: int) -> np.ndarray:
    shape, program = made(len(matrix), tile, matrix.dtype.name, **options)
    buffers = program.allocate()
    program.load(matrix, buffers, None)
    for step in TILED.plan(shape, False):
        program.launch(step, buffers, None)
    return program.unload(buffers, None)


@pytest.mark.parametrize("kernel", [TILED, SERIAL], ids=lambda kernel: kernel.id)
def test_another_run_compiles_nothing_again(kernel: Kernel) -> None:
    first, second = (
        cast(Any, kernel.build(Shape(n, tile, options=kernel.defaults), Target("cpu"))) for n, tile in ((20, 16), (90, 32))
    )
    for op, run in first.ops.items():
        assert getattr(run, "func", run) is getattr(second.ops[op], "func", second.ops[op])


@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_every_choice_gives_the_same_distances(chosen: dict[str, int]) -> None:
    # the scalar loop is compiled for integers of one size only, below
    narrow = ("int16",) if chosen["vector"] else ()
    for n in (1, 15, 16, 17, 50):
        for matrix in (graph(n, "float32"), graph(n, "float32", negative=True), *(graph(n, dtype) for dtype in narrow)):
            np.testing.assert_array_equal(solved(matrix, 16, **chosen), floyd_warshall(matrix))


def test_tile_by_tile_means_each_tile_lies_together() -> None:
    shape, program = made(7, 4, "int32", order=1)
    matrix = np.arange(49, dtype=np.int32).reshape(7, 7)
    buffers = program.allocate()
    program.load(matrix, buffers, None)
    padded = np.full((8, 8), NO_EDGE["int32"], np.int32)
    padded[:7, :7], padded[7, 7] = matrix, 0
    tiles = [padded[i : i + 4, j : j + 4] for i in (0, 4) for j in (0, 4)]
    for buffer in buffers:
        assert buffer.flags.c_contiguous and buffer.size == shape.padded**2
        np.testing.assert_array_equal(buffer.ravel(), np.concatenate([t.ravel() for t in tiles]))
    np.testing.assert_array_equal(program.unload(buffers, None), matrix)
    _, program = made(7, 4, "int32", order=0)
    buffers = program.allocate()
    program.load(matrix, buffers, None)
    np.testing.assert_array_equal(buffers[0], padded)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the names of packed instructions are those of x86")
@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("int32", "int16"))])
def test_the_scalar_loop_has_no_vector_instruction_and_the_other_has(dtype: str) -> None:
    from numba import njit

    made(16, 16, dtype)
    module: Any = k20_tiled_cpu
    tile, row = np.zeros((16, 16), dtype), np.zeros(16, dtype)
    # compiled anew: what comes from the disk cache shows no assembly
    scalar: Any = njit(module.relax_row_scalar.py_func)
    scalar(row, tile, row.copy(), np.ones(1, np.uint64))
    vector: Any = njit(module.relax.py_func)
    vector(tile, 0, 0, tile, 0, 0, tile.reshape(1, -1).copy(), 16, 16, 16, width_of(tile.itemsize, 16), 0)
    (plain,), (packed,) = scalar.inspect_asm().values(), vector.inspect_asm().values()
    assert not PACKED.findall(plain) and PACKED.findall(packed)


def register_block(dtype: str, width: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the compiled product of columns 64..127 with a 64 x width strip into columns 0..width - 1, and two operands."""
    from numba import njit

    relax_registers: Any = cpu_vectors.relax_registers

    @njit
    def block(own, strip):
        relax_registers(own, 0, 0, own, 0, 64, strip, 0, 64, width, 0)

    random = np.random.default_rng(width)
    return block, random.integers(0, 1000, (ROWS, 128)).astype(dtype), random.integers(0, 1000, (1, 64 * width)).astype(dtype)


# each is compiled anew; the others wait for -m slow
@pytest.mark.parametrize(
    ("dtype", "width"),
    [
        pytest.param(*case, marks=() if case in {("float32", 8), ("int16", 32)} else pytest.mark.slow)
        for case in product(("float32", "int32", "int16"), (8, 16, 32, 64))
        if case[1] <= width_of(np.dtype(case[0]).itemsize, 64)
    ],
)
def test_a_block_of_registers_is_a_product_on_any_vector_width(dtype: str, width: int) -> None:
    block, own, strip = register_block(dtype, width)
    wanted = own.copy()
    wanted[:, :width] = np.minimum(own[:, :width], (own[:, 64:, None] + strip.reshape(1, 64, width)).min(axis=1))
    block(own, strip)
    np.testing.assert_array_equal(own, wanted)


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_a_task_of_the_rest_is_as_large_as_the_cache_and_the_threads_allow(threads: int) -> None:
    for tile in (16, 64, 128):
        for side in (1, 3, 8, 33, 64):
            group = k20_tiled_cpu.group_of(side, tile, threads)
            assert group == 1 or (group * tile <= k20_tiled_cpu.GROUP and (side // group) ** 2 >= k20_tiled_cpu.TASKS * threads)


def test_the_width_fits_the_tile_and_every_vector_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    units = (({"avx512bw": True, "avx2": True}, 64, 8), ({"avx2": True}, 32, 4), ({"neon": True}, 16, 8), ({}, 16, 4))
    for features, size, expected_rows in units:
        monkeypatch.setattr(cpu_vectors.binding, "get_host_cpu_features", lambda features=features: features)
        assert vector_bytes() == size and rows() == expected_rows
        for itemsize in (2, 4):
            assert width_of(itemsize, 128) == REGISTERS * size // itemsize in (8, 16, 32, 64)
            assert width_of(itemsize, 16) == min(16, REGISTERS * size // itemsize)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the names of packed instructions are those of x86")
@pytest.mark.parametrize(
    ("dtype", "minimum"),
    [("float32", "minps"), *(pytest.param(*more, marks=pytest.mark.slow) for more in (("int16", "pminsw"), ("int32", "pminsd")))],
)
def test_minima_are_kept_in_registers_until_the_last_k(dtype: str, minimum: str) -> None:
    block, own, middle = register_block(dtype, width_of(np.dtype(dtype).itemsize, 64))
    block(own, middle)
    # a stored minimum would stand beside a store in the loop; whole vectors are stored in the end alone
    (assembly,) = block.inspect_asm().values()
    loops = [body for body in loops_of(assembly) if minimum in body]
    assert loops and all(not re.search(r"v?mov\w*\s+%[xyz]mm\d+, *[-\d]*\(", body) for body in loops)


def loops_of(assembly: str) -> list[str]:
    """Return the lines between each label and the jump back to it."""
    lines = assembly.splitlines()
    labels = {line.rstrip(":"): at for at, line in enumerate(lines) if re.fullmatch(r"\.\w+:", line)}
    jumps = [(at, m[1]) for at, line in enumerate(lines) if (m := re.match(r"\s+j\w+\s+(\.\w+)", line))]
    return ["\n".join(lines[labels[to] : at]) for at, to in jumps if labels.get(to, at) < at]


def test_one_core_starts_none_of_numbas_threads() -> None:
    code = """
import numba, numpy as np
from test_cpu_rungs import graph, solved
solved(graph(40, "float32"), 16, cores=0)
try:
    print(numba.threading_layer())
except ValueError:
    print("none")
"""
    path = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    assert run_python(code, PYTHONPATH=path) == "none\n"
