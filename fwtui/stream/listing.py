"""What a compiler made of a kernel, line by line and instruction by instruction, and what its warps waited for there."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from fwtui.stream.event import Count

MOST_LINES, MOST_INSTRUCTIONS, MOST_REASONS, MOST_MIX = 240, 128, 40, 40  # at most
Mix = Annotated[dict[str, Count], Meta(max_length=MOST_MIX)]  # how often each instruction is there, by its name
# samples by what a warp waited for: keys of fwtui.analysis.warps.STALLS
Reasons = Annotated[dict[str, Count], Meta(max_length=MOST_REASONS)]


OTHER = "other"  # the rest of the samples of a line or an instruction, whose greatest reasons are named


class CodeLine(Struct, frozen=True, omit_defaults=True):
    """A line of source and the samples of the instructions that were made of it."""

    file: str  # its name; empty if the compiler names none
    line: Count  # from 1
    text: str
    reasons: Reasons = {}

    @property
    def samples(self) -> int:
        return sum(self.reasons.values())


class Instruction(Struct, frozen=True, omit_defaults=True):
    """A machine instruction (SASS) and its samples."""

    offset: Count  # bytes from the function's start
    text: str
    line: Annotated[int, Meta(ge=-1, le=MOST_LINES)]  # index of its CodeLine; -1: not among them
    reasons: Reasons = {}

    @property
    def samples(self) -> int:
        return sum(self.reasons.values())


def opcode(text: str) -> str:
    """The name of an instruction, with its modifiers: `@!P0 LDS.128 R4, [R2]` is LDS.128; empty if there is none."""
    words = text.split(maxsplit=2)
    return next((word for word in words[:2] if not word.startswith("@")), "")


class Listing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a compiler made of an op: its lines of source, and the most telling of its instructions in their order."""

    lines: Annotated[tuple[CodeLine, ...], Meta(max_length=MOST_LINES)] = ()
    instructions: Annotated[tuple[Instruction, ...], Meta(max_length=MOST_INSTRUCTIONS)] = ()
    total: Count = 0  # instructions of the function
    loop: tuple[Count, Count] = (0, 0)  # offsets of its busiest inner loop: first and last instruction; equal if there is none
    mix: Mix = {}  # instructions of that loop, else of all, by name
    relaxations: Count = 0  # of a thread in one turn of that loop, else in all

    @property
    def sampled(self) -> list[CodeLine]:
        """The lines with samples, that with the most first."""
        return sorted((line for line in self.lines if line.samples), key=lambda line: -line.samples)

    @property
    def inner(self) -> tuple[Instruction, ...]:
        """Those of its instructions that are of that loop; all if there is none."""
        first, last = self.loop
        return tuple(one for one in self.instructions if first <= one.offset <= last) if last else self.instructions
