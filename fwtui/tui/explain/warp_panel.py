"""Warp stall reasons of a kernel function: its source with a bar at each line, the instructions of a line, and the changes
between two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from fwtui.analysis.bottleneck import SATURATED_SHARE, counters_of, reason_of
from fwtui.analysis.causes import MIN_GAIN, stall_gains
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.phase_table import roofs_of
from fwtui.analysis.warps import (
    ELIGIBLE,
    LONG_SCOREBOARD,
    MATH_PIPE,
    MIO_THROTTLE,
    NOT_SELECTED,
    SELECTED,
    SHORT_SCOREBOARD,
    ShareChange,
    WarpReason,
    describe_mix,
    issue_rate,
    line_changes,
    loop_facts,
    main_samples,
    mix_changes,
    percentages,
    reason_changes,
    shares,
    stall,
)
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.stream.events import Occupancy, WarpSamples
from fwtui.stream.listing import CodeLine, Listing
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.actions import look
from fwtui.tui.frame.dialogs import CLOSES, DefinitionList, Dialog, Row, ScrollableText
from fwtui.tui.widgets.text_panel import MUTED, STRONG, Piece, TextPanel, hanging_indent, line

BAR = 10  # cells
HEAD = line(("WARP STALL REASONS  ", f"{STRONG} $text-primary"))
MAX_REASONS = 6  # reasons in the head
ROOMY = 72  # cells from which reasons have their meaning and gain; narrower heads leave the rows to the hotspot
MAX_HOTSPOTS, MIN_HOT_SHARE = 4, 0.03  # hotspots of a run: source lines with at least this share of the samples
MIN_SHARE = 0.005  # share of the samples from which a line has a letter
MEMORY, SHARED, BLOCKED, WORKS = "$error", "$warning", "$secondary", "$success"
# letters and colours of the reasons; all others have the letter X
SIGNS = {
    LONG_SCOREBOARD: ("L", MEMORY),
    "lg_throttle": ("Q", MEMORY),
    SHORT_SCOREBOARD: ("S", SHARED),
    MIO_THROTTLE: ("P", SHARED),
    "barrier": ("B", BLOCKED),
    "wait": ("W", "$accent"),
    MATH_PIPE: ("M", WORKS),
    NOT_SELECTED: ("N", WORKS),
    SELECTED: ("I", WORKS),
}
OTHERS = ("X", "$foreground")
LETTERS = "; ".join([*(f"{letter}: {stall(name).label}" for name, (letter, _) in SIGNS.items()), f"{OTHERS[0]}: another reason"])
LABEL, NUMBER = 8, 9  # cells
MAX_LINES, MAX_NAMES = 8, 8  # largest changes of lines and of instruction counts
Cells = tuple[str, str, Piece]  # value of the baseline, value of the run, label


class WarpSubject(NamedTuple):
    """A kernel function of a run, and the chosen hotspot."""

    run: Run
    op: str
    samples: WarpSamples | None
    listing: Listing | None
    chosen: int  # index into hotspots
    occupancy: Occupancy | None
    issue_limit: float | None  # relaxations per second
    gains: Mapping[str, float]  # stall reason -> upper bound of the run's speedup without it
    reason: WarpReason | None  # main warp state; None without PC samples

    @property
    def title(self) -> str:
        return self.run.phase_title(self.op)

    @property
    def place(self) -> int:
        """The index of the chosen line; -1 if none was sampled."""
        hot = self.hotspots
        return hot[min(self.chosen, len(hot) - 1)] if hot else -1

    @property
    def hotspots(self) -> list[int]:
        """Indices of the sampled lines: first the line that the main reason names, then by samples."""
        lines = self.listing.lines if self.listing is not None else ()
        hot = self.reason.line if self.reason is not None else None

        def rank(place: int) -> tuple[bool, int]:
            one = lines[place]
            return hot is None or (one.file, one.line) != (hot.file, hot.line), -one.samples

        return sorted((place for place, one in enumerate(lines) if one.samples), key=rank)

    @property
    def stall_text(self) -> str:
        """A sentence with the main stall reason and its source line; empty without PC samples."""
        return _sentence(str(self.reason or ""))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def warp_subject(model: Model, run: Run, op: str, place: int) -> WarpSubject:
    """Collect the PC samples, source and occupancy of a kernel function of the run."""
    samples = next((samples for samples in run.warps if samples.op == op and samples.samples), None)
    occupancy = next((one for one in run.occupancies if one.op == op), None)
    gains = stall_gains(model, run, op) if samples is not None else {}
    reason = reason_of(run, roofs_of(model, run).issue_slots, samples) if samples is not None else None
    return WarpSubject(run, op, samples, run.listing(op), place, occupancy, issue_rate(model, run, samples), gains, reason)


def sign(reasons: dict[str, int]) -> tuple[str, str]:
    """Return the letter and colour of the main stall reason; of the most frequent state if hardly any sample is a stall."""
    ordered = list(shares(reasons))
    if not ordered:
        return OTHERS
    waits = [reason for reason in ordered if reason not in ELIGIBLE]
    first = waits[0] if waits and reasons[waits[0]] * 2 >= reasons[ordered[0]] else ordered[0]
    return SIGNS.get(first, OTHERS)


class WarpHead(TextPanel[WarpSubject | None]):
    """The main stall reason with its line, then the shares of all reasons."""

    NOTHING = HEAD, line(("no run yet", MUTED))

    def draw(self, subject: WarpSubject, width: int) -> Sequence[Content]:
        if subject.samples is None:
            return [HEAD, *line((_nothing(subject.run), MUTED)).wrap(width)]
        rows = [line(HEAD, (f"run {subject.run.id}  {subject.title}", STRONG)), *line((subject.stall_text, STRONG)).wrap(width)]
        named: list[Content] = []
        percent = percentages(subject.samples.reasons, MAX_REASONS)
        bounds = {
            name: f"at most {units.gain(bound)}" for name in percent if MIN_GAIN <= (bound := subject.gains.get(name, inf)) < inf
        }
        busy = counters_of(subject.run, subject.op).get("compute_share")
        # the ceilings of the phase bound the gain, not the share of a stall
        common = len(bounds) > 1 and len({*bounds.values()}) == 1
        for name, share in percent.items():
            letter, colour = SIGNS.get(name, OTHERS)
            gain = f", {bounds[name]}" if name in bounds and width >= ROOMY and not common else ""
            label = stall(name).label if width >= ROOMY else stall(name).name
            piece = line((f"{letter} ", f"{STRONG} {colour}"), f"{share} % {label}", (f"{gain}   ", MUTED))
            if named and named[-1].cell_length + piece.cell_length <= width:
                named[-1] = line(named[-1], piece)
            else:
                named.append(piece)
        notes = [_sentence(subject.reason.slots)] if subject.reason is not None and subject.reason.slots else []
        if common:
            bound = next(iter(bounds.values()))
            why = f", as compute is {units.percent(busy)} busy" if busy is not None and busy >= SATURATED_SHARE else ""
            notes.append(f"Without one of these stalls: {bound}{why}.")
        return [*rows, *named, *(line((" ".join(notes), MUTED)).wrap(width) if notes and width >= ROOMY else [])]


class WarpLoop(TextPanel[WarpSubject | None]):
    """The instructions of the inner loop; of the whole function if no loop has most of its work."""

    def draw(self, subject: WarpSubject, width: int) -> Sequence[Content]:
        if subject.samples is None:
            return []
        return hanging_indent("code" if loop_facts(subject.samples).whole else "loop", LABEL, describe_loop(subject), width)


class WarpTable(TextPanel[WarpSubject | None]):
    """A row per source line with its PC samples."""

    def draw(self, subject: WarpSubject, width: int) -> Sequence[Content]:
        if subject.samples is None:
            return []
        samples, listing = subject.samples, subject.listing
        if listing is None or not listing.lines:
            return [line(("the source of this kernel function was not recorded", MUTED))]
        total = samples.samples or 1
        most = max(one.samples for one in listing.lines) or 1
        line_place = subject.place
        indents = {one.file: 200 for one in listing.lines}  # common indentation of a file
        for one in listing.lines:
            if one.text.strip():
                indents[one.file] = min(indents[one.file], len(one.text) - len(one.text.lstrip()))
        rows: list[Content] = []
        file = None
        for place, one in enumerate(listing.lines):
            if one.file != file:
                file = one.file
                rows.append(line((file or "unknown source line", STRONG)))
            strong = STRONG if one.samples * 2 >= most else "" if one.samples else MUTED
            style = f"{STRONG} reverse" if place == line_place else strong
            bar = sampled(one, total, most, style if place == line_place else "")
            rows.append(line(*bar, (f"{one.line:>5}  ", MUTED), (one.text[indents[one.file] :], style)))
        facts = [f"{units.counted(total, 'PC sample')}, one every {samples.cycles:,} cycles of an SM"]
        facts += [f"{samples.dropped:,} lost"] if samples.dropped else []
        facts += [f"{samples.unmapped:,} without a source line"] if samples.unmapped else []
        return [*rows, *hanging_indent("samples", LABEL, facts, width)]

    def on_resize(self) -> None:
        self.reveal()  # the rows exist only after the first layout

    def reveal(self) -> None:
        """Scroll to the chosen line."""
        scroll = self.parent
        if isinstance(scroll, VerticalScroll):
            scroll.scroll_to(y=max(0, self.chosen_row - scroll.size.height // 2), animate=False)

    @property
    def chosen_row(self) -> int:
        """The number of the chosen line's row."""
        subject = self.subject
        if subject is None or subject.listing is None:
            return 0
        files = [one.file for one in subject.listing.lines[: subject.place + 1]]
        return subject.place + sum(one != before for one, before in zip(files, [None, *files], strict=False))


def describe_loop(subject: WarpSubject) -> list[str]:
    """Describe the inner loop: instructions, instructions per relaxation, issue-rate ceiling, loads, registers."""
    code = next((one for one in (subject.samples, subject.listing) if one is not None and one.mix), Listing())
    facts = loop_facts(code)
    parts = ["whole function"] * facts.whole + ([mix] if (mix := describe_mix(code.mix)) else [])
    if facts.each is not None:
        parts.append(f"{units.digits(facts.each)} instructions per relaxation")
    if subject.issue_limit is not None:
        parts.append(f"issue-rate ceiling {units.rate(subject.issue_limit)}{' of the loop alone' * (not facts.whole)}")
    if facts.shared_loads:
        parts.append(units.counted(facts.shared_loads, "load from shared memory", "loads from shared memory"))
    if facts.global_loads:
        parts.append(units.counted(facts.global_loads, "load from device memory", "loads from device memory"))
    if (one := subject.occupancy) is not None:
        spilled = f", {one.spill_bytes:,} bytes spilled" if one.spill_bytes else ""
        parts.append(f"{units.counted(one.registers, 'register')}{spilled}")
    return parts


class InstructionsScreen(Dialog):
    """The machine instructions of a source line, by address or by their PC samples."""

    BINDINGS: ClassVar = [look("s", "sort", "Sort", "by address, or by PC samples", id="instructions.sort")]

    def __init__(self, subject: WarpSubject, listing: Listing):
        self._line = listing.lines[subject.place]
        title = f"Instructions of {self._line.file}:{self._line.line}"
        super().__init__(title, hint=f"{{key[instructions.sort]}}: sort · {CLOSES}")
        self._instructions = [one for one in listing.instructions if one.line == subject.place]
        self._loop = listing.loop
        self._total = subject.samples.samples if subject.samples is not None else 0
        self._by_samples = False

    def body(self) -> ComposeResult:
        yield ScrollableText(self._rows())

    def action_sort(self) -> None:
        self._by_samples = not self._by_samples
        self.query_one(DefinitionList).show(tuple(self._rows()))

    def _rows(self) -> list[Row]:
        mark = {False: ("", " ▾"), True: (" ▾", "")}[self._by_samples]
        head = f"{'samples' + mark[0]:<9} {'address' + mark[1]:<9}  "
        rows: list[Row] = [
            (line((self._line.text.strip(), STRONG)), ""),
            (line((head, MUTED)), "instruction, main stall reasons"),
        ]
        for one in sorted(self._instructions, key=lambda one: (-one.samples if self._by_samples else 0, one.offset)):
            letter, colour = sign(one.reasons) if one.reasons else (" ", "")
            inside = "│" if self._loop[0] <= one.offset <= self._loop[1] and self._loop[1] else " "
            share = f"{100 * one.samples / self._total:>5.1f} %" if one.samples and self._total else " " * 7
            reasons = ", ".join(f"{stall(name).name} {100 * part:.0f} %" for name, part in list(shares(one.reasons).items())[:2])
            row = line((share, ""), (f" {letter} ", colour), (f"{inside} {one.offset:>7x}  ", MUTED))
            rows.append((row, f"{one.text}  {reasons}"))
        return rows


def sampled(one: CodeLine, total: int, most: int, style: str = "") -> tuple[tuple[str, str], ...]:
    """Return the share of all samples at a line, its bar and its letter."""
    count = one.samples
    letter, colour = sign(one.reasons) if count >= MIN_SHARE * total else (" ", MUTED)
    share = f"{100 * count / total:>4.0f} %" if count >= MIN_SHARE * total else "      "
    return (f"{share} ", style), (f"{'█' * round(BAR * count / most):<{BAR}} {letter}", colour)


def hotspots(run: Run, label: int, width: int) -> list[Content]:
    """Return the hotspots of the slowest kernel function: the source lines with most PC samples, and a legend of reasons."""
    samples = main_samples(run)
    listing = run.listing(samples.op) if samples is not None else None
    if samples is None or listing is None:
        return []
    hot = [one for one in listing.sampled[:MAX_HOTSPOTS] if one.samples >= MIN_HOT_SHARE * samples.samples]
    rows: list[Content] = []
    signs: dict[str, str] = {}
    cells = max((len(f"{one.file}:{one.line}") for one in hot), default=0)
    for one in hot:
        letter, colour = sign(one.reasons)
        signs[letter] = colour
        bar = sampled(one, samples.samples or 1, hot[0].samples)
        place = (f"  {f'{one.file}:{one.line}':<{cells}}  ", MUTED)
        rows.append(line((f"{'hotspots' * (not rows):<{label - 2}}", MUTED), *bar, place, one.text.strip()))
    labels = {letter: stall(name).label for name, (letter, _) in SIGNS.items()}
    legend = [line((letter, colour), (f" {labels.get(letter, 'another reason')}   ", MUTED)) for letter, colour in signs.items()]
    return [*rows, line(" " * label, *legend).truncate(width)] if rows else []


def _nothing(run: Run) -> str:
    if run.backend != "cuda":
        return "PC sampling needs a GPU; this run used another device"
    if run.sampled is not None and run.sampled.note:
        return f"not sampled: {run.sampled.note}"
    if run.state == "running":
        return "PC sampling starts after the run"
    return "no PC samples of this run; use --samples on to sample every GPU run"


WarpPair = tuple[WarpSubject, WarpSubject]  # the run and its baseline


def slowest_op(run: Run | None) -> str:
    """Return the kernel function that takes longest."""
    phase = max(run.phases, key=lambda one: one.seconds).key if run is not None and run.loops and run.phases else ""
    if phase in kernel_functions(run):
        return phase
    main = run.main_occupancy if run is not None else None
    return main.op if main is not None else next(iter(kernel_functions(run)), "")


def kernel_functions(run: Run | None) -> list[str]:
    """Return the kernel functions with an occupancy, PC samples or an inner loop."""
    return list(dict.fromkeys(o.op for o in (*run.occupancies, *run.warps, *run.loops))) if run is not None else []


def versus(entrant: ComparedRun, baseline: ComparedRun) -> WarpPair | None:
    """Return the samples of a run and of its baseline, of the slowest function; None if one has no samples."""
    ours = warp_subject(entrant.model, entrant.run, slowest_op(entrant.run), 0)
    same = any(samples.op == ours.op for samples in baseline.run.warps)
    theirs = warp_subject(baseline.model, baseline.run, ours.op if same else slowest_op(baseline.run), 0)
    return (ours, theirs) if ours.samples is not None and theirs.samples is not None else None


class VersusHead(TextPanel[WarpPair | None]):
    """The main stall reason of each run, with its line."""

    def draw(self, subject: WarpPair, width: int) -> Sequence[Content]:
        ours, theirs = subject
        rows = [line(HEAD, (f"{_named(ours)}  {ours.title}", STRONG), (f"  against {_named(theirs)}  {theirs.title}", MUTED))]
        for one, style in ((ours, STRONG), (theirs, "")):
            if one.samples is not None:
                rows += line((f"{_named(one):<{LABEL}}", MUTED), (one.stall_text, style)).wrap(width)
        return rows


class VersusTable(TextPanel[WarpPair | None]):
    """The changes between two runs: shares of samples, then the inner loops by size and instruction counts."""

    def draw(self, subject: WarpPair, width: int) -> Sequence[Content]:
        ours, theirs = subject
        if ours.samples is None or theirs.samples is None:
            return []
        rows = [_both("", truncate(_named(theirs), NUMBER), truncate(_named(ours), NUMBER), (MUTED, ""))]
        reasons = [(one, *SIGNS.get(one.reason, OTHERS)) for one in reason_changes(ours.samples, theirs.samples)]
        named = [(one, line((f"{sign} ", f"{STRONG} {colour}"), stall(one.reason).label)) for one, sign, colour in reasons]
        rows += _section("reasons", [_shares(*one) for one in named])
        if ours.listing is not None and theirs.listing is not None:
            changes = line_changes(ours.listing, theirs.listing)[:MAX_LINES]
            lines = [(one, one.line) for one in changes if one.line is not None]
            texts = [(one, line((f"{at.file}:{at.line}  ", MUTED), at.text.strip())) for one, at in lines]
            rows += _section("lines", [_shares(*one) for one in texts])
        rows += _section("loop", [*_facts(ours, theirs)])
        mixes = mix_changes(ours.samples.mix, theirs.samples.mix)[:MAX_NAMES]
        rows += _section("counts", [(f"{there:,}", f"{here:,}", (name, "")) for name, there, here in mixes])
        return rows


def _named(subject: WarpSubject) -> str:
    return f"run {subject.run.id}"


def _shares(change: ShareChange, text: Piece) -> Cells:
    there, here = (f"{100 * share:.0f} %" if share is not None else "-" for share in (change.baseline, change.run))
    return there, here, text


def _facts(ours: WarpSubject, theirs: WarpSubject) -> Sequence[Cells]:
    """Return the sizes of both loops, in total and per relaxation, which also compares loops of different unrolling."""
    loops = [loop_facts(one.samples) for one in (theirs, ours) if one.samples is not None]
    rows: list[Cells] = []
    for text, values in (
        ("instructions", [float(one.instructions) for one in loops]),
        ("relaxations of a thread", [float(one.relaxations) for one in loops]),
        ("instructions per relaxation", [one.each for one in loops]),
        ("loads from shared memory", [float(one.shared_loads) for one in loops]),
        ("loads from device memory", [float(one.global_loads) for one in loops]),
        ("loads and stores of spilled registers", [float(one.spills) for one in loops]),
    ):
        if any(values):
            there, here = ("-" if v is None else f"{v:,.0f}" if v == int(v) else units.digits(v) for v in values)
            rows.append((there, here, (text, "")))
    return rows


def _section(label: str, cells: Sequence[Cells]) -> list[Content]:
    return [_both(label if place == 0 else "", there, here, ("", ""), text) for place, (there, here, text) in enumerate(cells)]


def _both(label: str, there: str, here: str, styles: tuple[str, str], text: Piece = "") -> Content:
    numbers = (f"{there:>{NUMBER}}", styles[0]), (f"{here:>{NUMBER}}", styles[1] or STRONG)
    return line((f"{label:<{LABEL}}", MUTED), *numbers, "  ", text)
