"""The listing of an op: source lines and instructions, with the PC samples of each."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from fwtui.analysis.warps import minimums
from fwtui.common.text import sanitise
from fwtui.stream.listing import MAX_INSTRUCTIONS, MAX_LINES, MAX_MIX, OTHER, CodeLine, Instruction, Listing, Reasons, opcode
from fwtui_kernels.compiled.disassembly import MachineInstruction
from fwtui_kernels.compiled.source_lines import SourceLine
from fwtui_kernels.own import text_of

AROUND = 2  # source lines shown around those that have instructions
GAP = 12  # a gap of at most this many lines without instructions is shown too
WIDEST = 200  # characters of a shown line
LINE_REASONS, INSTRUCTION_REASONS = 5, 2  # named stall reasons; the others are summed
HOT = 0.005  # share of the samples from which an instruction counts as hot
IN_LOOP = 0.5  # share of the relaxations, or samples, from which a loop represents the whole function
# a minimum in two instructions: a comparison of two registers, then a selection or a store predicated on it
_COMPARISON = re.compile(r"[DFI]SETP\.[GL][ET]U?\.\S+ (P\d), PT, (R\d+)\S*, (R\d+)\S*, PT")
_CHOICE = re.compile(r"F?SEL R\d+, (R\d+)\S*, (R\d+)\S*, !?(P\d)")
_STORE = re.compile(r"@!?(P\d) (?:ST[GS]?\b.*|MOV R\d+|IMAD\.MOV\.U32 R\d+, RZ, RZ), (R\d+)\S*")
_PREDICATE, _REGISTER = (re.compile(rf"(?:@\S+ )?(?!ST)\S+ ({name}\d+)\b") for name in "PR")  # the written register
_SIGN = re.compile(r"PRMT (R\d+), (R\d+)\S*, 0x9910, RZ")

ByOffset = Mapping[int, Reasons]


def relaxations(code: Sequence[MachineInstruction]) -> list[int]:
    """Return the number of relaxations of a thread for each instruction."""
    counts = [minimums(opcode(one.text)) for one in code]
    compared: dict[str, tuple[int, set[str]]] = {}  # key: predicate; the comparison, and the registers of its operands
    narrow: dict[str, str] = {}  # register with a sign-extended 16-bit value -> register with that value
    for place, one in enumerate(code):
        choice, store = _CHOICE.fullmatch(one.text), _STORE.fullmatch(one.text)
        predicate = choice[3] if choice else store[1] if store else ""
        registers = {choice[1], choice[2]} if choice else {store[2]} if store else {""}
        if predicate in compared and registers <= compared[predicate][1]:
            counts[compared.pop(predicate)[0]] = 1
        if comparison := _COMPARISON.fullmatch(one.text):
            operands = {comparison[2], comparison[3]}
            compared[comparison[1]] = place, operands | {narrow[name] for name in operands if name in narrow}
        elif written := _PREDICATE.match(one.text):
            compared.pop(written[1], None)
        if written := _REGISTER.match(one.text):
            narrow = {name: of for name, of in narrow.items() if written[1] not in (name, of)}
            for _, operands in compared.values():
                operands.discard(written[1])
        if extended := _SIGN.match(one.text):
            narrow[extended[1]] = extended[2]
    return counts


def innermost(loops: Sequence[range]) -> list[range]:
    """Return the loops that contain no other loop; two jumps back to one place are one loop."""
    return [loop for loop in loops if not any(one != loop and loop[0] <= one[0] and one[-1] <= loop[-1] for one in loops)]


def inner_loop(code: Sequence[MachineInstruction], samples: ByOffset) -> range | None:
    """Return the indices of the innermost loop with at least half of the function's relaxations; None if there is none.

    The samples, which differ between runs of the same code, choose only if no innermost loop has a relaxation.
    """
    places = {one.offset: place for place, one in enumerate(code)}
    back = ((one.target, place) for place, one in enumerate(code) if one.target is not None and one.target < one.offset)
    loops = [range(places[target], place + 1) for target, place in back]
    inner = innermost([loop for loop in loops if opcode(code[loop[-1]].text).startswith("BRA")])
    weights = relaxations(code)
    if not any(weights[place] for loop in inner for place in loop):
        weights = [sum(samples.get(one.offset, {}).values()) for one in code]

    def weight(loop: Iterable[int]) -> int:
        return sum(weights[place] for place in loop)

    busiest = max(inner, key=lambda loop: (weight(loop), len(loop)), default=None)
    enough = busiest is not None and weight(busiest) >= IN_LOOP * weight(range(len(code)))
    return busiest if enough else None


def build_listing(
    code: Sequence[MachineInstruction], samples: ByOffset, user_file: Path | None = None, include_source: bool = True
) -> Listing:
    """Return the listing of a function. The text of `user_file` is included only if `include_source`."""
    loop = inner_loop(code, samples)
    places = loop if loop is not None else range(len(code))
    instructions, done = [code[place] for place in places], relaxations(code)
    names = Counter(name for name in map(opcode, (one.text for one in instructions)) if name != "NOP")
    by_line = samples_by_line(code, samples)
    busiest = sorted(by_line, key=lambda line: -sum(by_line[line].values()))[:MAX_LINES]
    lines = _with_context(busiest, user_file, include_source)
    index = {line: place for place, line in enumerate(lines)}
    return Listing(
        lines=tuple(
            CodeLine(sanitise(Path(line.path).name), line.line, text, top_reasons(by_line.get(line, {}), LINE_REASONS))
            for line, text in lines.items()
        ),
        instructions=tuple(
            Instruction(
                one.offset,
                sanitise(one.text),
                index.get(one.source, -1),
                top_reasons(samples.get(one.offset, {}), INSTRUCTION_REASONS),
            )
            for one in _included(code, samples, loop)
        ),
        total=len(code),
        loop=(code[loop[0]].offset, code[loop[-1]].offset) if loop is not None else (0, 0),
        mix=dict(names.most_common(MAX_MIX)),
        relaxations=sum(done[place] for place in places),
    )


def top_reasons(reasons: Mapping[str, int], most: int) -> Reasons:
    """Return the `most` most frequent reasons, and the sum of the others."""
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    rest = sum(count for _, count in ordered[most:])
    return {**dict(ordered[:most]), **({OTHER: rest} if rest else {})}


def samples_by_line(code: Sequence[MachineInstruction], samples: ByOffset) -> dict[SourceLine, Counter[str]]:
    """Sum the samples of each source line."""
    by_line: dict[SourceLine, Counter[str]] = {}
    for one in code:
        line = by_line.setdefault(one.source, Counter())
        for reason, count in samples.get(one.offset, {}).items():
            line[reason] += count
    return by_line


def code_name(code: Sequence[MachineInstruction], lines: Sequence[CodeLine]) -> str:
    """Return a name that identifies the function and its source within a session."""
    instructions = "\n".join(one.text for one in code)
    source = "\n".join(f"{one.file}:{one.line}:{one.text}" for one in sorted(lines, key=lambda one: (one.file, one.line)))
    return f"{zlib.crc32(f'{instructions}{source}'.encode()):08x}"


def _included(code: Sequence[MachineInstruction], samples: ByOffset, loop: range | None) -> Sequence[MachineInstruction]:
    """Return the instructions to include: all if they are few, else those with many samples and the whole loop if it fits.
    Without samples, return the first instructions of the loop.
    """
    if len(code) <= MAX_INSTRUCTIONS:
        return code
    counts = [sum(samples.get(one.offset, {}).values()) for one in code]
    if not any(counts):
        return [code[place] for place in (loop or range(len(code)))[:MAX_INSTRUCTIONS]]
    hot = [place for place, count in enumerate(counts) if count > HOT * sum(counts)]
    places = {*hot, *(loop or ())}
    if not hot or len(places) > MAX_INSTRUCTIONS:
        places = {*sorted(hot or range(len(code)), key=lambda place: -counts[place])[:MAX_INSTRUCTIONS]}
    return [code[place] for place in sorted(places)]


def _with_context(sampled_lines: Sequence[SourceLine], user_file: Path | None, include_source: bool) -> dict[SourceLine, str]:
    """Return the lines with samples and their context, up to the limit, file by file in the order of their samples."""
    lines: dict[SourceLine, str] = {}
    for path in dict.fromkeys(line.path for line in sampled_lines):
        text = _text(path, str(user_file or "")) if user_file is None or include_source or not _belongs(path, user_file) else ()
        numbers = sorted(line.line for line in sampled_lines if line.path == path)
        numbers_shown: set[int] = set()
        for number, following in zip(numbers, [*numbers[1:], numbers[-1]], strict=True):
            until = following if following - number <= GAP else number + AROUND
            numbers_shown.update(range(number - AROUND, until + AROUND + 1) if text else (number,))
        last = len(text)
        for number in sorted(numbers_shown if not text else (n for n in numbers_shown if n in numbers or 1 <= n <= last)):
            line = sanitise(text[number - 1].expandtabs(4)[:WIDEST]) if 1 <= number <= last else ""
            lines[SourceLine(path, number)] = line
    if len(lines) > MAX_LINES:  # context lines are dropped first
        sampled = set(sampled_lines)
        lines = dict([*((line, text) for line, text in lines.items() if line in sampled)][:MAX_LINES])
    return lines


def _belongs(path: str, user_file: Path) -> bool:
    return Path(path).name == user_file.name or Path(path).parent == user_file.parent


@cache
def _text(path: str, user_file: str) -> tuple[str, ...]:
    """Return the lines of a file; a compiler may give only its base name, which is then looked up in the user file's folder."""
    for file in (Path(path), Path(user_file).parent / Path(path).name):
        try:
            return tuple(text_of(file).splitlines())
        except OSError:
            continue
    return ()
