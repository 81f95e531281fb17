"""Machine instructions of compiled kernels and their source lines, for a GPU that this machine lacks."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from compiled_off_gpu import compiled_op, nvdisasm

from fwtui.analysis.warps import derived, minimums
from fwtui.experiment.experiment import kernel_named
from fwtui.measure.code_listing import build_listing, inner_loop, opcode, relaxations
from fwtui.stream.listing import MAX_INSTRUCTIONS
from fwtui_kernels.compiled.disassembly import Disassembler, MachineInstruction
from fwtui_kernels.compiled.source_lines import NOWHERE, SourceLine, package_files, source_line, tagged
from fwtui_kernels.plan import Shape, Target

pytestmark = pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (the wheel nvidia-cuda-nvdisasm)")
CC = (9, 0)


def instructions(name: str, op: str, dtype: str = "int32") -> tuple[MachineInstruction, ...]:
    kernel = kernel_named(name)
    tile = kernel.tile_for(0) or 1
    shape = Shape(4 * tile, tile, dtype, options=tuple(sorted(kernel.defaults)))
    program = kernel.build(shape, Target("cuda", CC, multiprocessors=132))
    args = next(len(step.args) for step in kernel.plan(shape, False) if step.op == op)
    cubin = compiled_op(program.ops[op], shape, args, CC).cubin  # type: ignore[attr-defined]
    return max(Disassembler().functions(cubin).values(), key=len)


@pytest.mark.slow
def test_every_instruction_has_its_line_and_lines_change_none() -> None:
    from fwtui_kernels.compiled import compiler

    code = instructions("optimized", "rest")
    files = Counter(Path(one.source.path).name for one in code)
    assert set(files) == {"k60_optimized.py", "flat_tiles.py"} and min(files.values()) > 10
    text = {path.name: path.read_text().splitlines() for path in package_files()}
    flat = [one for one in code if Path(one.source.path).name == "flat_tiles.py"]
    said = {text["flat_tiles.py"][one.source.line - 1].strip() for one in flat}
    assert "row = skip_pivot(cuda.blockIdx.y, base)" in said, "a function's line under its own file, not its caller's"
    least = [one for one in code if minimums(opcode(one.text))]
    assert {text["k60_optimized.py"][one.source.line - 1].strip()[:17] for one in least} == {"own[first + m * s"}
    kernel = kernel_named("katz-kider")
    shape = Shape(128, 32, "int32", options=tuple(sorted(kernel.defaults)))
    op = kernel.build(shape, Target("cuda", CC, multiprocessors=132)).ops["rest"]  # type: ignore[attr-defined]
    from fwtui_kernels.programs.cuda_program import types_of

    types, options = types_of(op, shape, 1), op.function.targetoptions
    assert options["lineinfo"]
    with_lines, without = (
        compiler.compiled(op.function.py_func, types, CC, {**options, "lineinfo": lines}) for lines in (True, False)
    )
    told = [max(Disassembler().functions(one.cubin).values(), key=len) for one in (with_lines, without)]
    assert [one.text for one in told[0]] == [one.text for one in told[1]]
    assert all(one.source.line for one in told[0]) and all(one.source == NOWHERE for one in told[1])


def test_an_abandoned_disassembly_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    disassembler = Disassembler()
    disassembler.begin(b"no cubin")
    assert not [*tmp_path.iterdir()]
    with pytest.raises(RuntimeError, match="nvdisasm failed: nvdisasm fatal"):
        disassembler.functions(b"no cubin")


def test_samples_choose_lines_loop_and_instructions() -> None:
    def at(offset: int, text: str, line: int, target: int | None = None) -> MachineInstruction:
        return MachineInstruction(offset, text, SourceLine("there.py", line), target)

    code = [at(16 * place, "IADD3 R1, R2, R3, RZ", place) for place in range(300)]
    code[20] = at(320, "@P0 BRA `(.L_x_1)", 20, 160)
    code[200] = at(3200, "@P0 BRA `(.L_x_2)", 200, 3040)
    quiet = inner_loop(code, {3056: {"wait": 1}, 176: {"selected": 9, "wait": 9}})
    assert quiet == range(10, 21), "the loop that was sampled most"
    assert inner_loop(code, {16: {"wait": 9}, 176: {"wait": 1}}) is None, "most samples are in no loop"
    code[195] = at(3120, "VIADDMNMX R1, R2, R3, R1", 195)
    assert inner_loop(code, {16: {"wait": 9}, 176: {"wait": 1}}) == range(190, 201), "the relaxations are in it in every run"
    code[195] = at(3120, "IADD3 R1, R2, R3, RZ", 195)
    told = build_listing(code, {4784: {"wait": 3, "barrier": 2, "drain": 1}}, include_source=False)
    assert told.instructions[-1].reasons == {"wait": 3, "barrier": 2, "other": 1} and told.instructions[-1].offset == 4784
    few = {16 * place: {"wait": 1} for place in range(250)}
    one, other = (
        build_listing(code, {**few, 3056: {"wait": 900}, 16 * cold: {"wait": 2}}, include_source=False) for cold in (30, 40)
    )
    assert [a.offset for a in one.instructions] == [*range(3040, 3201, 16)], "the loop, and none that is sampled a little"
    assert [a.text for a in one.instructions] == [a.text for a in other.instructions], "whatever is sampled a little more"
    wide = build_listing(code, {16 * place: {"wait": 2 + place} for place in range(300)}, include_source=False)
    assert len(wide.instructions) <= MAX_INSTRUCTIONS and wide.instructions[-1].offset == 4784
    flat = build_listing(code, {16 * place: {"wait": 1} for place in range(100, 300)}, include_source=False)
    assert len(flat.instructions) == MAX_INSTRUCTIONS and flat.instructions[0].offset == 1600, "each has half a percent"


def test_relaxations_are_counted_by_minimums() -> None:
    one, two = ("VIADDMNMX", "FMNMX", "IMNMX", "VIMNMX.S16x2"), ("VIADDMNMX.S16x2", "VIMNMX3", "VIMNMX3.S16x2", "VIMNMX.U16x2")
    assert [minimums(name) for name in (*one, *two, "VIMNMX3.U16x2", "FADD", "LDS.128")] == [1] * 4 + [2] * 4 + [4, 0, 0]
    assert opcode("@!P0 LDS.128 R1, R2") == opcode("LDS.128 R1, R2") == "LDS.128"


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        (("FSETP.GEU.AND P0, PT, R29, R25.reuse, PT", "LDS R1, [R2]", "@!P0 STS [R13+UR9], R29"), [1, 0, 0]),
        (("ISETP.GE.AND P1, PT, R5, R6, PT", "SEL R5, R6, R5, !P1"), [1, 0]),
        (("ISETP.GT.AND P1, PT, R5, R6, PT", "@P1 IMAD.MOV.U32 R6, RZ, RZ, R5"), [1, 0]),
        (("PRMT R20, R22, 0x9910, RZ", "ISETP.GE.AND P0, PT, R20, R11, PT", "@!P0 STS.U16 [R17], R22"), [0, 1, 0]),
        (("ISETP.GE.AND P0, PT, R20, R11, PT", "@!P0 STG.E.U16 [R2.64], R22"), [0, 0]),  # a bound
        (("FSETP.GEU.AND P0, PT, R5, R6, PT", "LDS R5, [R1]", "@!P0 STS [R1], R5"), [0, 0, 0]),  # another number by then
        (("ISETP.LT.AND P0, PT, R3, RZ, PT", "SEL R3, R7, R3, P0"), [0, 0]),  # an index from the end
        (("ISETP.GE.AND P0, PT, R3, R4, PT", "SEL R3, R7, R3, P0"), [0, 0]),
        (("ISETP.GE.AND P0, PT, R3, R4, PT", "@P0 STG.E desc[UR4][R8.64], R5"), [0, 0]),  # a bound
        (("ISETP.GE.AND P0, PT, R3, R4, PT", "PLOP3.LUT P0, PT, P1, PT, PT, 0x8, 0x0", "@P0 STS [R1], R3"), [0, 0, 0]),
        (("FSETP.GEU.AND P0, PT, R1, R2, PT", "@P0 STS [R9], R1", "@P0 STS [R8], R1", "FMNMX R1, R2, R3, PT"), [1, 0, 0, 1]),
    ],
)
def test_a_comparison_that_chooses_what_it_compared_is_a_relaxation(code: tuple[str, ...], counts: list[int]) -> None:
    assert relaxations([MachineInstruction(16 * place, text, NOWHERE) for place, text in enumerate(code)]) == counts


def test_no_two_files_have_the_same_tag_and_a_users_function_has_none() -> None:
    assert tagged(test_relaxations_are_counted_by_minimums) is test_relaxations_are_counted_by_minimums
    files = package_files()
    seen = {source_line("caller.py", tagged_line(path), files).path for path in files}
    assert seen == {str(path) for path in files}
    assert source_line("mine.py", 12, files) == SourceLine("mine.py", 12)


def tagged_line(path: Path) -> int:
    """Return the first line of a compiled function of that file."""
    made: dict[str, object] = {"__name__": "fwtui_kernels.x"}
    exec(compile("def f():\n    pass\n", str(path), "exec"), made)  # noqa: S102  # the text is above
    return tagged(made["f"]).__code__.co_firstlineno


@pytest.mark.skipif(nvdisasm() is None, reason="nvdisasm is not installed (the wheel nvidia-cuda-nvdisasm)")
def test_each_line_has_its_instructions() -> None:
    code = instructions("katz-kider", "rest")
    told = build_listing(code, {})
    assert told.total == len(code) > 20 and not any(opcode(one.text).startswith(("STL", "LDL")) for one in code), "no spills"
    assert any(opcode(one.text) == "VIADDMNMX" for one in told.instructions) and "relaxations per cycle; " in derived(told)
    place = [(line.file, line.line) for line in told.lines].index(("k45_katz_kider.py", 13))
    assert told.lines[place].text.strip() == "own[r, x] = min(own[r, x], number(to[r, k] + middle[k, x]))"
    assert any(one.line == place and one.text for one in told.instructions)
