"""Panels of numbers: the phase table (speed of light), hardware counters, and the cores and caches of a CPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis.cpu import MEMORY, CpuFacts, level_name, vectors
from fwtui.analysis.disturbances import sum_notes, timers_distort
from fwtui.analysis.phase_table import PhaseRow, Roofs, formula, slowest_line
from fwtui.analysis.rank_timing import rank_times
from fwtui.analysis.run_summary import BOTTLENECK
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.live.counters import METRICS, PROFILED, counter_text
from fwtui.stream.events import CpuLoop, LevelLimit
from fwtui.stream.run import Run
from fwtui.tui.widgets import run_labels, run_text
from fwtui.tui.widgets.run_text import meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, hanging_indent, justify, line

ROOFLINE, MEASURED, SHARE, GAIN = "roofline time", "measured", "% of roofline", "at most"
COLUMNS = (("launches", 9), ("relax", 8), ("requested", 10), (ROOFLINE, 14), (MEASURED, 10), (SHARE, 14), (GAIN, 9))
NARROW = ((ROOFLINE, 15), (MEASURED, 10), (SHARE, 15), (GAIN, 9))  # the bottlenecks are listed below the table
TITLE, NARROW_TITLE = 14, 12
WIDE_CELLS = 100
HOW = {  # definitions of columns
    ROOFLINE: "roofline time = max(bytes / peak bandwidth, relaxations / peak rate), DRAM bytes if measured, else requested ones",
    GAIN: "at most: speedup of the run if this phase took its roofline time",
}
CPU_ROOFLINE = "roofline time = max(requested bytes / bandwidth, relaxations / peak rate), both of all cores"
CPU_HEAD = line(("CORES AND CACHES  ", f"{STRONG} $text-primary"))
CPU_LABEL = 10
MAX_NAMED = 6  # instructions of a loop
HOLDS = "◀ matrix"
MIN_NAME = 20  # cells of a counter's name
MAX_HEAD = 15  # cells of a phase over its counters


class PhaseTableSubject(NamedTuple):
    run: Run
    roofs: Roofs
    lines: tuple[PhaseRow, ...]
    missing: str  # roofs that are not measured
    formulas: bool = False  # show the calculation of each roofline time
    brief: bool = False  # other panels need the rows: no definitions, and below the table only the longest phase


class PhaseTable(TextPanel[PhaseTableSubject | None]):
    NOTHING = line(("SPEED OF LIGHT", f"{STRONG} $text-primary")), line(("no run yet", MUTED))

    def draw(self, subject: PhaseTableSubject, width: int) -> Sequence[Content]:
        run = subject.run
        head = _head(run, width)
        if not subject.lines:
            later = "no per-phase times yet; they follow the timed repetitions"
            none = later if run.state == "running" else "no phases were timed"
            return [head, line((run_labels.simulated(run) if run.simulated else none, MUTED))]
        wide = width >= WIDE_CELLS
        columns, title = (COLUMNS, TITLE) if wide else (NARROW, NARROW_TITLE)
        # a column without any value is omitted
        total = sum(one.seconds for one in subject.lines if one.key or len(subject.lines) == 1)
        # the timers made the times of a distorted run, so nothing bounds its speedup
        texts = [_texts(one, total) | ({GAIN: units.ABSENT} if timers_distort(run) else {}) for one in subject.lines]
        columns = [(name, cells) for name, cells in columns if any(text[name] != units.ABSENT for text in texts)]
        used = title + sum(cells for _, cells in columns) + 2
        heads = "".join(f"{name:>{cells}}" for name, cells in columns)
        rows = [head, line((f"{'phase':<{title}}{heads}" + f"  {BOTTLENECK}" * wide, MUTED))]
        struck = "strike" if run_labels.is_unreliable(run) else ""
        room, slowest = (width - used if wide else 0), slowest_line(subject.lines)
        below: list[Content] = []  # sentences that do not fit in the table
        for one, text in zip(subject.lines, texts, strict=True):
            limiter = str(one.limiter)
            fits = len(limiter) <= room
            rows.append(_row(one, text, title, columns, limiter if fits else truncate(one.limiter.what, room) * wide, struck))
            parts = [limiter] * (not fits and (one is slowest or not subject.brief))
            parts += [formula(subject.roofs, one)] * (subject.formulas and one.roofline_seconds is not None)
            below += hanging_indent(truncate(one.title, title - 1), title, parts, width) if one.key and parts else []
        how = HOW if run.backend == "cuda" else HOW | {ROOFLINE: CPU_ROOFLINE}
        rows += hanging_indent("", 0, [how[name] for name, _ in columns if name in how and not subject.brief], width, MUTED)
        if notes := sum_notes(run):
            rows += line((notes[0], f"{MUTED} {struck}".rstrip())).wrap(width)
        if text := rank_times(run):
            rows += [line(""), *run_text.rank_lines(run, text, width)]
        rows += below
        if subject.missing:
            rows += line((subject.missing, "$text-warning")).wrap(width)
        return rows


def _head(run: Run, width: int) -> Content:
    left = line(("SPEED OF LIGHT  ", f"{STRONG} $text-primary"))
    text, style = run_labels.verdict(run)
    room = width - left.cell_length - len(text) - 4
    what = f"run {run.id}  {run_labels.describe_kernel(run, max(room - 8, 8))}"
    return justify(line(left, (what, STRONG)), line((text, style)), width)


def _texts(one: PhaseRow, total: float) -> dict[str, str]:
    """Return the cells of a phase; `total` is the time of all phases."""
    share, roofline = one.share, one.roofline_seconds
    best = total - one.seconds + roofline if roofline is not None and one.key else roofline
    return {
        "launches": f"{one.launches:,}",
        "relax": units.scaled(one.relaxations, "").rstrip(),
        "requested": units.scaled(one.device_bytes, "B") if one.device_bytes else units.ABSENT,
        ROOFLINE: units.duration(roofline),
        MEASURED: units.duration(one.seconds),
        SHARE: "< 0.1 %" if share is not None and 0 < share < 0.0005 else units.percent(share),
        GAIN: units.gain(total / best) if best and best < total else units.ABSENT,
    }


def _row(
    one: PhaseRow, texts: Mapping[str, str], title: int, columns: Sequence[tuple[str, int]], bottleneck: str, struck: str
) -> Content:
    strong = STRONG if not one.key else ""
    pieces: list[tuple[str, str]] = [(f"{truncate(one.title, title - 1):<{title}}", strong or MUTED)]
    for name, cells in columns:
        text = texts[name]
        style = MUTED if text == units.ABSENT else f"{strong} {struck}".strip() if name in (MEASURED, SHARE, GAIN) else strong
        pieces.append((f"{text:>{cells}}", style))
    return line(*pieces, (f"  {bottleneck}", strong))


class CpuSubject(NamedTuple):
    """A run on a CPU, and one of its kernel functions, with the title of its phase."""

    run: int
    title: str
    facts: CpuFacts
    loop: CpuLoop | None
    limit: float | None  # measured peak rate of all cores, relaxations/s
    levels: tuple[LevelLimit, ...]
    why: str


class CpuPanel(TextPanel[CpuSubject | None]):
    NOTHING = (CPU_HEAD,)

    def draw(self, subject: CpuSubject, width: int) -> Sequence[Content]:
        head, facts = line(CPU_HEAD, (subject.title, STRONG)), subject.facts
        rows = [head, *line((subject.why, STRONG)).wrap(width)] if subject.why else [head]
        if facts.busy is not None and facts.cores:
            text = f"{facts.busy:.1f} of {facts.cores} busy"
            rows.append(_measure("cores", facts.used, width, text))
        if facts.each is not None:
            cycles = (facts.cores or 0) * (facts.clock_mhz or 0) * 1e6  # cycles per second of all cores
            most = subject.limit / cycles if subject.limit and cycles else None
            share = facts.each / most if most else None
            of, at = (f" of {units.digits(most)}", f", {units.percent(share)} of peak") if most else ("", "")
            rows.append(_measure("per cycle", share, width, f"{units.digits(facts.each)}{of} relax{at}"))
        if facts.clock_mhz:
            rows.append(_measure("clock", None, width, f"{facts.clock_mhz:.0f} MHz after the run; nominal in a VM"))
        loop = hanging_indent("loop", CPU_LABEL, _loop_texts(subject), width, most=5)
        return [*rows, *_levels(subject, width), *loop]


def _loop_texts(subject: CpuSubject) -> list[str]:
    loop = subject.loop
    if loop is None:
        return ["machine code not available: it was not compiled on this machine"]
    total = sum(loop.mix.values())
    facts = [vectors(loop)]
    if total and loop.relaxations:
        rate = subject.facts.instructions_a_cycle(loop, subject.facts.each)
        facts.append(f"{units.counted(total, 'instruction')} for {units.counted(loop.relaxations, 'relaxation')}")
        facts += [f"{units.digits(rate)} instructions of the loop per cycle"] if rate is not None else []
        named = Counter(loop.mix).most_common(MAX_NAMED)
        facts.append(", ".join(f"{count:,} {name}" for name, count in named))
    return facts


def _levels(subject: CpuSubject, width: int) -> list[Content]:
    """Return a row per cache and for memory: size, measured bandwidth, and a mark at the one that holds the matrix."""
    facts, measured = subject.facts, {one.level: one for one in subject.levels}
    if not facts.caches:
        return hanging_indent("caches", CPU_LABEL, ["this system does not report its caches"], width)
    rows = [line((f"{'level':<{CPU_LABEL}}{'size / cores':>13}{'all-core bandwidth':>19}", MUTED))]
    sizes = {cache.level: f"{units.memory(cache.bytes)}{f' / {cache.cores}' * (cache.cores > 1)}" for cache in facts.caches}
    for level in (*sizes, MEMORY):
        one = measured.get(level)
        rate = units.bandwidth(one.bytes_per_second) + " (noisy)" * one.noisy if one is not None else units.ABSENT
        holds = level == facts.level
        rate_cell = (f"{sizes.get(level, ''):>13}{rate:>19}", STRONG if holds else "")
        rows.append(line((f"{level_name(level):<{CPU_LABEL}}", MUTED), rate_cell, (f"  {HOLDS}" if holds else "", "$primary")))
    return [*rows, *hanging_indent("matrix", CPU_LABEL, [units.memory(facts.matrix)], width)]


def _measure(label: str, share: float | None, width: int, text: str) -> Content:
    room = max(4, min(24, width - CPU_LABEL - len(text) - 2))
    bar = meter(share, room) if share is not None else []
    return line((f"{label:<{CPU_LABEL}}", MUTED), *bar, (f" {text}" if bar else text, STRONG))


class CountersTable(TextPanel["Run | None"]):
    """The hardware counters of a run, from a profiler: a column per kernel function, stacked if the panel is narrow."""

    def draw(self, subject: Run, width: int) -> Sequence[Content]:
        counters_by_op = subject.counters
        metrics = [metric for metric in METRICS if any(metric.key in counters for counters in counters_by_op.values())]
        texts = {op: [counter_text(metric, counters) for metric in metrics] for op, counters in counters_by_op.items()}
        heads = {op: truncate(subject.phase_title(op), MAX_HEAD) for op in counters_by_op}
        cells = 2 + max(map(len, [*heads.values(), *(text for column in texts.values() for text in column)]), default=0)
        name = min(1 + max((len(metric.title) for metric in metrics), default=0), max(MIN_NAME, width - cells))
        each = max(1, (width - name) // cells)
        lines = [line(("COUNTERS  ", f"{STRONG} $text-primary"), (f"run {subject.id} · {PROFILED}", MUTED)), line("")]
        for first in range(0, len(counters_by_op), each):
            ops = list(counters_by_op)[first : first + each]
            lines += [line("")] * bool(first)
            lines.append(line(" " * name, *((f"{heads[op]:>{cells}}", STRONG) for op in ops)))
            for place, metric in enumerate(metrics):
                values = (f"{texts[op][place]:>{cells}}" for op in ops)
                lines.append(line((f"{truncate(metric.title, name - 1):<{name}}", MUTED), *values))
        return lines
