"""Every CUDA kernel compiled for real GPUs without one: no spills, the expected shared memory, the right instructions."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from compiled_off_gpu import compiled, compiled_op, instructions

from fwtui.analysis.occupancy import REGISTERS
from fwtui.experiment.experiment import Experiment
from fwtui_kernels import registry
from fwtui_kernels.plan import ITEMSIZE, Kernel, Shape, Target

CUDA = [k for k in registry().values() if k.backend == "cuda"]
CAPABILITIES = ((8, 0), (9, 0))
STATIC_SHARED = 48 * 1024
# tiles that each op keeps in shared memory; ops that are not here keep none of a known size
SHARED_TILES: dict[tuple[str, str], float] = {
    ("katz-kider", "pivot"): 1,
    ("katz-kider", "panels"): 2,
    ("katz-kider", "rest"): 3,
    ("optimized", "rest"): 3,
    ("register-tile", "rest"): 2,
    **{(staged, "rest"): 1 / 4 for staged in ("staged-row-major", "staged-natural", "staged-load")},  # two slices of 4 k
    ("naive", "relax"): 0,
}
MINIMUM = re.compile(r"(F|I|VI|VIADD|VHMN|HMN|U?I)MNMX3?(_U?\d+)?|VIMNMX3?|VIADDMNMX")


def shape_of(kernel: Kernel, tile: int, dtype: str, **options: int) -> Shape:
    chosen = {o.name: options.get(o.name, o.default) for o in kernel.options}
    # three tiles a side at least, so that every phase has work
    return Shape(max(100, 2 * tile + 1), tile, dtype, options=tuple(sorted(chosen.items())))


def program_of(kernel: Kernel, shape: Shape, cc: tuple[int, int]) -> tuple[Any, dict[str, int]]:
    """Return the kernel's program, and the number of integer arguments of each op."""
    program: Any = kernel.build(shape, Target("cuda", cc, multiprocessors=1))
    return program, {step.op: len(step.args) for step in kernel.plan(shape, False)}


# each kind of access and of shared memory; what lies between them on the ladder waits for -m slow, as do the largest
TELLING = {"naive", "naive-vector", "katz-kider", "optimized"}
WITH_THREADS = [k for k in CUDA if any(o.name == "threads" for o in k.options)]
LAST_TWO = [pytest.param(CAPABILITIES[0], marks=pytest.mark.slow), CAPABILITIES[1]]


@pytest.mark.parametrize("cc", LAST_TWO, ids=str)
@pytest.mark.parametrize(
    "kernel", [pytest.param(k, id=k.id, marks=() if k.id == "naive" else pytest.mark.slow) for k in WITH_THREADS]
)
def test_the_largest_blocks_have_registers_enough(kernel: Kernel, cc: tuple[int, int]) -> None:
    most = max(v for o in kernel.options if o.name == "threads" for v in o.values)
    shape = shape_of(kernel, max(kernel.tiles, default=1), kernel.dtypes[0], threads=most)
    program, args = program_of(kernel, shape, cc)
    for name, op in program.ops.items():
        got = compiled_op(op, shape, args[name], cc)
        assert got.registers * op.block[0] * op.block[1] <= REGISTERS, f"{name} on {cc}: {got.registers} registers"


def cases() -> Iterator[Any]:
    """Yield all cases; only the first data type with the default tile on the newer GPU is not marked slow.

    So are the steps between two rungs. What is made of products and cooperative kernels have tests of their own.
    """
    _, new = CAPABILITIES
    for kernel in CUDA:
        usual = kernel.default_tile
        for dtype in kernel.dtypes:
            first = dtype == kernel.dtypes[0]
            for tile in kernel.tiles or (1,) if first else (kernel.tile_for(0, dtype=dtype) or 1,):
                for cc in CAPABILITIES if first else (new,):
                    quick = tile == usual and cc == new and first and kernel.id in TELLING
                    name = f"{kernel.id}-{tile}-{dtype}-sm_{cc[0]}{cc[1]}"
                    yield pytest.param(kernel, tile, dtype, cc, id=name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("kernel", "tile", "dtype", "cc"), cases())
def test_every_op_compiles_and_fits(kernel: Kernel, tile: int, dtype: str, cc: tuple[int, int]) -> None:
    shape = shape_of(kernel, tile, dtype)
    program, args = program_of(kernel, shape, cc)
    assert set(program.ops) == set(args)
    for name, op in program.ops.items():
        got = compiled_op(op, shape, args[name], cc)
        assert max(got.stack, got.spills) == 0, name
        threads = op.block[0] * op.block[1]
        assert 1 <= threads <= 1024
        assert got.registers <= 255
        assert got.registers * threads <= REGISTERS, f"a block of {name} does not fit a multiprocessor"
        tiles = SHARED_TILES.get((kernel.id, name))
        if tiles is not None:
            assert got.shared == tiles * tile * tile * ITEMSIZE[dtype], name
        assert got.shared <= STATIC_SHARED


@pytest.mark.parametrize("kernel", CUDA, ids=lambda k: k.id)
def test_blocks_and_grids_fit_the_hardware(kernel: Kernel) -> None:
    for tile in kernel.tiles or (1,):
        for values in [{o.name: v} for o in kernel.options for v in o.values] or [{}]:
            shape = shape_of(kernel, tile, "float32", **values)
            program, _ = program_of(kernel, shape, (9, 0))
            for step in kernel.plan(shape, False):
                op = program.ops[step.op]
                grid = op.grid(step.args)
                assert 1 <= op.block[0] * op.block[1] <= 1024 and min(op.block) >= 1, (step.op, values)
                assert min(grid) >= 1 and grid[0] < 2**31 and grid[1] < 65536


@pytest.mark.parametrize("cc", LAST_TWO, ids=str)
@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("int16", "int32"))])
@pytest.mark.parametrize(("kernel_id", "op"), [("naive", "relax"), ("katz-kider", "rest")])
def test_the_hot_loop_takes_minima_by_one_instruction(kernel_id: str, op: str, dtype: str, cc: tuple[int, int]) -> None:
    kernel = registry()[kernel_id]
    shape = shape_of(kernel, kernel.default_tile, dtype)
    program, args = program_of(kernel, shape, cc)
    found = names(compiled_op(program.ops[op], shape, args[op], cc).cubin)
    assert sum(count for name, count in found.items() if MINIMUM.fullmatch(name)), dict(found)
    # a compare and a select where one minimum would do is what `if a < b` compiles to
    assert found["FSETP"] == found["FSEL"] == 0
    assert found["LDL"] == found["STL"] == 0
    if op == "rest":
        assert found["LDS"] and found["STS"] and found["BAR"] == 1


def test_a_comparison_is_not_taken_for_a_minimum() -> None:
    from fwtui_kernels.compiled.device import cuda
    from fwtui_kernels.programs.cuda_program import signature

    def compare(distance, k):
        i = cuda.grid(1)
        via = distance[i, k] + distance[k, i]
        if not via >= distance[i, i]:
            distance[i, i] = via

    found = names(compiled(compare, signature(Shape(8), 1), (8, 0)).cubin)
    assert found["FSETP"] and not any(MINIMUM.fullmatch(name) for name in found)


def names(cubin: bytes) -> Counter[str]:
    """Count instructions without their modifiers."""
    found: Counter[str] = Counter()
    for name, count in instructions(cubin).items():
        found[name.partition(".")[0]] += count
    return found


@pytest.mark.parametrize("cc", LAST_TWO, ids=str)
@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("int32", "int16"))])
def test_the_generator_compiles(dtype: str, cc: tuple[int, int]) -> None:
    from numba import from_dtype, int64, typeof

    from fwtui.engine.generate_cuda import THREADS, generate
    from fwtui.experiment.generate import recipe_for

    rule = typeof(recipe_for(Experiment(n=9, dtype=dtype)).rule)
    signature = from_dtype(np.dtype(dtype))[:, ::1], int64[::1], rule
    got = compiled(generate.py_func, signature, cc)
    assert (got.stack, got.spills, got.shared) == (0, 0, 0)
    assert got.registers * THREADS <= REGISTERS
