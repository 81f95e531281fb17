"""The rungs in global memory: options, schedules and accesses, two of them compared with the blocked rungs."""

import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from in_simulator import all_right, mutant_file

from fwtui_kernels import (
    k30_naive,
    k31_two_matrices,
    k32_naive_vector,
    k33_pseudo_blocked,
    k52_two_matrix_blocked,
    k53_one_cooperative,
)
from fwtui_kernels.parts import blocked
from fwtui_kernels.plan import Cost, Rect, Shape, Target


def case(rung: Any, n: int, dtype: str = "int32", tile: int = 1, size: list[int] | None = None, **options: int) -> dict[str, Any]:
    """Return a case for the rung of a module; odd n has unreachable pairs."""
    stepwise = [False, True] if rung is k53_one_cooperative else [False]
    graph = {"n": n, "dtype": dtype, "kind": "sparse" if n % 2 else "round"}
    return {**graph, "kernel": rung.KERNEL.id, "tile": tile, "options": options, "stepwise": stepwise, "size": size}


def test_every_option_and_row_length_is_right_in_the_simulator() -> None:
    sides = k33_pseudo_blocked.KERNEL.options[0].values
    assert sides == (1, 2, 4, 8, 16, 32)
    # int32 and int16 rows of 5 and 9 cells: as they are, or filled up to 128 bytes
    rows = ((5, "int32", (5, 32)), (9, "int16", (9, 64)))
    cases = [case(k30_naive, n, dtype, size=[n, size[pitch]], pitch=pitch) for n, dtype, size in rows for pitch in (0, 1)]
    cases += [case(k33_pseudo_blocked, n, dtype, results=h) for h, (n, dtype) in product(sides, ((7, "int16"), (8, "float32")))]
    cases += [case(k32_naive_vector, n, "int16") for n in (1, 4, 5, 6, 7, 8)]
    cases += [case(k31_two_matrices, n) for n in (1, 2, 5, 6)]
    cases += [case(k52_two_matrix_blocked, n, tile=4) for n in (3, 8, 9, 14)]
    cases += [case(k53_one_cooperative, n, tile=4) for n in (3, 13, 14)]
    assert not [c for c, right in zip(cases, all_right(cases), strict=True) if not right]


def test_a_function_for_several_types_has_the_resources_of_each() -> None:
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    from fwtui_kernels.programs.cuda_program import Op, compiled_for, signature

    overloads = {signature(Shape(9, dtype=dtype), 1): dtype for dtype in ("int16", "float32")}
    op = Op(SimpleNamespace(overloads=overloads), (32, 8), lambda args: (1, 1))
    assert [compiled_for(op, dtype) for dtype in ("float32", "int16", "int32")] == ["float32", "int16", None]


IN_PART = {"tile": 4, "part": str(Path(k30_naive.__file__).parent / "parts" / "blocked_tiles.py")}
# the module, what is replaced, by what, and the case; replaced in that part of it, where the case names one
MUTANTS: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
    "the open pivot of the input": (k52_two_matrix_blocked, "load(solved, target,", "load(solved, source,", IN_PART),
    "the open panels of the input": (  # one of them alone would do: with the other one closed the product is the same
        k52_two_matrix_blocked,
        "to[r, x] = target[top + r, base + x]\n        middle[r, x] = target[",
        "to[r, x] = source[top + r, base + x]\n        middle[r, x] = source[",
        IN_PART,
    ),
    "the output as input": (k52_two_matrix_blocked, "own[r, x] = source[", "own[r, x] = target[", IN_PART),
    "the other matrix's result": (k52_two_matrix_blocked, "result=rounds % 2", "result=1 - rounds % 2", {"tile": 4}),
    "only the better distances written": (
        k31_two_matrices,
        "        to[i, j] = min(",
        "        if number(source[i, k] + source[k, j]) < source[i, j]:\n            to[i, j] = min(",
        {},
    ),
    "no change of places": (k31_two_matrices, "buffers=by_vertex.in_turn", "buffers=lambda args: (0, 1)", {}),
    "a square that is not one": (k33_pseudo_blocked, "for c in range(results)", "for c in range(results - 1)", {"results": 4}),
    "rows taken for as long as they are wide": (k32_naive_vector, "= distance.shape[1]", "= distance.shape[0]", {}),
    "the wrong cell of row k": (k32_naive_vector, "number(to_k + g)", "number(to_k + h)", {}),
    "one round too few": (k53_one_cooperative, "range(begin, end)", "range(begin, end - 1)", {"tile": 4}),
    "no barrier in a tile": (k53_one_cooperative, "own[r, x] = via\n        cuda.syncthreads()", "own[r, x] = via", IN_PART),
    "no barrier of the grid after the pivot": (
        k53_one_cooperative,
        "# all blocks wait for the pivot\n            grid.sync()",
        "",
        {"tile": 4},
    ),
    "only the first tiles of a block": (
        k53_one_cooperative,
        "range(block, int32(others * others), blocks)",
        "range(block, int32(min(1, others)), blocks)",
        {"tile": 4},
    ),
}


def test_broken_rungs_are_caught(tmp_path: Path) -> None:
    cases = []
    for number, (module, old, new, changes) in enumerate(MUTANTS.values()):
        changes = dict(changes)
        path = mutant_file(tmp_path, number, module.__file__, changes.pop("part", module.__file__), old, new, 0)
        dtype = "int16" if module is k32_naive_vector else "int32"
        cases.append({**case(module, 14 if "tile" in changes else 6, dtype, **changes), "kernel": path, "graphs": 5})
    assert not [name for name, right in zip(MUTANTS, all_right(cases), strict=True) if right]


def test_mapped_memory_is_paid_on_the_link_and_two_matrices_change_places() -> None:
    costs = {m: next(iter(k30_naive.plan(Shape(7, memory=m), False))).cost for m in k30_naive.KERNEL.memories}
    assert costs == {**dict.fromkeys(("device", "pinned", "managed"), Cost(49, 784)), "mapped": Cost(49, 0, 784)}
    plan = list(k31_two_matrices.plan(Shape(3), False))
    assert [(s.reads[0].buffer, s.writes[0].buffer) for s in plan] == [(0, 1), (1, 0), (0, 1)]


@pytest.mark.parametrize(("n", "cells"), [(1, 13), (4, 4 * 13), (5, 5 * 2 * 13), (8, 8 * 2 * 13)])
def test_a_vector_requests_thirteen_cells(n: int, cells: int) -> None:
    assert k32_naive_vector.KERNEL.dtypes == ("int16",)
    for step in k32_naive_vector.plan(Shape(n, dtype="int16"), False):
        assert step.cost == Cost(n * n, 2 * cells)


@pytest.mark.parametrize("n", [4, 8, 12, 16])
def test_a_blocked_round_reads_of_its_input_what_it_has_not_written(n: int) -> None:
    shape = Shape(n, 4)
    plan = list(k52_two_matrix_blocked.plan(shape, False))
    assert [s.cost for s in plan] == [s.cost for s in blocked.plan(shape, False)]
    assert plan[-1].writes[0].buffer == n // 4 % 2
    for p in range(n // 4):
        written = [w for s in plan if s.args == (p,) for w in s.writes]
        read = [{r.buffer for r in s.reads} for s in plan if s.args == (p,)]
        assert read[0] == {p % 2} and all(both == {0, 1} for both in read[1:])
        assert {w.buffer for w in written} == {1 - p % 2}
        assert sum((w.bottom - w.top) * (w.right - w.left) for w in written) == n * n


def test_one_launch_is_the_sum_of_its_rounds() -> None:
    shape = Shape(13, 4)
    (whole,) = k53_one_cooperative.KERNEL.plan(shape, False)
    rounds = list(k53_one_cooperative.KERNEL.plan(shape, True))
    assert whole.args == (0, 4) and [s.args for s in rounds] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert whole.writes == rounds[0].writes == (Rect(0, 0, 16, 16),)
    separate = list(blocked.plan(shape, False))
    for got, steps in ((whole, separate), *((s, [b for b in separate if b.args[0] == s.args[0]]) for s in rounds)):
        assert got.cost == Cost(sum(s.cost.relaxations for s in steps), sum(s.cost.device_bytes for s in steps))


@pytest.mark.parametrize(("shape", "index"), [((64,), 8), ((4, 16), 20)])
def test_four_cells_are_counted_from_the_first_one(shape: tuple[int, ...], index: int) -> None:
    from fwtui_kernels.compiled.simulator_intrinsics import load4, store4

    array = np.arange(64, dtype=np.int16).reshape(shape)
    assert load4(array, index) == (index, index + 1, index + 2, index + 3)
    store4(array, index, 1, 2, 3, 4)
    assert array.ravel()[index - 1 : index + 5].tolist() == [index - 1, 1, 2, 3, 4, index + 4]


def cooperative_shapes() -> list[Shape]:
    kernel = k53_one_cooperative.KERNEL
    choices = product(kernel.tiles, kernel.dtypes, kernel.options[0].values)
    return [Shape(100, tile, dtype, options=(("threads", threads),)) for tile, dtype, threads in choices]


def test_a_cooperative_grid_is_resident_on_every_generation() -> None:
    for shape in cooperative_shapes():
        threads = min(shape.option("threads"), shape.tile**2)
        blocks = k53_one_cooperative.blocks_per_multiprocessor(shape, threads)
        assert 1 <= blocks <= 16 and blocks * threads <= 1024
        assert blocks * 3 * shape.tile**2 * shape.itemsize <= 48 * 1024


@pytest.fixture
def compiled() -> Any:
    return pytest.importorskip("fwtui_kernels.compiled.compiler", reason="the CUDA compiler wheels are not installed").compiled


@pytest.mark.parametrize(("dtype", "bits"), [("int16", 16), ("float32", 32)])
def test_four_cells_are_one_access(compiled: Any, dtype: str, bits: int) -> None:
    from fwtui_kernels.compiled.device import load4, store4
    from fwtui_kernels.programs.cuda_program import signature

    def copy(matrix, k):
        a, b, c, d = load4(matrix, k)
        store4(matrix, k + 4, a, b, c, d)

    code = compiled(copy, signature(Shape(8, dtype=dtype), 1), (9, 0)).ptx()
    assert [len(re.findall(rf"{what}\.(?:global\.)?v4\.[bfu]{bits}\b", code)) for what in ("ld", "st")] == [1, 1], code


@pytest.mark.parametrize("memory", ["mapped", "managed"])
def test_memory_shared_with_the_host_is_copied_in_place(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings", reason="the CUDA packages are not installed")
    from fwtui_kernels.compiled.cuda_memory import SharedArray
    from fwtui_kernels.programs import cuda_program

    copies: list[int] = []

    def on_device(to: Any, source: Any, size: int, stream: Any) -> None:
        copies.append(size)
        np.copyto(to, source)

    def new(size: tuple[int, int], dtype: Any) -> Any:
        return np.full(size, 77, dtype).view(SharedArray)

    arrays = {"mapped_array": None, "managed_array": None, "device_array": None, f"{memory}_array": new}
    monkeypatch.setattr(cuda_program, "cuda", SimpleNamespace(**arrays, copy_on_device=on_device))
    shape = Shape(5, dtype="int32", memory=memory)
    program = cuda_program.CudaProgram(shape, Target("cuda", (9, 0)), {}, columns=cuda_program.pitched(shape))
    stream = SimpleNamespace(sync=lambda: None)
    buffers = program.allocate()
    matrix = np.arange(25, dtype=np.int32).reshape(5, 5)
    program.load(matrix, buffers, stream)
    assert type(buffers[0]) is SharedArray and buffers[0].shape == (5, 32)
    assert (np.asarray(buffers[0])[:, 5:] == 2**30 - 1).all()
    np.asarray(buffers[0])[:] = 0
    program.restore(buffers, stream)
    result = program.unload(buffers, stream)
    np.testing.assert_array_equal(result, matrix)
    assert type(result) is np.ndarray and not np.shares_memory(result, buffers[0])
    assert copies == ([5 * 32 * 4] * 2 if memory == "managed" else [])


@pytest.mark.parametrize(
    ("cc", "most"), [((9, 0), 1), *(pytest.param(cc, 99, marks=pytest.mark.slow) for cc in ((8, 0), (9, 0)))]
)
def test_a_cooperative_kernel_keeps_to_the_registers_of_its_grid(compiled: Any, cc: tuple[int, int], most: int) -> None:
    from fwtui_kernels.programs.cuda_program import signature

    for shape in [s for s in reversed(cooperative_shapes()) if s.tile == 32 and s.dtype == "float32"][:most]:
        program: Any = k53_one_cooperative.KERNEL.build(shape, Target("cuda", cc, multiprocessors=10))
        op = program.ops["rounds"]
        threads, blocks = op.block[0] * op.block[1], op.grid((0, 1))[0] // 10
        made = compiled(op.function.py_func, signature(shape, 2), cc, {"launch_bounds": (threads, blocks)})
        assert made.cooperative and (made.used.stack_bytes, made.used.spill_bytes) == (0, 0), (shape, made.used)
        assert -(-made.used.registers // 8) * 8 * threads * blocks <= 65536, shape
