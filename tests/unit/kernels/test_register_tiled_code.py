"""Code of the register-tiled rungs: correct in the simulator, caught when broken, and its machine code."""

from typing import Any

import pytest
from in_simulator import answers

from fwtui_kernels import k84_resident
from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.forms import AUTO, ONE_K, TWO_K
from fwtui_kernels.parts.tuning import tuning_of
from fwtui_kernels.plan import Shape, Target

HARNESS = """
import importlib
from in_simulator import mutant
from in_simulator import tell
from rungs_in_simulator import verdicts

def replaced(edits):
    # the module's own code with some of it changed, compiled under the module's own file name
    for name in ("fwtui_kernels.parts.pivot", "fwtui_kernels.parts.products", "fwtui_kernels.parts.rank_products"):
        module = importlib.import_module(name)
        source = open(module.__file__).read()
        for where, old, new, occurrence in edits:
            if where == name:
                source = mutant(source, old, new, occurrence)
        exec(compile(source, module.__file__, "exec"), vars(module))

def changed(case):
    replaced(case.pop("edits", []))
    return verdicts({"options": {"form": case.pop("form")}, **case})

tell(changed)
"""


def simulated(cases: list[dict[str, Any]]) -> list[list[bool]]:
    """Return, for each case, a boolean per graph up to the first one with wrong distances."""
    return answers(HARNESS, cases)


def test_all_forms_in_larger_tiles_and_with_negative_weights() -> None:
    """With tile 16 each thread has 8 x 8 words in four groups, as on a GPU."""
    cases = [
        {"kernel": kernel, "n": 20, "tile": 16, "dtype": dtype, "form": form}
        for kernel, dtype, form in (
            ("register-tiled", "float32", TWO_K),
            ("look-ahead", "int32", ONE_K),
            ("look-ahead", "int16", AUTO),
            ("look-ahead", "float64", AUTO),
        )
    ]
    cases += [
        {"kernel": "look-ahead", "n": 21, "tile": 8, "dtype": dtype, "form": AUTO, "kind": "negative"}
        for dtype in ("float32", "int32", "float64")
    ]
    assert simulated(cases) == [[True]] * len(cases)


def test_float32_by_its_bits_is_wrong_for_negative_weights() -> None:
    """The graph's sign decides the form: if it is declared non-negative, the kernel takes the wrong minimum."""
    case = {"kernel": "register-tiled", "n": 20, "tile": 8, "dtype": "float32", "form": AUTO, "kind": "negative", "graphs": 3}
    (told,) = simulated([{**case, "nonnegative": True}])
    assert False in told


def test_all_ranks_in_one_process() -> None:
    base = {"kernel": "distributed", "n": 25, "tile": 8, "form": AUTO}
    cases = [
        {**base, "ranks": ranks, "dtype": dtype} for ranks, dtype in ((1, "int32"), (2, "float32"), (2, "float64"), (3, "int16"))
    ]
    cases += [{**base, "n": n, "ranks": 3, "dtype": "int32", "kind": "negative"} for n in (1, 9)]
    assert simulated(cases) == [[True]] * len(cases)


P, Q, R = "fwtui_kernels.parts.pivot", "fwtui_kernels.parts.products", "fwtui_kernels.parts.rank_products"
BARRIER = "cuda.syncthreads()\n"
MUTANTS: dict[str, tuple[str, str, str, int]] = {  # module, what is replaced, by what, which of its occurrences
    "no barrier in the pivot": (P, BARRIER, "pass\n", 0),
    "one buffer for all k of the pivot": (P, "columns, tile, y, x, word, r[1]", "columns, 0, y, x, word, r[1]", 0),
    "the pivot's copies exchanged": (P, "4 * x * tile + 4 * y", "4 * y * tile + 4 * x", 0),
    "panels that do not wait for their copies": (Q, "device.wait_copies(0)\n", "pass\n", 0),
    "no barrier in the panels": (Q, BARRIER, "pass\n", 0),
    "a column that is not turned over": (Q, "to[(k + 1) * wide + j] = b", "to[k * wide + j + 1] = b", 0),
    "the pivot's own place in the row": (Q, "if at >= base:", "if at > base:", 0),
    "a rest that does not wait for its copies": (Q, "device.wait_copies(0)\n", "pass\n", 1),
    "no barrier in the rest": (Q, BARRIER, "pass\n", 1),
    "copies that nobody committed": (Q, "device.commit_copies()\n", "pass\n", 2),
    "the panel of the round before": (Q, "PANEL + args[0] % 2", "PANEL + (args[0] + 1) % 2", 1),
    "a cross that forgets the gap": (Q, "down_tile += int32(2)", "down_tile += int32(1)", 0),
    "a bulk that forgets the gap": (Q, "row += int32(part * per_row)", "row += int32(per_row)", 0),
    "a column that takes the rows that are left out": (R, "line += skipped", "line += 0", 0),
    "a rest that takes them": (R, "row += int32(skipped * per_row)", "row += 0", 0),
    "a row that is not copied to the panel": (R, "copies_rows=True", "copies_rows=False", 0),
    "a pivot that is sent by columns": (R, "solved, 0, square, 0)", "square, 0, solved, 0)", 0),
    "the panel that was sent before": (R, "ROW + args[0] % 2, COLUMN", "ROW + (args[0] + 1) % 2, COLUMN", 0),
}  # fmt: skip


def test_broken_kernels_are_caught() -> None:
    ahead = {"kernel": "look-ahead", "n": 20, "tile": 8, "dtype": "int32", "form": AUTO, "graphs": 3}
    ranked = {**ahead, "kernel": "distributed", "n": 40, "ranks": 1}
    cases = [ahead, *({**(ranked if what[0] == R else ahead), "edits": [what]} for what in MUTANTS.values())]
    cases.append({**ahead, "edits": []})
    told = simulated(cases)
    assert told[0] == told[-1] == [True] * 3
    assert not [name for name, verdicts in zip(MUTANTS, told[1:-1], strict=True) if all(verdicts)]


REST: dict[tuple[str, int], dict[str, int]] = {  # instructions of 8 k for 64 words of a thread
    ("float32", ONE_K): {"FADD": 512, "FMNMX": 512, "VIMNMX3": 0},
    ("float32", TWO_K): {"FADD": 512, "VIMNMX3": 256, "FMNMX": 0},
    ("int32", ONE_K): {"VIADDMNMX": 512, "VIMNMX3": 0},
    ("int32", TWO_K): {"VIADDMNMX": 344, "VIMNMX3": 84},
    ("int16", ONE_K): {"VIADDMNMX.S16x2": 512, "VIMNMX3.U16x2": 0},
    ("int16", TWO_K): {"VIADDMNMX.S16x2": 344, "VIMNMX3.U16x2": 84},
}


# the others are made of the same lines
@pytest.mark.parametrize(
    ("dtype", "form"), [pytest.param(*of, marks=() if of == ("float32", TWO_K) else pytest.mark.slow) for of in REST], ids=str
)
def test_the_third_phase_is_made_of_these_instructions(dtype: str, form: int) -> None:
    from compiled_off_gpu import compiled_op, instructions

    from fwtui_kernels.parts import products

    shape = Shape(384, 128, dtype, options=(("form", form),))
    program: Any = products.program(shape, Target("cuda", (9, 0), multiprocessors=132))
    got = compiled_op(program.ops["rest"], shape, 2, (9, 0))
    assert (got.stack, got.spills) == (0, 0) and got.registers <= tuning_of(shape).rest.registers
    found = instructions(got.cubin)
    assert {name: found[name] for name in REST[dtype, form]} == REST[dtype, form]
    # the loop loads 4 times for 64 relaxations; C comes and goes in pieces of 16 bytes; copies go past the registers
    assert found["LDS.128"] == 4 * 8 and found["LDG.E.128"] == found["STG.E.128"] == 16
    assert found["LDGSTS.E.BYPASS.128"] and not found["LDS"] and not found["LDG.E"] and not found["STS"]


def test_the_disk_cache_tells_launch_bounds_apart() -> None:
    """Numba's cache does not: one resident block may use registers that two must share."""
    pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
    names: set[str] = set()
    for resident in (1, 2, 2):
        shape = Shape(100, 32, options=(("resident", resident),))
        program: Any = k84_resident.build(shape, Target("cuda", (9, 0), multiprocessors=132))
        rounds = program.ops["rounds"].function
        names.add(cubin_cache.key(rounds.py_func, rounds.targetoptions, (), (9, 0)))
    assert len(names) == 2
