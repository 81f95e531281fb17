"""The compiled code of a kernel, line by line and instruction by instruction, with its PC samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from fwtui.stream.event import Count, Event, OfRun

MAX_LINES, MAX_INSTRUCTIONS, MAX_REASONS, MAX_MIX = 240, 128, 40, 40  # limits of a listing
MAX_OF_CODE = 512  # instructions of a function, those of all its runs together
LINE_UNITS, INSTRUCTION_UNITS = 10_000, 1_000  # shares of the samples of an op, per line and per instruction
Mix = Annotated[dict[str, Count], Meta(max_length=MAX_MIX)]  # number of occurrences of each instruction, by name
# samples by stall reason: keys of fwtui.analysis.warps.STALLS
Reasons = Annotated[dict[str, Count], Meta(max_length=MAX_REASONS)]
# a row per line or instruction with samples: the distance from the row before, then pairs of a reason's number and its units
Rows = tuple[tuple[Count, ...], ...]

OTHER = "other"  # all smaller reasons of a line or an instruction together
Place = Annotated[int, Meta(ge=-1, le=MAX_LINES)]  # index of a CodeLine in its listing; -1: not in the listing


class CodeLine(Struct, frozen=True, omit_defaults=True):
    """A source line and the samples of its instructions."""

    file: str  # file name; empty if the compiler reports none
    line: Count  # counts from 1
    text: str
    reasons: Reasons = {}

    @property
    def samples(self) -> int:
        return sum(self.reasons.values())


class Instruction(Struct, frozen=True, omit_defaults=True):
    """A machine instruction (SASS) and its samples."""

    offset: Count  # bytes from the function's start
    text: str
    line: Place
    reasons: Reasons = {}

    @property
    def samples(self) -> int:
        return sum(self.reasons.values())


def opcode(text: str) -> str:
    """Return the name of an instruction with its modifiers: LDS.128 for `@!P0 LDS.128 R4, [R2]`; empty if there is none."""
    tokens = text.split(maxsplit=2)
    return next((token for token in tokens[:2] if not token.startswith("@")), "")


class Listing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The compiled code of an op: its lines of source, and its most important instructions in order."""

    lines: Annotated[tuple[CodeLine, ...], Meta(max_length=MAX_LINES)] = ()
    instructions: Annotated[tuple[Instruction, ...], Meta(max_length=MAX_INSTRUCTIONS)] = ()
    total: Count = 0  # instructions of the function
    loop: tuple[Count, Count] = (0, 0)  # offsets of its busiest inner loop: first and last instruction; equal if there is none
    mix: Mix = {}  # instructions of that loop, else of all, by name
    relaxations: Count = 0  # relaxations per thread in one iteration of that loop, else in total

    @property
    def sampled(self) -> list[CodeLine]:
        """The lines with samples, hottest first."""
        return sorted((line for line in self.lines if line.samples), key=lambda line: -line.samples)


class CodeText(Event, frozen=True, kw_only=True):
    """The lines and the most important instructions of a function, sent once per session; a later event adds instructions."""

    code: str  # name that samples refer to: a checksum of all lines and instructions
    lines: Annotated[tuple[tuple[str, Count, tuple[str, ...]], ...], Meta(max_length=MAX_LINES)] = ()  # file, first line, texts
    # bytes from the instruction before, its line (as an Instruction's), its text
    instructions: Annotated[tuple[tuple[Count, Place, str], ...], Meta(max_length=MAX_OF_CODE)] = ()

    @property
    def code_lines(self) -> list[CodeLine]:
        lines = [CodeLine(file, first + place, text) for file, first, texts in self.lines for place, text in enumerate(texts)]
        return lines[:MAX_LINES]

    @property
    def by_offset(self) -> dict[int, tuple[int, str]]:
        """The line and the text of each instruction, by offset."""
        offsets = accumulate(step for step, _, _ in self.instructions)
        return {offset: (line, text) for offset, (_, line, text) in zip(offsets, self.instructions, strict=True)}

    def without(self, earlier_text: CodeText) -> CodeText:
        """Return only the instructions that an earlier event of the same code lacks."""
        there = earlier_text.by_offset
        new = {offset: instruction for offset, instruction in self.by_offset.items() if offset not in there}
        return replace(self, lines=(), instructions=_stepwise(new))

    def merged(self, news: CodeText) -> CodeText:
        """Return the text with the new instructions of a later event, up to MAX_OF_CODE."""
        there, room = self.by_offset, MAX_OF_CODE - len(self.instructions)
        new = dict(islice(((offset, instruction) for offset, instruction in news.by_offset.items() if offset not in there), room))
        if not new:
            return self
        rows = {one: one for one in self.instructions}  # reuses the tuples, so that runs share them
        return replace(self, instructions=tuple(rows.get(one, one) for one in _stepwise({**there, **new})))


class CodeSamples(OfRun, frozen=True, kw_only=True):
    """The PC samples of a kernel function: shares of all samples, in LINE_UNITS and in INSTRUCTION_UNITS."""

    op: str
    code: str  # name of its CodeText, an earlier event
    total: Count = 0  # `total` and `loop` have the meanings of a Listing
    loop: tuple[Count, Count] = (0, 0)
    reasons: Annotated[tuple[str, ...], Meta(max_length=MAX_REASONS)] = ()
    lines: Annotated[Rows, Meta(max_length=MAX_LINES)] = ()
    instructions: Annotated[Rows, Meta(max_length=MAX_OF_CODE)] = ()


def text_of(listing: Listing, code: str) -> CodeText:
    """Return a listing without its samples; its lines file by file in the order of the file names."""
    lines: list[tuple[str, int, tuple[str, ...]]] = []
    for place in _by_name(listing.lines):
        one = listing.lines[place]
        file, first, texts = lines[-1] if lines else ("", 0, ())
        if texts and (file, first + len(texts)) == (one.file, one.line):
            lines[-1] = file, first, (*texts, one.text)
        else:
            lines.append((one.file, one.line, (one.text,)))
    places = {old: new for new, old in enumerate(_by_name(listing.lines))}
    instructions = {one.offset: (places.get(one.line, -1), one.text) for one in listing.instructions}
    return CodeText(t=0.0, code=code, lines=tuple(lines), instructions=_stepwise(instructions))


def shares_of(listing: Listing, code: str, run: int, op: str, samples: int) -> CodeSamples:
    """Return the samples of a listing as shares of `samples`, the number of all."""
    names = sorted({name for one in (*listing.lines, *listing.instructions) for name in one.reasons})
    lines = [(new, listing.lines[old].reasons) for new, old in enumerate(_by_name(listing.lines))]
    return CodeSamples(
        t=0.0,
        run=run,
        op=op,
        code=code,
        total=listing.total,
        loop=listing.loop,
        reasons=tuple(names),
        lines=_rows(lines, names, samples, LINE_UNITS),
        instructions=_rows([(one.offset, one.reasons) for one in listing.instructions], names, samples, INSTRUCTION_UNITS),
    )


def listing_of(sampled: CodeSamples, text: CodeText, samples: int) -> Listing:
    """Return the listing of a code with `samples` PC samples in total; the file with the hottest line is first."""
    lines, at = text.code_lines, _counts(sampled.lines, sampled.reasons, samples, LINE_UNITS)
    hottest: Counter[str] = Counter()
    for place, one in enumerate(lines):
        hottest[one.file] = max(hottest[one.file], sum(at.get(place, {}).values()))
    order = sorted(range(len(lines)), key=lambda place: -hottest[lines[place].file])
    places = {old: new for new, old in enumerate(order)}
    by_offset = _counts(sampled.instructions, sampled.reasons, samples, INSTRUCTION_UNITS)
    return Listing(
        lines=tuple(CodeLine(lines[old].file, lines[old].line, lines[old].text, at.get(old, {})) for old in order),
        instructions=tuple(
            Instruction(offset, instruction, places.get(line, -1), by_offset.get(offset, {}))
            for offset, (line, instruction) in text.by_offset.items()
        ),
        total=sampled.total,
        loop=sampled.loop,
    )


def _by_name(lines: Sequence[CodeLine]) -> list[int]:
    return sorted(range(len(lines)), key=lambda place: (lines[place].file, lines[place].line))


def _stepwise(by_offset: Mapping[int, tuple[int, str]]) -> tuple[tuple[int, int, str], ...]:
    ordered = sorted(by_offset.items())
    steps = [after - before for before, after in pairwise([0, *(offset for offset, _ in ordered)])]
    return tuple((step, *instruction) for step, (_, instruction) in zip(steps, ordered, strict=True))


def _rows(places: Iterable[tuple[int, Mapping[str, int]]], names: Sequence[str], samples: int, units: int) -> Rows:
    cells = [(key, names.index(name), count) for key, reasons in places for name, count in reasons.items()]
    counts = [count for _, _, count in cells]
    rows: dict[int, list[int]] = {}
    for (key, name, _), share in zip(cells, apportion(counts, round(units * sum(counts) / (samples or 1))), strict=True):
        if share:
            rows.setdefault(key, []).extend((name, share))
    steps = [after - before for before, after in pairwise([0, *rows])]
    return tuple((step, *row) for step, row in zip(steps, rows.values(), strict=True))


def _counts(rows: Rows, names: Sequence[str], samples: int, units: int) -> dict[int, dict[str, int]]:
    """Map the key of each row to its samples by reason; invalid rows of a forged file have none."""
    keys = accumulate(row[0] if row else 0 for row in rows)
    cells = [
        (key, names[name], min(share, units))
        for key, row in zip(keys, rows, strict=True)
        for name, share in zip(row[1::2], row[2::2], strict=False)
        if name < len(names)
    ]
    shares = [share for _, _, share in cells]
    reasons_by_key: dict[int, dict[str, int]] = {}
    for (key, name, _), count in zip(cells, apportion(shares, samples * min(sum(shares), units) // units), strict=True):
        reasons = reasons_by_key.setdefault(key, {})
        reasons[name] = reasons.get(name, 0) + count
    return reasons_by_key


def apportion(counts: Sequence[int], total: int) -> list[int]:
    """Return integers in these proportions with the given sum; those with the largest remainders are rounded up."""
    whole = sum(counts) or 1
    parts = [divmod(count * total, whole) for count in counts]
    short = total - sum(part for part, _ in parts) if any(counts) else 0
    up = set(sorted(range(len(counts)), key=lambda place: -parts[place][1])[:short])
    return [part + (place in up) for place, (part, _) in enumerate(parts)]
