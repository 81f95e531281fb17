"""Where the warps of two runs wait, side by side: the reasons and lines that changed, and a diff of the inner loops."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from fwtui.analysis.warps import ShareChange, in_words, line_changes, loop_facts, loop_rows, mix_changes, reason_changes, stall
from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.stream.listing import Listing
from fwtui.tui.explain.warp_panel import HEAD, LEAST, OTHERS, SIGNS, WarpSubject
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, line

LABEL, NUMBER = 8, 9  # cells
MOST_LINES, MOST_NAMES = 8, 8  # of what changed, the greatest
DIFF = {"-": "$text-error", "+": "$text-success", " ": MUTED}
Pair = tuple[WarpSubject, WarpSubject]  # the run and its baseline
Cells = tuple[str, str, Piece]  # what the baseline has, what the run has, and of what


class VersusHead(Drawn[Pair | None]):
    """What most warps of each do, and where."""

    def draw(self, subject: Pair, width: int) -> Sequence[Content]:
        ours, theirs = subject
        rows = [line(HEAD, (f"{_named(ours)}  {ours.title}", STRONG), (f"  against {_named(theirs)}  {theirs.title}", MUTED))]
        for one, style in ((ours, STRONG), (theirs, "")):
            if one.samples is not None:
                rows += line((f"{_named(one):<{LABEL}}", MUTED), (one.most_wait, style)).wrap(width)
        return rows


class VersusTable(Drawn[Pair | None]):
    """Shares of samples that changed, then how the loops differ: sizes, how often each instruction is there, and line by line."""

    def draw(self, subject: Pair, width: int) -> Sequence[Content]:
        ours, theirs = subject
        if ours.samples is None or theirs.samples is None:
            return []
        rows = [_row("", shortened(_named(theirs), NUMBER), shortened(_named(ours), NUMBER), (MUTED, ""))]
        reasons = reason_changes(ours.samples, theirs.samples)
        rows += _section("reasons", [_shares(one, _reason(one.reason)) for one in reasons])
        both = None if ours.listing is None or theirs.listing is None else (ours.listing, theirs.listing)
        if both is not None:
            lines = line_changes(*both)[:MOST_LINES]
            rows += _section("lines", [_shares(one, _place(one)) for one in lines])
        rows += _section("loop", [*_facts(ours, theirs)])
        mixes = mix_changes(ours.samples.mix, theirs.samples.mix)[:MOST_NAMES]
        rows += _section("made of", [(f"{there:,}", f"{here:,}", (name, "")) for name, there, here in mixes])
        return [*rows, *(_diff(*both, subject) if both is not None else [])]


def _named(subject: WarpSubject) -> str:
    return f"run {subject.run.id}"


def _reason(name: str) -> Content:
    letter, colour = SIGNS.get(name, OTHERS)
    return line((f"{letter} ", f"{STRONG} {colour}"), stall(name).short)


def _place(change: ShareChange) -> Content:
    told = change.line
    return line((f"{told.file}:{told.line}  ", MUTED), told.text.strip()) if told is not None else line("")


def _shares(change: ShareChange, words: Piece) -> Cells:
    there, here = (f"{100 * share:.0f} %" if share is not None else "-" for share in (change.baseline, change.run))
    return there, here, words


def _facts(ours: WarpSubject, theirs: WarpSubject) -> Sequence[Cells]:
    """Sizes of both loops, also for one relaxation, which loops that are unrolled differently can be compared by."""
    told = [loop_facts(one.samples) for one in (theirs, ours) if one.samples is not None]
    rows: list[Cells] = []
    for words, values in (
        ("instructions", [float(one.instructions) for one in told]),
        ("relaxations of a thread", [float(one.relaxations) for one in told]),
        ("instructions per relaxation", [one.each for one in told]),
        ("loads from shared memory", [float(one.shared_loads) for one in told]),
        ("loads from device memory", [float(one.global_loads) for one in told]),
        ("loads and stores of spilled registers", [float(one.spills) for one in told]),
    ):
        if any(values):
            there, here = map(_number, values)
            rows.append((there, here, (words, "")))
    return rows


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value == int(value) else units.digits(value)


def _section(label: str, cells: Sequence[Cells]) -> list[Content]:
    return [_row(label if place == 0 else "", there, here, ("", ""), words) for place, (there, here, words) in enumerate(cells)]


def _row(label: str, there: str, here: str, styles: tuple[str, str], words: Piece = "") -> Content:
    numbers = (f"{there:>{NUMBER}}", styles[0]), (f"{here:>{NUMBER}}", styles[1] or STRONG)
    return line((f"{label:<{LABEL}}", MUTED), *numbers, "  ", words)


def _diff(ours: Listing, theirs: Listing, named: Pair) -> list[Content]:
    rows = [line(""), line(("inner loops, by the names of their instructions", STRONG))]
    for sign, listing, subject in (("-", theirs, named[1]), ("+", ours, named[0])):
        told, every = len(listing.inner), sum(listing.mix.values())
        words = f"{sign} {_named(subject)}: {in_words(listing.mix)}"
        cut = f"; only the {told} with the most samples were recorded" if told < every else ""
        rows.append(line((words, DIFF[sign]), (cut, MUTED)))
    totals = [one.samples.samples if one.samples is not None else 0 for one in named]
    for sign, one in loop_rows(ours, theirs):
        share = one.samples / (totals[sign == "-"] or 1)
        told = f"{100 * share:>4.0f} % " if share >= LEAST else " " * 7
        style = DIFF[sign] if sign != " " else ""
        rows.append(line((f"{sign} ", DIFF[sign]), told, (f"{one.offset:>5x}  ", MUTED), (one.text, style)))
    return rows
