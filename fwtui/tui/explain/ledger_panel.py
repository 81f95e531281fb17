"""The speed-of-light ledger as lines: a row for each phase, then how its expected time comes about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis import stack
from fwtui.analysis.ledger import LedgerLine, Roofs, formula
from fwtui.analysis.ranks import of_ranks
from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.stream.run import Run
from fwtui.tui.widgets import run_text, wording
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, apart, hanging, line

COLUMNS = (("launches", 9), ("relax", 9), ("bytes", 10), ("at limits", 11), ("measured", 11), ("of limits", 11))
NARROW = (("relax", 8), ("at limits", 10), ("measured", 10), ("of limits", 10))  # limits are said below then
TITLE, NARROW_TITLE = 16, 12
WIDE_CELLS = 100
HOW = "at limits = the slower of: bytes / bandwidth, relaxations / rate (bytes are the kernel's model)"


class LedgerSubject(NamedTuple):
    run: Run
    roofs: Roofs
    lines: tuple[LedgerLine, ...]
    missing: str  # what is not known, in words


class LedgerTable(Drawn[LedgerSubject | None]):
    NOTHING = line(("SPEED OF LIGHT", f"{STRONG} $text-primary")), line(("no run yet", MUTED))

    def draw(self, subject: LedgerSubject, width: int) -> Sequence[Content]:
        run = subject.run
        head = _head(run, width)
        if not subject.lines:
            return [head, line((_nothing(run), MUTED))]
        wide = width >= WIDE_CELLS
        columns, title = (COLUMNS, TITLE) if wide else (NARROW, NARROW_TITLE)
        # what is known of no phase takes no column
        columns = [(name, cells) for name, cells in columns if any(_texts(one)[name] != units.ABSENT for one in subject.lines)]
        used = title + sum(cells for _, cells in columns) + 2
        names = "".join(f"{name:>{cells}}" for name, cells in columns)
        rows = [head, line((f"{'phase':<{title}}{names}" + ("  limited by" if wide else ""), MUTED))]
        struck = "strike" if wording.doubtful(run) else ""
        rows += [_row(one, title, columns, width - used if wide else 0, struck) for one in subject.lines]
        rows += [line(""), *(line((HOW, MUTED)).wrap(width) if any(name == "at limits" for name, _ in columns) else [])]
        for one in subject.lines:
            known = [formula(subject.roofs, one)] if one.expected is not None else []
            if one.key and (known or not wide):
                name = shortened(one.title, title - 1)
                rows += hanging(name, title, known if wide else [one.limiter.sentence(), *known], width)
        if told := stack.place(run):
            rows += hanging("many graphs", title, [told], width, most=4)
        if told := of_ranks(run):
            rows += [line(""), *run_text.rank_lines(run, told, width)]
        if subject.missing:
            rows += line((subject.missing, "$text-warning")).wrap(width)
        return rows


def _head(run: Run, width: int) -> Content:
    left = line(("SPEED OF LIGHT  ", f"{STRONG} $text-primary"))
    words, style = wording.verdict(run)
    words = words.split(f" · {wording.CHECKSUM}")[0]
    room = width - left.cell_length - len(words) - 4
    what = f"run {run.id}  {wording.kernel_words(run, max(room - 8, 8))}"
    return apart(line(left, (what, STRONG)), line((words, style)), width)


def _nothing(run: Run) -> str:
    if run.simulated:
        return wording.simulated(run)
    return "no phases yet; they come after the clean passes" if run.state == "running" else "no phases were timed"


def _texts(one: LedgerLine) -> dict[str, str]:
    share = one.share
    return {
        "launches": f"{one.launches:,}",
        "relax": units.scaled(one.relaxations, "").rstrip(),
        "bytes": units.scaled(one.device_bytes, "B") if one.device_bytes else units.ABSENT,
        "at limits": units.duration(one.expected),
        "measured": units.duration(one.seconds),
        "of limits": "< 0.1 %" if share is not None and 0 < share < 0.0005 else units.percent(share),
    }


def _row(one: LedgerLine, title: int, columns: Sequence[tuple[str, int]], room: int, struck: str) -> Content:
    """A phase's numbers, and in `room` cells what limits it (without any: nothing)."""
    texts = _texts(one)
    strong = STRONG if not one.key else ""
    pieces: list[tuple[str, str]] = [(f"{shortened(one.title, title - 1):<{title}}", strong or MUTED)]
    for name, cells in columns:
        text = texts[name]
        style = MUTED if text == units.ABSENT else f"{strong} {struck}".strip() if name in ("measured", "of limits") else strong
        pieces.append((f"{text:>{cells}}", style))
    if room < 1:
        return line(*pieces)
    return line(
        *pieces, (f"  {str(one.limiter) if len(str(one.limiter)) <= room else shortened(one.limiter.what, room)}", strong)
    )
