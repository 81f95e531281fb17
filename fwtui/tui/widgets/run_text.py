"""A run's numbers as lines of text: headline, phases, what happened outside the clock, meters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content

from fwtui.analysis import answers, sparsity
from fwtui.analysis.disturbances import disturbances, instrumentation
from fwtui.analysis.ledger import UNKNOWN
from fwtui.analysis.limits import Limit, share_of_peak
from fwtui.analysis.ranks import Gain, OfRank, carried, hidden, imbalance, of_ranks
from fwtui.analysis.verdict import Assessment
from fwtui.common import units
from fwtui.common.text import shortened
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.fields import FIELDS
from fwtui.stream import events
from fwtui.stream.model import Evidence
from fwtui.stream.run import BROADCAST, WAIT, Run
from fwtui.stream.stages import OUTSIDE, doing
from fwtui.tui import charts
from fwtui.tui.widgets import verdict_text, wording
from fwtui.tui.widgets.drawn import MUTED, STRONG, Piece, apart, hanging, line

if TYPE_CHECKING:
    from fwtui.learn.questions import QuestionAnswer, QuestionKind

FILL, HALF, TRACK = "━", "╸", "─"
LABEL = 19  # cells of the label column
NUMBER = 10
WORDS = 18  # cells of the number of an answer's bar
WHOSE = 20  # cells of whose number it is
LEAST_BAR, MOST_BAR = 8, 30
CACHED = 0.1  # of the peak: what a model asks more than DRAM gives is no error of the model then
MOST_RANKS = 8  # that have a bar
MOST_SAID = 8  # lines about one of their parts
# labels of meters in plain words, and with where their numbers come from
LIMIT, ASKED, TRAFFIC = ("limit", "limit (probe)"), ("asked of memory", "bandwidth (model)"), ("memory traffic", "DRAM (GPM)")
POSSIBLE, RESIDENT = ("warps possible", "occupancy (theory)"), ("warps resident", "occupancy (GPM)")
# what a rank's time is divided into: a title, the sign and the colour of its part of the bar
WORK, SENDS, WAITS = ("work", charts.BLOCK, "$primary"), ("broadcast", "▒", "$warning"), ("wait", "░", MUTED)

# what a phase is limited by: a letter, words, the colour of its bar, and what those limits are called; the first that fits
# counts, so the unknown comes first, and what fits all comes last
KINDS = (
    (" ", "", "$primary", (UNKNOWN,)),
    ("W", "waiting", "$secondary", ("latency",)),
    ("A", "arithmetic", "$text-success", ("instruction", "arithmetic")),
    ("M", "memory", "$text-warning", ("memory", "cache", "the queue of loads")),
    ("W", "waiting", "$secondary", ("",)),
)


class RunSubject(NamedTuple):
    """Everything that the panel's text depends on."""

    run: Run
    evidence: Evidence | None
    device: events.Device | None
    baseline: Run | None
    latest: bool  # whether it is the newest run
    limit: Limit | None = None  # what the device could do at most; None if it was not measured
    verdict: Assessment | None = None
    ask: str = ""  # how to find out what its reason lacks
    next_key: str = ""  # the key that runs the next rung; empty if none does
    again: str = ""  # the key that repeats it; empty if none does
    gained: Gain | None = None  # what several devices gain over one
    to_compare: str = ""  # which run would tell that
    foreseen: float | None = None  # seconds of a pass, by its plan
    limiters: Mapping[str, str] = {}  # what limits each phase, by its key
    details: bool = False  # whether it is said where each number comes from
    back_key: str = ""  # the key that goes back to the newest run
    log_key: str = ""  # the key that opens the log


def meter(share: float | None, width: int) -> list[Piece]:
    """A bar in half cells that shows by shape as well as by colour; what is above 0 is never empty."""
    halves = 0 if not share else max(1, round(min(share, 1.0) * 2 * width))
    filled = FILL * (halves // 2) + HALF * (halves % 2)
    return [(filled, "$primary"), (TRACK * (width - len(filled)), MUTED)]


def parts_lines(answer: QuestionAnswer, guess: object, width: int) -> list[Content]:
    """One bar for each part of an answer; a tick marks the run's answer, and words mark the guess."""
    most = max((part.amount for part in answer.parts), default=0.0) or 1.0
    label = min(max((len(part.title) for part in answer.parts), default=0), width - WORDS - LEAST_BAR - 18)
    room = max(LEAST_BAR, min(MOST_BAR, width - label - WORDS - 18))
    rows: list[Content] = []
    for part in answer.parts:
        right, guessed = part.key in answer.right, part.key == guess
        rows.append(
            line(
                ("✓ " if right else "  ", f"{STRONG} $text-success"),
                (f"{shortened(part.title, label):<{label}}  ", STRONG if right else ""),
                *meter(part.amount / most, room),
                f" {part.words:<{WORDS - 2}} " if guessed else f" {part.words}",
                ("your guess" if guessed else "", "$text-primary"),
            )
        )
    return rows


def numbers_lines(kind: QuestionKind, numbers: Sequence[tuple[str, float]], width: int) -> list[Content]:
    """A guess and answers to one question in numbers, a bar for each."""
    whole = 1.0 if kind.say is units.percent else 0.0  # shares have a scale of their own
    most = max(whole, *(number for _, number in numbers)) or 1.0
    room = max(LEAST_BAR, min(MOST_BAR, width - WHOSE - WORDS))
    bars = ((label, meter(number / most, room), kind.say(number)) for label, number in numbers)
    return [line(f"  {label:<{WHOSE - 2}}", *bar, f" {words}") for label, bar, words in bars]


def title(s: RunSubject, width: int) -> Content:
    """Which run, and how far it can be trusted."""
    run = s.run
    words, style = wording.verdict(run)
    most = max(width - 24, 12)
    back = "" if s.latest else f"  ({s.back_key}: newest)"
    number = f"RUN {run.id}  "
    which = len(number) + len(wording.kernel_and_size(run)) + len(back) + 2
    if len(words) > min(most, width - which):
        words = words.split(f" · {wording.CHECKSUM}")[0]
    right = line((words, style)).truncate(most, ellipsis=True)
    what = wording.kernel_words(run, max(width - right.cell_length - len(number) - len(back) - 2, 12))
    return apart(line((number, f"{STRONG} $text-primary"), (what, STRONG), (back, MUTED)), right, width)


def explained(s: RunSubject, width: int, *only: str) -> list[Content]:
    """Those parts of the verdict: why, what limits it now, and what to try next."""
    return verdict_text.explained(s.verdict, width, s.ask, s.next_key, only, s.details) if s.verdict is not None else []


def progress(s: RunSubject, width: int) -> list[Content]:
    """While it runs, or its distances are computed once more: stage, share, time left, passes. Else: what to keep in mind."""
    run, progress = s.run, s.run.progress
    running = run.state == "running"
    if not running and progress is None:
        return remarks(s, width)
    stage = run.stage if running or progress is None else progress.stage
    share = min(progress.done, 1.0) if progress is not None else None
    left = f"{_about(progress.left)} left" if progress is not None and progress.left else ""
    left = "only once" if stage == "compile" and not left else left  # compiled code is kept
    more = "+" if len(run.samples) >= events.SAMPLES_TOLD else ""
    passes = f"{len(run.samples)}{more} timed" if run.samples and running else ""
    bar = meter(share, max(4, width - LABEL - 6 - 27))
    after = f"{100 * share:>4.0f} %" if share is not None else " " * 6
    doing_now = f"{shortened(doing(stage), LABEL - 1):<{LABEL}}"
    return [line((doing_now, "$primary"), *bar, after, (f"  {left:<14}{passes:>11}".rstrip(), MUTED))]


def _about(seconds: float) -> str:
    """A guess is not given to the millisecond, or it would flicker."""
    return units.duration(seconds) if seconds >= 119.5 else f"{seconds:.0f} s" if seconds >= 0.95 else "under 1 s"


def remarks(s: RunSubject, width: int) -> list[Content]:
    """What to keep in mind about an ended run's numbers; remarks that do not fit beside each other get lines of their own."""
    run = s.run
    message = run.done.message if run.done is not None else ""
    if run.state != "done":
        if not message and run.state == "failed":
            message = f"it failed; the log ({s.log_key}) says why"
        return line((message or "stopped before its end; what was measured so far is shown", MUTED)).wrap(width)
    rows: list[Content] = []
    if run.indicative:
        rows.append(line(("indicative", "$text-warning"), (f": {run.indicative}", MUTED)))
    for word, why, _ in disturbances(run, s.evidence):
        rows.append(line((word, "$text-warning"), (f": {why}{f'; {s.again} repeats it' if s.again else ''}", MUTED)))
    evidence = s.evidence if run.backend == "cuda" else None
    if evidence is not None and evidence.power_watts is not None:
        clock = f" at {evidence.gpu_clock_mhz:.0f} MHz" if evidence.gpu_clock_mhz is not None else ""
        rows.append(line((f"drew {evidence.power_watts:.0f} W{clock}", MUTED)))
    if not rows and message:
        rows.append(line((message, MUTED)))
    lines: list[Content] = []
    for one in rows:
        if lines and lines[-1].cell_length + 3 + one.cell_length <= width:
            lines[-1] = line(lines[-1], "   ", one)
        else:
            lines += one.wrap(width)
    return lines


def phases(s: RunSubject, width: int) -> list[Content]:
    """One bar per phase with its time and its share, and a letter for what limits it; the places are kept until there are any."""
    run = s.run
    if run.simulated or (not run.phases and run.state != "running"):
        return []
    titles = [p.title for p in run.phases] or [p.title for p in run.phase_names]
    seconds = charts.finite([p.seconds for p in run.phases]) or (None,) * len(titles)
    shares = [p.share for p in run.phases] or [None] * len(titles)
    what = [s.limiters.get(p.key, UNKNOWN) for p in run.phases] or [UNKNOWN] * len(titles)
    kinds = [next(kind[:3] for kind in KINDS if any(name in limiter for name in kind[3])) for limiter in what]
    room = max(1, width - LABEL - 2 * NUMBER - 1)
    number = "strike" if run.phases and wording.doubtful(run) else ""
    rows = [
        line(
            (f"{shortened(title, LABEL - 3):<{LABEL - 2}}", MUTED),
            (f"{letter} ", colour),
            (bar, colour),
            (f"{units.duration(took) if took is not None else '':>{NUMBER}}", number),
            (f"{units.percent(share) if share is not None else '':>{NUMBER}}", MUTED),
        )
        for title, (letter, _, colour), bar, took, share in zip(
            titles, kinds, charts.bars(seconds, room), seconds, shares, strict=True
        )
    ]
    legend = [line((letter, colour), (f" {words}   ", MUTED)) for letter, words, colour in dict.fromkeys(kinds) if words]
    return [*rows, line(" " * LABEL, *legend)] if legend else rows


def ranks(s: RunSubject, width: int) -> list[Content]:
    """The ranks of the run, and what they gain together."""
    shares = of_ranks(s.run)
    if not shares:
        return []
    rows = rank_lines(s.run, shares, width)
    if s.gained is not None:
        reference = f"run {s.gained.reference.id}, {s.gained.reference.title}, is the fastest on one {s.gained.one}"
        shared = ["the processes share the cores of one machine"] * (s.gained.efficiency is None)
        rows += hanging(
            "speed-up", LABEL, [f"{units.digits(s.gained.times)} {s.gained.words}", reference, *shared], width, most=MOST_SAID
        )
    elif s.to_compare:
        rows += hanging("speed-up", LABEL, [s.to_compare], width, most=MOST_SAID)
    return rows


def rank_lines(run: Run, shares: Sequence[OfRank], width: int) -> list[Content]:
    """A bar for each rank, of its work, the broadcasts and the time in which it waits; then what these say."""
    number = "strike" if wording.doubtful(run) else ""
    parts = (WORK, SENDS, WAITS)
    numbered_parts = parts if width >= LABEL + LEAST_BAR + 3 * NUMBER + 1 else parts[2:]
    room = max(1, width - LABEL - len(numbered_parts) * NUMBER - 1)
    most = max(one.seconds for one in shares) or 1.0
    rows = [line((f"{'ranks':<{LABEL + room}} {''.join(f'{title:>{NUMBER}}' for title, _, _ in numbered_parts)}", MUTED))]
    for one in shares[:MOST_RANKS]:
        seconds = {WORK: one.work, **{part: one.share(key) * one.seconds for part, key in ((SENDS, BROADCAST), (WAITS, WAIT))}}
        texts = "".join(f"{units.duration(seconds[part]):>{NUMBER}}" for part in numbered_parts)
        label = (f"{shortened(one.name, LABEL - 1):<{LABEL}}", MUTED)
        rows.append(line(label, *_stacked([seconds[part] / most for part in parts], parts, room), " ", (texts, number)))
    if len(shares) > MOST_RANKS:
        rows.append(line((f"{'':<{LABEL}}and {units.counted(len(shares) - MOST_RANKS, 'other rank')}", MUTED)))
    link, even = carried(run), imbalance(shares)
    explanations = [
        (SENDS, [f"a row of tiles to every rank: {link}"] if link is not None else ["a row of tiles to every rank"]),
        (WAITS, ["until the owner of that row has made it", hidden(run)]),
    ]
    for (title, sign, style), words in explanations:
        first, *others = hanging(title, LABEL, [*filter(None, words)], width, most=MOST_SAID)
        rows += [line((sign, style), (f" {first.plain[: LABEL - 2]}", MUTED), first[LABEL:]), *others]
    if even is not None:
        rows += hanging("imbalance", LABEL, [f"{units.digits(even)}: the most work of a rank over the mean"], width)
    return rows


def _stacked(shares: Sequence[float], parts: Sequence[tuple[str, str, str]], room: int) -> list[Piece]:
    """One bar of several parts; what is above 0 has a cell, if there are enough."""
    cells = [max(1, round(share * room)) if share > 0 else 0 for share in shares]
    while sum(cells) > room:
        cells[cells.index(max(cells))] -= 1
    pieces: list[Piece] = [(sign * count, style) for count, (_, sign, style) in zip(cells, parts, strict=True)]
    return [*pieces, " " * (room - sum(cells))]


def outside(s: RunSubject, width: int) -> list[Content]:
    """What happened outside the clock, and how long the passes with a clock at every phase took."""
    run = s.run
    if run.simulated:
        return []
    lines: list[Content] = []
    if (phase_pass := run.phase_pass) is not None:
        words = [f"{units.duration(phase_pass.seconds)}{' in a CUDA graph' if phase_pass.captured else ''}"]
        words += [f"middle of {phase_pass.passes:,} passes"] * (phase_pass.passes > 1)
        lines += hanging("phase pass", LABEL, [*words, *instrumentation(run)], width, "strike" if wording.doubtful(run) else "")
    words = []
    for stage in OUTSIDE:
        if (seconds := run.stage_seconds(stage.key)) is not None:
            word = stage.copy.upper() if run.backend == "cuda" and stage.copy in ("h2d", "d2h") else stage.short
            words.append(f"{word} {units.duration(seconds)}{' once' if stage.key == 'compile' else ''}")
    return lines + hanging("outside the clock", LABEL, words, width, most=4)


def meters(s: RunSubject, width: int) -> list[Content]:
    """The limit, memory and warps: what a model says before what counters say. What is not known is named in one line."""
    run, cuda = s.run, s.run.backend == "cuda"
    if run.simulated:
        return []
    peak = s.device.peak_bytes_per_second if s.device is not None and cuda else None
    of_peak = "of peak" if peak is None or width < 90 else f"of {units.bandwidth(peak)} peak"
    by_model = [f"{of_peak}; model, not DRAM traffic", "of peak; model, not DRAM traffic", "of peak; model"] if s.details else []
    by_model += [of_peak, "of peak"]
    struck = "strike" if wording.doubtful(run) else ""
    limit = s.limit.share if s.limit is not None else None
    shares = [
        (LIMIT[s.details], limit, "", _of_limit(s.limit), struck),
        (ASKED[s.details], share_of_peak(run, s.device), units.bandwidth(run.bandwidth), by_model, struck),
    ]
    if cuda:
        dram, achieved = (s.evidence.dram_utilisation, s.evidence.sm_occupancy) if s.evidence is not None else (None, None)
        moved = units.bandwidth(dram * peak) if dram is not None and peak else units.ABSENT
        requested = share_of_peak(run, s.device)
        cached = dram is not None and requested is not None and requested > dram + CACHED
        served = [f"{of_peak}; caches serve the rest", "of peak; caches serve the rest"] if cached else []
        theory = run.main_occupancy
        possible = theory.warps / theory.max_warps if theory is not None and theory.max_warps else None
        shares += [
            (TRAFFIC[s.details], dram, moved, [*served, f"{of_peak}; measured", "of peak; measured", "of peak"], ""),
            (POSSIBLE[s.details], possible, "", limits(theory), ""),
            (RESIDENT[s.details], achieved, "", ["measured"], ""),
        ]
    unknown = [label for label, share, amount, _, _ in shares if share is None and amount in ("", units.ABSENT)]
    timed = run.seconds is not None
    alone = ("model, not memory traffic", "model") if s.details else ()
    rows = [_metered(*one, width, alone) for one in shares if one[0] not in unknown]
    return [*rows, *(hanging("not known", LABEL, unknown, width, MUTED) if unknown and timed else [])]


def _of_limit(limit: Limit | None) -> list[str]:
    """The fastest form of the inner loop that is right for these distances, in fewer and fewer words."""
    if limit is None:
        return []
    most, form = units.rate(limit.relaxations_per_second), limit.form
    at = f"{most} at {limit.clock_mhz:.0f} MHz" if limit.clock_mhz else most
    return [f"of {at}: {form.title} ({form.instructions})", f"of {at}: {form.title}", f"of {most}: {form.title}", f"of {most}"]


def limits(theory: events.Occupancy | None) -> list[str]:
    """What keeps more warps from being resident, in words, fewer and fewer of them."""
    if theory is None:
        return []
    if theory.warps >= theory.max_warps:
        return ["all warps resident"]
    amounts = {"registers": f"{theory.registers}/thread", "shared memory": f"{units.memory(theory.shared_bytes)}/block"}
    names = " and ".join(theory.limiters)
    full = " and ".join(f"{name} ({amounts[name]})" if name in amounts else name for name in theory.limiters)
    return [f"limited by {full}", f"limited by {names}", names] if names else []


def _metered(
    label: str, share: float | None, amount: str, words: Sequence[str], number: str, width: int, alone: Sequence[str] = ()
) -> Content:
    """Label, bar, amount, share, and the first of the words that fit whole; without a share no bar, and words of `alone`."""
    room = max(4, min(30, width - LABEL - 52))
    if share is None:
        words_that_fit = next((one for one in alone if LABEL + len(amount) + 2 + len(one) <= width), "")
        return line((f"{label:<{LABEL}}", MUTED), (amount, number), (f"  {words_that_fit}", MUTED))
    words_that_fit = next((one for one in words if LABEL + room + 20 + len(one) <= width), "")
    return line(
        (f"{label:<{LABEL}}", MUTED),
        *meter(share, room),
        (f"{amount:>11}", number),
        (f"{units.percent(share):>8}", number),
        (f" {words_that_fit}", MUTED),
    )


def checked(s: RunSubject, width: int) -> list[Content]:
    """How it is known that the distances are right, and what the input was."""
    run = s.run
    lines: list[Content] = []
    if run.verdict is not None and run.verdict.how:
        lines += hanging("check", LABEL, [run.verdict.how], width)
    if run.graph is not None:
        g = run.graph
        words = [units.vertices(g.vertices), units.counted(g.edges, "edge")]
        if g.low is not None and g.high is not None:
            words.append(f"weights {g.low:g}..{g.high:g}")
        if g.negative_share:
            words.append(f"{units.percent(g.negative_share)} negative")
        words += [part for part in (g.name, g.note) if part]
        lines += hanging("graph", LABEL, words, width)
    e, usual = run.experiment, Experiment()
    set_here = [
        f"{field.title.lower()} {text}{' s' * (field.metavar == 'SECONDS')}"
        for field in FIELDS[1:]
        if (text := field.show(e)) and text not in ("no", "0") and (s.details or text != field.show(usual))
    ]
    options = [f"{name} {value}" for name, value in e.options.items()] if s.details else wording.chosen_options(e)
    lines += hanging("settings", LABEL, [*set_here, *options], width, most=4) if set_here or options else []
    if left_out := sparsity.in_words(run, s.foreseen if run.seconds is None else None):
        lines += hanging("order", LABEL, left_out, width)
    if run.answers is not None:
        lines += hanging("answers", LABEL, answers.in_short(run.answers), width)
    return lines
