"""A run's numbers as lines of text: headline, per-phase times, stages that are not timed, meters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content

from fwtui.analysis import sparsity
from fwtui.analysis.disturbances import disturbances, instrumentation, sum_notes
from fwtui.analysis.limits import Limit, share_of_peak
from fwtui.analysis.phase_table import UNKNOWN
from fwtui.analysis.rank_timing import Gain, RankTime, imbalance, link_bandwidth, overlap_text, rank_times
from fwtui.analysis.run_summary import BOTTLENECK, Assessment
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.fields import FIELDS
from fwtui.stream import events
from fwtui.stream.model import Evidence
from fwtui.stream.run import BROADCAST, WAIT, Run
from fwtui.stream.stages import OUTSIDE, doing
from fwtui.tui import charts
from fwtui.tui.widgets import run_labels, verdict_text
from fwtui.tui.widgets.text_panel import MUTED, STRONG, Piece, hanging_indent, justify, line

if TYPE_CHECKING:
    from fwtui.learn.questions import QuestionAnswer, QuestionKind

FILL, HALF, TRACK = "━", "╸", "─"
LABEL, NARROW_LABEL = 22, 15  # cells of the label column; on panels of fewer than WIDE cells
WIDE = 70
NUMBER = 10
ANSWER_NUMBER = 18  # cells of the number of an answer's bar
ANSWER_NAME = 20  # cells of the name before that bar
MIN_BAR, MAX_BAR = 8, 30
MIN_CACHED = 0.1  # effective bandwidth - DRAM throughput, in shares of the peak, above which caches serve part of the requests
MAX_RANKS = 8  # ranks that have a bar
MAX_LINES = 8  # lines about one part of the ranks
PEAK_RATE, BANDWIDTH, DRAM = "% of peak", "effective bandwidth", "DRAM throughput"
THEORETICAL, ACHIEVED = "theoretical occupancy", "achieved occupancy"
NOT_LIMITED, WHOLE_RUN = "not limited", "whole run"
INSTRUMENTED = "instrumented rep."
NARROW_LABELS = {BANDWIDTH: "eff. bandwidth", THEORETICAL: "theor. occ.", ACHIEVED: "achieved occ.", INSTRUMENTED: "with timers"}
SOURCES = {PEAK_RATE: "probe", BANDWIDTH: "cost model", DRAM: "GPM", THEORETICAL: "from driver", ACHIEVED: "GPM"}
# the parts of a rank's time: title, sign and colour in the bar
WORK, SENDS, WAITS = ("work", charts.BLOCK, "$primary"), ("broadcast", "▒", "$warning"), ("wait", "░", MUTED)

# colours of the bar of a phase, and substrings of the bottlenecks that have it; the first match counts
COLOURS = (
    ("$primary", (UNKNOWN,)),
    ("$secondary", ("latency",)),
    ("$text-success", ("instruction issue", "compute", "arithmetic", "integer pipe")),
    ("$text-warning", ("memory", "cache", "load/store")),
    ("$secondary", ("",)),
)


class RunSubject(NamedTuple):
    """Everything that the text of the Run panel depends on."""

    run: Run
    evidence: Evidence | None
    device: events.Device | None
    baseline: Run | None
    latest: bool  # the newest run of the session
    limit: Limit | None = None  # measured peak rate of the device; None if it was not measured
    verdict: Assessment | None = None
    fix: str = ""  # how to measure data that the explanation lacks
    next_key: str = ""  # the key that runs the next rung; empty if none does
    again: str = ""  # the key that reruns it; empty if none does
    gained: Gain | None = None  # speedup of several devices over one
    estimated_seconds: float | None = None  # estimated seconds of a repetition, from its plan
    limiters: Mapping[str, str] = {}  # bottleneck of each phase, by its key
    details: bool = False  # show the origin of each number
    back_key: str = ""  # the key that goes back to the newest run
    log_key: str = ""  # the key that opens the log


def meter(share: float | None, width: int) -> list[Piece]:
    """Return a bar in half cells, legible without colour; a positive share never gives an empty bar."""
    halves = 0 if not share else max(1, round(min(share, 1.0) * 2 * width))
    filled = FILL * (halves // 2) + HALF * (halves % 2)
    return [(filled, "$primary"), (TRACK * (width - len(filled)), MUTED)]


def parts_lines(answer: QuestionAnswer, guess: object, width: int) -> list[Content]:
    """Draw one bar for each part of an answer; a tick marks the run's answer, a label the guess."""
    most = max((part.amount for part in answer.parts), default=0.0) or 1.0
    label = min(max((len(part.title) for part in answer.parts), default=0), width - ANSWER_NUMBER - MIN_BAR - 18)
    room = max(MIN_BAR, min(MAX_BAR, width - label - ANSWER_NUMBER - 18))
    rows: list[Content] = []
    for part in answer.parts:
        right, guessed = part.key in answer.right, part.key == guess
        rows.append(
            line(
                ("✓ " if right else "  ", f"{STRONG} $text-success"),
                (f"{truncate(part.title, label):<{label}}  ", STRONG if right else ""),
                *meter(part.amount / most, room),
                f" {part.text:<{ANSWER_NUMBER - 2}} " if guessed else f" {part.text}",
                ("your guess" if guessed else "", "$text-primary"),
            )
        )
    return rows


def numbers_lines(kind: QuestionKind, numbers: Sequence[tuple[str, float]], width: int) -> list[Content]:
    """Draw a guess and the answers to one numeric question, a bar for each."""
    whole = 1.0 if kind.say is units.percent else 0.0  # shares have a fixed scale
    most = max(whole, *(number for _, number in numbers)) or 1.0
    room = max(MIN_BAR, min(MAX_BAR, width - ANSWER_NAME - ANSWER_NUMBER))
    bars = ((label, meter(number / most, room), kind.say(number)) for label, number in numbers)
    return [line(f"  {label:<{ANSWER_NAME - 2}}", *bar, f" {number}") for label, bar, number in bars]


def title(s: RunSubject, width: int) -> Content:
    """Return the title row: the run on the left, its verification on the right."""
    run = s.run
    result, style = run_labels.verdict(run)
    most = max(width - 24, 12)
    back = "" if s.latest else f"  ({s.back_key}: newest)"
    number = f"RUN {run.id}  "
    right = line((result, style)).truncate(most, ellipsis=True)
    subject = run_labels.describe_kernel(run, max(width - right.cell_length - len(number) - len(back) - 2, 12))
    return justify(line((number, f"{STRONG} $text-primary"), (subject, STRONG), (back, MUTED)), right, width)


def explained(s: RunSubject, width: int, *only: str) -> list[Content]:
    """Return the chosen lines of the summary: reason, bottleneck, next rung."""
    return verdict_text.explained(s.verdict, width, s.fix, s.next_key, only, s.details) if s.verdict is not None else []


def progress(s: RunSubject, width: int) -> list[Content]:
    """Return stage, share and remaining time of a running run; for an ended run its remarks."""
    run, progress = s.run, s.run.progress
    if run.state != "running":
        return remarks(s, width)
    share = min(progress.done, 1.0) if progress is not None else None
    left = f"{_about(progress.left)} left" if progress is not None and progress.left else ""
    left = "only once" if run.stage == "compile" and not left else left  # compiled code is cached
    more = "+" if len(run.samples) >= events.MAX_SAMPLES else ""
    timed = f"{len(run.samples)}{more} timed" if run.samples else ""
    bar = meter(share, max(4, width - LABEL - 6 - 27))
    after = f"{100 * share:>4.0f} %" if share is not None else " " * 6
    doing_now = f"{truncate(doing(run.stage), LABEL - 1):<{LABEL}}"
    return [line((doing_now, "$primary"), *bar, after, (f"  {left:<14}{timed:>11}".rstrip(), MUTED))]


def _about(seconds: float) -> str:
    """Format an estimated time in whole seconds: more digits would flicker."""
    return units.duration(seconds) if seconds >= 119.5 else f"{seconds:.0f} s" if seconds >= 0.95 else "under 1 s"


def remarks(s: RunSubject, width: int) -> list[Content]:
    """Return the remarks about an ended run's numbers, as many on one line as fit."""
    run = s.run
    message = run.done.message if run.done is not None else ""
    if run.state != "done":
        if not message and run.state == "failed":
            message = f"the run failed; see the log ({s.log_key})"
        return line((message or "stopped early; these are the measurements up to then", MUTED)).wrap(width)
    rows: list[Content] = []
    if run.indicative:
        rows.append(line(("low confidence", "$text-warning"), (f": {run.indicative}", MUTED)))
    for word, why, _ in disturbances(run, s.evidence):
        rows.append(line((word, "$text-warning"), (f": {why}{f'; {s.again} reruns it' if s.again else ''}", MUTED)))
    evidence = s.evidence if run.backend == "cuda" else None
    if evidence is not None and evidence.power_watts is not None:
        clock = f", SM clock {evidence.gpu_clock_mhz:.0f} MHz" if evidence.gpu_clock_mhz is not None else ""
        rows.append(line((f"average power {evidence.power_watts:.0f} W{clock}", MUTED)))
    if not rows and message:
        rows.append(line((message, MUTED)))
    lines: list[Content] = []
    for one in rows:
        if lines and lines[-1].cell_length + 3 + one.cell_length <= width:
            lines[-1] = line(lines[-1], "   ", one)
        else:
            lines += one.wrap(width)
    return lines


def key_numbers(s: RunSubject, width: int) -> list[Content]:
    """Return per-phase times, effective bandwidth and occupancy in three lines, for a panel with few rows."""
    run = s.run
    if run.simulated or run.seconds is None:
        return []
    lines: list[Content] = []
    if run.phases:
        times = [f"{p.title} {units.duration(p.seconds)} ({units.percent(p.share)})" for p in run.phases]
        lines += hanging_indent("per-phase times", NARROW_LABEL + 1, [*times, *sum_notes(run)[1:2]], width, most=2)
    requested, dram = share_of_peak(run, s.device), s.evidence.dram_utilisation if s.evidence is not None else None
    if run.bandwidth is not None:
        of_peak = f", {units.percent(requested)} of peak" if requested is not None else ""
        parts = [f"{units.bandwidth(run.bandwidth)}{of_peak}"]
        parts += [f"DRAM throughput {units.percent(dram)}"] if run.backend == "cuda" and dram is not None else []
        lines += hanging_indent("eff. bandwidth", NARROW_LABEL + 1, parts, width, most=1)
    if run.backend == "cuda":
        theory, achieved = run.main_occupancy, s.evidence.sm_occupancy if s.evidence is not None else None
        possible = theory.warps / theory.max_warps if theory is not None and theory.max_warps else None
        part = run.phase_title(theory.op) if theory is not None and len(run.phases) > 1 else WHOLE_RUN
        named = (("achieved", achieved, WHOLE_RUN), ("theoretical", possible, part))
        both = [f"{name} {units.percent(share)}{f' ({of})' * (share is not None)}" for name, share, of in named]
        lines += hanging_indent("occupancy", NARROW_LABEL + 1, both, width, most=1)
    return lines


def label_cells(width: int) -> int:
    """Return the width of the label column of a panel."""
    return LABEL if width >= WIDE else NARROW_LABEL


def phases(s: RunSubject, width: int) -> list[Content]:
    """Return the per-phase times: a bar, the bottleneck, the time and the share of each phase; empty rows before they exist."""
    run = s.run
    if run.simulated or (not run.phases and run.state != "running"):
        return []
    titles = [p.title for p in run.phases] or [p.title for p in run.phase_names]
    seconds = charts.finite([p.seconds for p in run.phases]) or (None,) * len(titles)
    shares = [p.share for p in run.phases] or [None] * len(titles)
    limiters = [s.limiters.get(p.key, "") for p in run.phases] or [""] * len(titles)
    name = label_cells(width) + 1 if max(map(len, titles), default=0) >= NARROW_LABEL else NARROW_LABEL + 1
    rest = width - name - 2 * NUMBER - 1
    bound = min(max(map(len, [BOTTLENECK, *limiters])) + 2, rest - 2 * MIN_BAR) if width >= WIDE else 0
    room = max(1, rest - bound)
    number = "strike" if run.phases and run_labels.is_unreliable(run) else ""
    notes = sum_notes(run) if run.phases else ()
    note = next((one for one in notes if len(one) < room), "")
    head = f"{'PER-PHASE TIMES':<{name}}{BOTTLENECK if bound else '':<{bound}}{note:>{room}}"
    rows = [line((f"{head}{'time':>{NUMBER}}{'share':>{NUMBER}}", MUTED))]
    for title, limiter, bar, took, share in zip(titles, limiters, charts.bars(seconds, room), seconds, shares, strict=True):
        colour = next(colour for colour, parts in COLOURS if any(part in (limiter or UNKNOWN) for part in parts))
        rows.append(
            line(
                (f"{truncate(title, name - 1):<{name}}", MUTED),
                (f"{truncate(limiter, bound - 1):<{bound}}" if bound else "", colour),
                (bar, colour),
                (f"{units.duration(took) if took is not None else '':>{NUMBER}}", number),
                (f"{units.percent(share) if share is not None else '':>{NUMBER}}", MUTED),
            )
        )
    return rows


def ranks(s: RunSubject, width: int) -> list[Content]:
    """Return the times of the run's ranks, and their speedup over one device."""
    shares = rank_times(s.run)
    if not shares:
        return []
    rows = rank_lines(s.run, shares, width)
    if s.gained is not None:
        reference = f"run {s.gained.reference.id}, {s.gained.reference.title}, is the fastest on one {s.gained.one}"
        shared = ["the processes share the cores of one machine"] * (s.gained.efficiency is None)
        rows += hanging_indent("speedup", LABEL, [s.gained.text, reference, *shared], width, most=MAX_LINES)
    return rows


def rank_lines(run: Run, shares: Sequence[RankTime], width: int) -> list[Content]:
    """Draw a bar for each rank from its work, broadcasts and waiting time, then explain them."""
    number = "strike" if run_labels.is_unreliable(run) else ""
    parts = (WORK, SENDS, WAITS)
    numbered_parts = parts if width >= LABEL + MIN_BAR + 3 * NUMBER + 1 else parts[2:]
    room = max(1, width - LABEL - len(numbered_parts) * NUMBER - 1)
    most = max(one.seconds for one in shares) or 1.0
    rows = [line((f"{'ranks':<{LABEL + room}} {''.join(f'{title:>{NUMBER}}' for title, _, _ in numbered_parts)}", MUTED))]
    for one in shares[:MAX_RANKS]:
        seconds = {WORK: one.work, **{part: one.share(key) * one.seconds for part, key in ((SENDS, BROADCAST), (WAITS, WAIT))}}
        texts = "".join(f"{units.duration(seconds[part]):>{NUMBER}}" for part in numbered_parts)
        label = (f"{truncate(one.name, LABEL - 1):<{LABEL}}", MUTED)
        rows.append(line(label, *_stacked([seconds[part] / most for part in parts], parts, room), " ", (texts, number)))
    if len(shares) > MAX_RANKS:
        rows.append(line((f"{'':<{LABEL}}and {units.counted(len(shares) - MAX_RANKS, 'other rank')}", MUTED)))
    link, even = link_bandwidth(run), imbalance(shares)
    explanations = [
        (SENDS, [f"of a panel to every rank: {link}"] if link is not None else ["of a panel to every rank"]),
        (WAITS, ["for the owner rank to produce the panel", overlap_text(run)]),
    ]
    for (title, sign, style), notes in explanations:
        first, *others = hanging_indent(title, LABEL, [*filter(None, notes)], width, most=MAX_LINES)
        rows += [line((sign, style), (f" {first.plain[: LABEL - 2]}", MUTED), first[LABEL:]), *others]
    if even is not None:
        rows += hanging_indent("imbalance", LABEL, [f"{units.digits(even)}: maximum / mean work of a rank"], width)
    return rows


def _stacked(shares: Sequence[float], parts: Sequence[tuple[str, str, str]], room: int) -> list[Piece]:
    """Return one bar of several parts; a positive part has at least one cell if the bar is long enough."""
    cells = [max(1, round(share * room)) if share > 0 else 0 for share in shares]
    while sum(cells) > room:
        cells[cells.index(max(cells))] -= 1
    pieces: list[Piece] = [(sign * count, style) for count, (_, sign, style) in zip(cells, parts, strict=True)]
    return [*pieces, " " * (room - sum(cells))]


def outside(s: RunSubject, width: int) -> list[Content]:
    """Return the stages that are not timed, and the time of the instrumented repetition."""
    run = s.run
    if run.simulated:
        return []
    lines: list[Content] = []
    if (instrumented := run.instrumented_repetition) is not None:
        parts = [f"{units.duration(instrumented.seconds)}{' in a CUDA graph' * instrumented.captured}"]
        parts += [f"median of {instrumented.passes:,}"] * (instrumented.passes > 1)
        struck = "strike" if run_labels.is_unreliable(run) else ""
        name = INSTRUMENTED if width >= WIDE else NARROW_LABELS[INSTRUMENTED]
        lines += hanging_indent(name, label_cells(width), [*parts, *instrumentation(run)], width, struck)
    parts = []
    for stage in OUTSIDE:
        if (seconds := run.stage_seconds(stage.key)) is not None:
            word = stage.copy.upper() if run.backend == "cuda" and stage.copy in ("h2d", "d2h") else stage.short
            parts.append(f"{word} {units.duration(seconds)}{' once' if stage.key == 'compile' else ''}")
    return lines + hanging_indent("not timed", label_cells(width), parts, width, most=4)


def meters(s: RunSubject, width: int) -> list[Content]:
    """Return % of peak rate, bandwidth and occupancy, each with its denominator; the last row names values that are missing."""
    run, cuda = s.run, s.run.backend == "cuda"
    if run.simulated:
        return []
    peak = s.device.peak_bytes_per_second if s.device is not None and cuda else None
    of_peak = ["of peak"] if peak is None or width < 90 else [f"of {units.bandwidth(peak)} peak", "of peak"]
    of_all = [*of_peak]
    if run.device_count > 1 and cuda:
        of_peak = [f"{one}, per GPU" for one in of_peak]
        of_all = [f"of {units.bandwidth(peak * run.device_count)} peak, all GPUs"] if peak is not None else []
        of_all.append("of peak, all GPUs")
    struck = "strike" if run_labels.is_unreliable(run) else ""
    limit = s.limit.share if s.limit is not None else None
    requested = share_of_peak(run, s.device)
    dram, achieved = (s.evidence.dram_utilisation, s.evidence.sm_occupancy) if cuda and s.evidence is not None else (None, None)
    cached = requested is not None and (requested > 1 or (dram is not None and requested > dram + MIN_CACHED))
    served = [f"{one}; caches serve part" for one in of_all] if cached else []
    shares = [
        (PEAK_RATE, limit, "", _of_peak(s.limit, cuda), struck),
        (BANDWIDTH, requested, units.bandwidth(run.bandwidth), [*served, *of_all], struck),
    ]
    if cuda:
        moved = units.bandwidth(dram * peak) if dram is not None and peak else units.ABSENT
        theory = run.main_occupancy
        possible = theory.warps / theory.max_warps if theory is not None and theory.max_warps else None
        part = run.phase_title(theory.op) if theory is not None and len(run.phases) > 1 else ""
        shares += [
            (DRAM, dram, moved, of_peak, ""),
            (THEORETICAL, possible, "", [*(f"{part}: {one}" for one in limits(theory) if part), *limits(theory)], ""),
            (ACHIEVED, achieved, "", [f"{WHOLE_RUN}, measured", WHOLE_RUN], ""),
        ]
    missing = [label for label, share, amount, _, _ in shares if share is None and amount in ("", units.ABSENT)]
    timed = run.seconds is not None
    rows = [_metered(*one, width, SOURCES[one[0]] if s.details else "") for one in shares if one[0] not in missing]
    return [*rows, *(hanging_indent("not available", label_cells(width), missing, width, MUTED) if missing and timed else [])]


def _of_peak(limit: Limit | None, cuda: bool) -> list[str]:
    """Describe the measured peak rate that the share refers to, in ever shorter texts."""
    if limit is None:
        return []
    most, form = units.rate(limit.relaxations_per_second), limit.form
    clock = f"{limit.clock_mhz:.0f} MHz{' (measured)' * (not cuda)}" if limit.clock_mhz else ""
    at = f"{most} at {clock}" if clock else most
    return [f"of {at}: {form.title} ({form.instructions})", f"of {at}: {form.title}", f"of {most}: {form.title}", f"of {most}"]


def limits(theory: events.Occupancy | None) -> list[str]:
    """Name the limiters of the theoretical occupancy, in ever shorter texts."""
    if theory is None:
        return []
    if theory.warps >= theory.max_warps:
        return [NOT_LIMITED]
    amounts = {"registers": f"{theory.registers}/thread", "shared memory": f"{units.memory(theory.shared_bytes)}/block"}
    names = " and ".join(theory.limiters)
    full = " and ".join(f"{name} ({amounts[name]})" if name in amounts else name for name in theory.limiters)
    return [f"limited by {full}", f"limited by {names}", names] if names else []


def _metered(
    label: str, share: float | None, amount: str, notes: Sequence[str], number: str, width: int, source: str = ""
) -> Content:
    """Return label, bar, amount, share, and the longest note that fits; without a share no bar.

    `source` is the origin of the number; empty if it is not shown.
    """
    cells = label_cells(width)
    shown = label if cells == LABEL else NARROW_LABELS.get(label, label)
    room = max(4, min(MAX_BAR, width - cells - 52))
    if share is None:
        return line((f"{shown:<{cells}}", MUTED), (amount, number), (f"  ({source})" if source else "", MUTED))
    sourced = [*(f"{note} ({source})" for note in notes), *notes] if source else notes
    note = next((one for one in sourced if cells + room + 20 + len(one) <= width), "")
    return line(
        (f"{shown:<{cells}}", MUTED),
        *meter(share, room),
        (f"{amount:>11}", number),
        (f"{units.percent(share):>8}", number),
        (f" {note}", MUTED),
    )


def checked(s: RunSubject, width: int) -> list[Content]:
    """Return how the distances were verified, and the input."""
    run = s.run
    lines: list[Content] = []
    if run.verdict is not None and run.verdict.how:
        checksum = [f"checksum {run.verdict.checksum}"] * bool(s.details and run.verdict.checksum)
        lines += hanging_indent("check", label_cells(width), [run.verdict.how, *checksum], width)
    if run.graph is not None:
        g = run.graph
        parts = [units.vertices(g.vertices), units.counted(g.edges, "edge")]
        if g.low is not None and g.high is not None:
            parts.append(f"weights {g.low:g}..{g.high:g}")
        if g.negative_share:
            parts.append(f"{units.percent(g.negative_share)} negative")
        parts += [part for part in (g.name, g.note) if part]
        lines += hanging_indent("graph", label_cells(width), parts, width)
    e, defaults = run.experiment, Experiment()
    set_here = [
        f"{field.title.lower()} {text}{' s' * (field.metavar == 'SECONDS')}"
        for field in FIELDS[1:]
        if (text := field.show(e)) and text not in ("no", "0") and (s.details or text != field.show(defaults))
    ]
    options = [f"{name} {value}" for name, value in e.options.items()] if s.details else run_labels.chosen_options(e)
    lines += hanging_indent("settings", label_cells(width), [*set_here, *options], width, most=4) if set_here or options else []
    if left_out := sparsity.describe_order(run, s.estimated_seconds if run.seconds is None else None):
        lines += hanging_indent("order", label_cells(width), left_out, width)
    return lines
