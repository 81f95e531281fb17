"""The panel before the first run: the plan of the chosen kernel, its expected speed, and its source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.content import Content

from fwtui.analysis.estimate import expect
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.learn.source_view import Running, SourceView
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.run_text import meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, hanging_indent, line
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape

MAX_STEPS = 20_000  # longer plans are not read
HEAD = line(("BEFORE THE FIRST RUN", f"{STRONG} $text-primary"))
LABEL, NUMBER, MIN_BAR = 12, 10, 4  # cells


class PlannedPhase(NamedTuple):
    title: str
    launches: int
    relaxations: int
    device_bytes: int


class PlannedSubject(NamedTuple):
    """The experiment, and the expected speed of its kernel: a line for each source of information."""

    experiment: Experiment
    speeds: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def phases(kernel_id: str, shape: Shape) -> tuple[PlannedPhase, ...]:
    """Return the sums of each phase of the kernel's plan; empty if the plan is too long or depends on the graph."""
    kernel = registry().get(kernel_id)
    if kernel is None or kernel.ordered is not None:
        return ()
    steps = [*islice(kernel.plan(shape, False), MAX_STEPS + 1)]
    if len(steps) > MAX_STEPS:
        return ()
    of = {key: [step.cost for step in steps if step.phase == key] for key in kernel.phases}
    return tuple(
        PlannedPhase(kernel.phases[key], len(costs), sum(c.relaxations for c in costs), sum(c.device_bytes for c in costs))
        for key, costs in of.items()
        if costs
    )


def known_speed(
    model: Model, experiment: Experiment, ladder: Model | None, here: bool, earlier: Sequence[Run] = ()
) -> tuple[str, ...]:
    """Describe the time of a repetition: of `earlier` runs or an estimate, if the kernel can run `here`, and on the ladder."""
    kernel = known_kernels().get(experiment.kernel)
    facts: list[str] = []
    if here and kernel is not None and not experiment.file:
        has_run = any(run.experiment.kernel == experiment.kernel and run.seconds for run in earlier)
        one = units.duration(expect(model, experiment, earlier=earlier).one)
        facts.append(f"about {one} per repetition here, {'from earlier runs' if has_run else 'estimated without any'}")
    elif kernel is not None and not here:
        facts.append("no GPU found: the simulator runs every thread in Python, so the kernel is verified, not timed")
    for run in ladder.runs.values() if ladder is not None else ():
        if run.experiment.kernel == experiment.kernel and run.counts and run.seconds:
            where = ladder.device.name if ladder is not None and ladder.device is not None else "another machine"
            unit = f"{where}'s host" if run.backend == "cpu" else where
            facts.append(f"recorded on {unit}: {units.duration(run.seconds)} for n {run.n}, {units.rate(run.rate)}")
            break
    return tuple(facts)


class PlannedText(TextPanel[PlannedSubject | None]):
    NOTHING = HEAD, line(("no run yet", MUTED))

    def draw(self, subject: PlannedSubject, width: int) -> Sequence[Content]:
        e = subject.experiment
        kernel = known_kernels().get(e.kernel)
        if kernel is None:
            return self.NOTHING
        planned, summary = (line((text, STRONG)).wrap(width) for text in (run_labels.summary(e, width), kernel.summary))
        rows = [HEAD, *planned, line(""), *summary]
        rows += [*line(kernel.lesson).wrap(width), line("")]
        if not e.file and (phases_planned := phases(kernel.id, e.shape(e.n))):
            rows += _plan(phases_planned, width)
        for place, speed in enumerate(subject.speeds):
            rows += hanging_indent("" if place else "time", LABEL, [speed], width)
        for paper in kernel.papers:
            rows += hanging_indent("from", LABEL, [paper], width)
        return rows


def _plan(phases: Sequence[PlannedPhase], width: int) -> list[Content]:
    """Return a row for each phase: number of launches, relaxations with their share as a bar, and bytes of the cost model."""
    whole = sum(one.relaxations for one in phases) or 1
    moves = any(one.device_bytes for one in phases)
    room = max(MIN_BAR, width - LABEL - (2 + moves) * NUMBER - 1)
    names = f"{'launches':>{NUMBER}}{'relax':>{NUMBER}}{'bytes' if moves else '':>{NUMBER * moves}}"
    rows = [line((f"{'repetition':<{LABEL}}{'':<{room}}{names}", MUTED))]
    for one in phases:
        amounts = f"{one.launches:>{NUMBER},}{units.scaled(one.relaxations, '').strip():>{NUMBER}}"
        amounts += f"{units.scaled(one.device_bytes, 'B'):>{NUMBER}}" if moves else ""
        title = (f"{truncate(one.title, LABEL - 1):<{LABEL}}", MUTED)
        rows.append(line(title, *meter(one.relaxations / whole, room), amounts))
    return [*rows, line("")]


class PlannedPanel(Container):
    """The experiment and the plan as text, with the source of the kernel to the right or below."""

    DEFAULT_CSS = """
    PlannedPanel { layout: horizontal; height: 1fr; }
    PlannedPanel VerticalScroll { width: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    PlannedPanel #code { border-left: solid $border-blurred; }
    """

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="planned-text", can_focus=False):
            yield PlannedText(None)
        with VerticalScroll(id="code", can_focus=False):
            yield SourceView(Running(""))

    def show(self, subject: PlannedSubject | None) -> None:
        self.query_one(PlannedText).show(subject)
        self.query_one(SourceView).show(Running(subject.experiment.kernel if subject is not None else ""))
