"""What the loop that judges saves has to say: its lines, and what the compiler and the samples say in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fwtui.analysis.warps import derived, line_words, main_samples
from fwtui.common import units
from fwtui.common.text import clean
from fwtui.live.compiling import architecture
from fwtui.sessions.versions import Version
from fwtui.stream.run import Run
from fwtui.stream.trials import REST, Compiled, Finding, OperationResources

# what a line is about
COMPILED, DERIVED, PLAN, CASE, VERDICT = "compiled", "derived", "plan", "case", "verdict"
TIME, LINE, REASON, HINT, NOTE = "time", "line", "reason", "hint", "note"


class Report(NamedTuple):
    """One line, and what it is made of."""

    about: str
    sentence: str
    finding: Finding | None = None
    seconds: float | None = None  # of one pass at n
    right: bool | None = None  # where that is the question
    used: OperationResources | None = None  # what the compiler gave an operation


class Began(NamedTuple):
    """A save is being judged; what was said of the one before is over."""

    number: int  # of judgements in this sitting


class Judged(NamedTuple):
    """All has been said. The version is None if it could not be kept."""

    verdict: str
    right: bool
    tried: bool  # whether any graph was tried, and nothing that the device lacks kept it from that
    version: Version | None


class Overtaken(NamedTuple):
    """The file was saved again before all was said."""


WatchUpdate = Report | Began | Judged | Overtaken


def hot_line(run: Run, path: Path) -> str | None:
    """The line of the user's file with the most samples of the phase that takes longest, in words; None if there is none."""
    samples = main_samples(run)
    listing = run.listing(samples.op) if samples is not None else None
    if samples is None or listing is None:
        return None
    own = next((line for line in listing.sampled if Path(line.file).stem == path.stem), None)
    return line_words(own, samples.samples) if own is not None else None


def compiled_lines(found: Compiled | None, capability: tuple[int, int]) -> Iterator[Report]:
    """What the compiler says of each operation."""
    arch = architecture(capability)
    if found is None or found.lacking:
        why = clean(found.lacking) if found is not None else "the compiler did not answer"
        yield Report(NOTE, f"not compiled for {arch}: {why}")
        return
    for used in found.used:
        yield Report(COMPILED, f"{arch}: {clean(used.op)}: {_used(used)}", used=used)


def derived_lines(found: Compiled | None, capability: tuple[int, int]) -> Iterator[Report]:
    """What follows from the instructions of the phase that does most, of every operation without one."""
    used = found.used if found is not None else ()
    for one in [one for one in used if one.phase == REST] or used:
        if one.listing is not None and (told := derived(one.listing)):
            yield Report(DERIVED, f"{architecture(capability)}: {clean(one.op)}: {told}")


def _used(used: OperationResources) -> str:
    told = [
        units.counted(used.registers, "register"),
        f"{units.memory(used.shared_bytes)} of shared memory" if used.shared_bytes else "no shared memory",
        f"{used.spill_bytes:,} bytes spilled" if used.spill_bytes else "no spills",
    ]
    if used.max_warps:
        limited = f" (limited by {' and '.join(used.limiters)})" if used.limiters and used.warps < used.max_warps else ""
        told.append(f"{used.warps} of {used.max_warps} warps{limited}")
    return ", ".join(told)
