"""The ladder: one line per rung, the fastest at the top; the bars are rates on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import floor, log10
from pathlib import Path
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis.ladder import Rung, baseline, build_ladder, select_rungs
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.learn.placeholders import large_number
from fwtui.stream.run import Run
from fwtui.tui.charts.figure import tick_text
from fwtui.tui.charts.scale import Scale, ticks
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, line, longest
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel

RISE, BELOW = "█", "░"  # parts of a bar: the gain of the rung, and the rate of the previous rung
MARK = 2  # cells of the cursor before a name
MAX_NAME = 24
RATE, TIME, GAIN, HERE = 9, 10, 10, 16  # minimum cells of the numbers
WITH_TIME, WITH_HERE = 56, 73  # minimum width with a column of times, and with a column of this machine's rates
MAX_THICKER = 2  # rows of a bar after the first
EACH_TICK = 7  # cells of a tick label with its gap


class Ladder(NamedTuple):
    """A ladder of at least two rungs: its title, the device of the runs, and by kernel a rate of this machine and its n."""

    rungs: tuple[Rung, ...]
    title: str
    where: str
    here: Mapping[str, tuple[float, int]] = {}  # relaxations per second

    def heads(self, hidden: Sequence[Rung]) -> tuple[str, ...]:
        """Return heads in order of decreasing length; `hidden` are the rungs that do not fit."""
        n = f"n = {self.rungs[0].run.n:,}"
        short, named = f"{n} · {self.where}", "; ".join(rung.run.title for rung in hidden)
        less = (f" · hidden: {named}", f" · {units.counted(len(hidden), 'rung')} hidden") if hidden else ("",)
        return f"Floyd-Warshall, all shortest paths, {short}{less[0]}", *(f"{short}{one}" for one in less), short, n


class RecordedLadder(NamedTuple):
    """The ladder that ships with the program, its session, and the first step of the course about each kernel: name and title."""

    ladder: Ladder | None = None
    session: Path | None = None
    steps: Mapping[str, tuple[str, str]] = {}


class LadderData(NamedTuple):
    """Data of the ladders, read in the background."""

    recorded: RecordedLadder
    session_runs: tuple[tuple[str, Run], ...]  # device and run: runs of this machine in the user's sessions


def ladder_of(runs: Iterable[Run], where: str) -> Ladder | None:
    """Return the ladder of these runs; None if it has fewer than two rungs."""
    return ladder_on(build_ladder(runs), where)


def ladder_on(rungs: tuple[Rung, ...], where: str) -> Ladder | None:
    """Return the ladder of these rungs; None if there are fewer than two."""
    if len(rungs) < 2:
        return None
    rates = [large_number(rung.run.rate or 0.0) for rung in rungs]
    return Ladder(rungs, f"From {rates[0]} to {rates[-1]} relaxations a second", where)


class LadderSubject(NamedTuple):
    ladder: Ladder
    rows: int  # available height
    marked: int | None = None  # index of the rung under the cursor


class LadderChart(TextPanel["LadderSubject | None"]):
    """The ladder as bars, one per rung. A small chart hides the rungs with the smallest gains; a large one explains each rung."""

    def draw(self, subject: LadderSubject, width: int) -> Sequence[Content]:
        ladder, rows, marked = subject
        lines = [*Content(ladder.title).stylize(STRONG).wrap(width)]
        room = max(2, rows - len(lines) - 2)
        rungs = select_rungs(ladder.rungs, room, marked or 0)
        heads = ladder.heads([rung for rung in ladder.rungs if rung not in rungs])
        lines.append(longest((line((head, MUTED)) for head in heads), width))
        name = min(MAX_NAME, max(len(rung.run.title) for rung in rungs), max(8, width // 3))
        base = baseline([rung.run for rung in ladder.rungs])
        head = f"  vs {base.title}"
        cells = max(GAIN, len(head))
        numbers = RATE + cells + (TIME if width >= WITH_TIME else 0)
        rate_cells = HERE if ladder.here and width >= WITH_HERE else 0
        bar = max(1, width - MARK - name - 1 - numbers - rate_cells)
        rates = [rung.run.rate or 1.0 for rung in rungs]
        scale = Scale(10.0 ** floor(log10(rates[0])), max(*rates, 10 * rates[0]), True)
        titles = f"{_numbers('time', 'relax/s', f'{head:>{cells}}', width)}{'here' * bool(rate_cells):>{rate_cells}}"
        lines.append(line((f"{_axis(scale, name + MARK + 1, bar)}{titles}", MUTED)))
        kernels = [registry().get(rung.run.experiment.kernel) for rung in rungs]
        each = room // len(rungs)
        texts = next(
            (found for found in map(partial(_texts, kernels, width - MARK), ("lesson", "summary")) if _fits(found, each)), []
        )
        spare = each - 1 - max(map(len, texts), default=0)
        ends = [max(1, round(scale.share(rate) * bar)) for rate in rates]
        for place in reversed(range(len(rungs))):
            run, times, _ = rungs[place]
            here = marked is not None and run is ladder.rungs[marked].run
            below = min(ends[place - 1], ends[place] - 1) if place else 0
            own, n = ladder.here.get(run.experiment.kernel, (0.0, 0))
            faster = f"{'baseline' if run is base else units.gain(times):>{cells}}"
            figures = _numbers(units.duration(run.seconds), _bare(rates[place]), faster, width)
            drawn = (BELOW * below, MUTED), (f"{RISE * (ends[place] - below):<{bar - below}}", "$primary")
            lines.append(
                line(
                    (f"{'>' if here else ' ':<{MARK}}{truncate(run.title, name):<{name}} ", STRONG if here else ""),
                    *drawn,
                    (figures, STRONG if here else ""),
                    (f"{f'{_bare(own)} n {n}' if own and rate_cells else '':>{rate_cells}}", "$text-accent"),
                )
            )
            lines += [line(" " * (MARK + name + 1), *drawn)] * min(spare - 1, MAX_THICKER)
            lines += [line(" " * MARK, text.stylize(MUTED)) for text in (texts[place] if texts else ())]
            lines += [line("")] * (spare > 0)
        return lines


def _texts(kernels: Sequence[Kernel | None], width: int, part: str) -> list[Sequence[Content]]:
    """Return the lesson or the summary of each kernel in lines."""
    return [Content(getattr(kernel, part)).wrap(width) if kernel is not None else () for kernel in kernels]


def _fits(texts: Sequence[Sequence[Content]], rows: int) -> bool:
    return all(len(text) < rows for text in texts)


def _bare(rate: float) -> str:
    return units.scaled(rate, "").strip()


def _numbers(time: str, rate: str, gain: str, width: int) -> str:
    return f"{time:>{TIME}}" * (width >= WITH_TIME) + f"{rate:>{RATE}}{gain}"


def _axis(scale: Scale, start: int, bar: int) -> str:
    """Return the axis above the bars: labels of powers of ten, each at the end of a bar of that rate."""
    cells = " " * (start + bar)
    for tick in ticks(scale, max(1, bar // EACH_TICK)):
        text, place = tick_text(tick, _bare), start + round(scale.share(tick) * bar)
        if place + len(text) <= len(cells):
            cells = f"{cells[:place]}{text}{cells[place + len(text) :]}"
    return cells
