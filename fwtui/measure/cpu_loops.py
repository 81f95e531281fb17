"""The inner loop that each op of a CPU kernel executes, from the x86-64 or AArch64 assembly that LLVM prints."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from fwtui.common.environment import edition
from fwtui.engine.engine import one_of_each_op
from fwtui.engine.kernel_instance import LoadedKernel
from fwtui.experiment.device import CPU
from fwtui.machine import device_cache
from fwtui.measure.code_listing import innermost
from fwtui.stream.listing import MAX_MIX
from fwtui_kernels.compiled.numba_internals import assembly
from fwtui_kernels.programs.cpu_program import CpuProgram

MAX_LANES = 256
_LABEL = re.compile(r"(\.?\w+):")
_INSTRUCTION = re.compile(r"\s+([a-z]\w*(?:\.\w+)?)(?:\s+(.*))?$")
_JUMP = re.compile(r"j\w+|b(?:\.\w+)?|cbn?z|tbn?z")
_REGISTER_BITS = {"z": 512, "y": 256, "x": 128}
_LETTER_BITS = {"b": 8, "h": 16, "w": 16, "s": 32, "d": 64}
# one relaxation is one minimum, or one comparison if the code branches or selects instead
_X86_FLOAT = re.compile(r"v?(?:min|cmp\w*|u?comi)(p|s)([sd])")
_X86_INTEGER = re.compile(r"v?p(?:min[su]|cmpgt|cmpn?l[te])([wd])|cmp([wl])")
_ARM = re.compile(r"(?:f?min(?:nm)?|smin|f?cm(?:gt|ge)|fcmp|cmp)")
_ARM_VECTOR = re.compile(r"v\d+\.(\d+)([hsd])\b")
_ARM_SCALAR = re.compile(r"([swhd])\d+\b")


class Loop(NamedTuple):
    """An innermost loop."""

    lanes: int  # relaxations in one instruction
    item_bits: int
    relaxations: int  # relaxations of one iteration
    mix: dict[str, int]  # instructions of one iteration
    skipped: int = 0  # relaxations in one instruction of a vector loop that a check for overlapping rows skips


def inner_loops(it: LoadedKernel, cached: bool) -> Iterator[tuple[str, Loop]]:
    """Yield the loop of each op whose code is available. `cached`: from the disk cache, since it may have to be compiled."""
    program, shape = it.program, it.program.shape
    if not isinstance(program, CpuProgram):
        return
    most = shape.tile if it.kernel.tiles else MAX_LANES  # no row is longer than a tile
    for step in one_of_each_op([step for step in it.plan if step.op in program.ops]):
        identity = (edition(), it.kernel.id, shape.dtype, shape.tile if it.kernel.tiles else shape.n, shape.options, step.op)
        kind = f"loops/{zlib.crc32(repr(identity).encode()):08x}"
        loop = device_cache.read(kind, CPU, msgspec.json.Decoder(Loop).decode) if cached else None
        if loop is None:
            loop = executed_loop(*assembly(program.ops[step.op], *program.arguments(step, it.buffers)), min(most, shape.padded))
            if loop is not None and cached:
                device_cache.write(kind, CPU, msgspec.json.encode(loop))
        if loop is not None:
            yield step.op, loop


def executed_loop(compiled: str, executed: str, most: int) -> Loop | None:
    """Return the inner loop of the executed assembly, and in it the width of a vector loop that is only in the compiled one."""
    loop, widest = inner_loop(executed, most), inner_loop(compiled, most)
    skips = loop is not None and widest is not None and loop.lanes == 1 < widest.lanes
    return loop._replace(skipped=widest.lanes) if loop is not None and widest is not None and skips else loop


def inner_loop(assembly: str, most: int = MAX_LANES) -> Loop | None:
    """Return the innermost loop with the most relaxations per iteration, at most `most` per instruction; None without any."""
    code, labels = _read(assembly)
    spans = [
        range(labels[target], place + 1)
        for place, (name, operands) in enumerate(code)
        if _JUMP.fullmatch(name) and (target := operands.rpartition(",")[2].strip()) in labels and labels[target] <= place
    ]
    # a jump back over a return is in code behind the end of the function
    spans = [span for span in spans if not any(code[place][0] in ("ret", "retq") for place in span)]
    turns = (code[span[0] : span[-1] + 1] for span in innermost(spans))
    loops = [loop for turn in turns if (loop := _loop(turn)) is not None and loop.lanes <= most]
    return max(loops, key=lambda loop: loop.relaxations, default=None)


def _read(assembly: str) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Return the instructions with their operands, and the position of each label."""
    code: list[tuple[str, str]] = []
    labels: dict[str, int] = {}
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(code)
        elif match := _INSTRUCTION.match(line.partition("#")[0].rstrip()):
            code.append((match[1], match[2] or ""))
    return code, labels


def _loop(code: Sequence[tuple[str, str]]) -> Loop | None:
    relaxing = list(_relaxing(code))
    if not relaxing:
        return None
    lanes, bits = max(relaxing)
    return Loop(lanes, bits, sum(count for count, _ in relaxing), dict(Counter(name for name, _ in code).most_common(MAX_MIX)))


def _relaxing(code: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Yield the relaxations, and the bits of a value, of each instruction that relaxes."""
    for name, operands in code:
        if match := _X86_FLOAT.fullmatch(name):
            bits = _LETTER_BITS[match[2]]
            yield (_width(operands) // bits if match[1] == "p" else 1), bits
        elif match := _X86_INTEGER.fullmatch(name):
            bits = {"w": 16, "d": 32, "l": 32}[match[1] or match[2]]
            yield (_width(operands) // bits if match[1] else 1), bits
        elif _ARM.fullmatch(name):
            if vector := _ARM_VECTOR.search(operands):
                yield int(vector[1]), _LETTER_BITS[vector[2]]
            elif (scalar := _ARM_SCALAR.match(operands)) and (name != "cmp" or scalar[1] == "w"):
                yield 1, 32 if scalar[1] == "w" else _LETTER_BITS[scalar[1]]


def _width(operands: str) -> int:
    """Return the width in bits of the widest vector register in the operands."""
    return max((_REGISTER_BITS[kind] for kind in re.findall(r"%([xyz])mm", operands)), default=128)
