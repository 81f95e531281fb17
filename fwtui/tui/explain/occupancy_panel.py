"""The occupancy panel: theoretical and achieved occupancy, and what-if curves over the resources of a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from fwtui.analysis.bottleneck import counters_of
from fwtui.analysis.occupancy import KIB, MAX_REGISTERS, MAX_THREADS, STATIC_SHARED, TABLE, occupancy
from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.model import Evidence, Model
from fwtui.stream.run import Run
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.chart import Chart
from fwtui.tui.widgets.run_text import NOT_LIMITED, WHOLE_RUN, meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, hanging_indent, line
from fwtui_kernels.plan import WARP

LABEL = 12
THIS_FUNCTION = "this function"
THREADS, REGISTERS, SHARED = "threads", "registers", "shared"


class Resource(NamedTuple):
    """A resource of a block that a what-if curve varies."""

    title: str
    low: int
    high: int
    step: int = 1
    text: str = "{:.0f}"


RESOURCES = {
    REGISTERS: Resource("registers/thread", 16, MAX_REGISTERS),
    THREADS: Resource("threads/block", WARP, MAX_THREADS, WARP),
    SHARED: Resource("shared/block", 0, STATIC_SHARED // KIB, text="{:.0f} KiB"),  # a GPU's table may raise the maximum
}


class Block(NamedTuple):
    """The resources of a block: threads, registers per thread, and shared memory in KiB."""

    threads: int
    registers: int
    shared: int


class OccupancySubject(NamedTuple):
    cuda: bool
    capability: tuple[int, int] | None = None
    compiled: events.Occupancy | None = None
    achieved: float | None = None
    of: str = ""  # the part that was measured: WHOLE_RUN (GPM) or THIS_FUNCTION (counters)

    @property
    def block(self) -> Block | None:
        """The compiled block; None if the GPU or its registers are unknown."""
        one = self.compiled
        known = self.cuda and self.capability in TABLE and one is not None
        return Block(one.threads, one.registers, -(-one.shared_bytes // KIB)) if known and one is not None else None


@lru_cache(maxsize=32)
def curve(capability: tuple[int, int], block: Block, varied: str) -> Figure:
    """Plot the theoretical occupancy over one resource of the block; the other two keep their compiled values."""
    title, low, high, step, text = RESOURCES[varied]
    if varied == SHARED:
        high = max(high, TABLE[capability].shared_per_block // KIB)
    values = range(low, high + 1, step)
    blocks = [block._replace(**{varied: value}) for value in values]
    shares = [one.fraction for b in blocks if (one := occupancy(capability, b.threads, b.registers, b.shared * KIB)) is not None]
    now = getattr(block, varied)
    return Figure(
        (Series("occupancy", tuple(map(float, values)), tuple(shares), points=False, listed=False),),
        Axis(title, text.format, low=float(low), high=float(high)),
        Axis("theoretical occupancy", units.percent, low=0.0, high=1.0),
        (Rule(float(now), f"compiled: {text.format(now)}", vertical=True),),
    )


class OccupancyLines(TextPanel[OccupancySubject | None]):
    """Theoretical and achieved occupancy, its limiters, and the blocks that each resource allows."""

    NOTHING = (line(("no run yet", MUTED)),)

    def draw(self, subject: OccupancySubject, width: int) -> Sequence[Content]:
        if not subject.cuda:
            return [line(("occupancy needs a GPU; this run used the CPU", MUTED))]
        compiled, block = subject.compiled, subject.block
        share = compiled.warps / compiled.max_warps if compiled is not None and compiled.max_warps else None
        warps = f"{compiled.warps}/{compiled.max_warps} warps" if compiled is not None else ""
        rows = [_bar("theoretical", share, width, warps), _bar("achieved", subject.achieved, width, subject.of)]
        if subject.capability not in TABLE:
            return [*rows, line(("no occupancy table for the compute capability of this GPU", MUTED))]
        one = occupancy(subject.capability, block.threads, block.registers, block.shared * KIB) if block is not None else None
        if one is not None and block is not None:
            limiter = " and ".join(one.limiters) if one.fraction < 1 else NOT_LIMITED
            rows.append(line((f"{'limiter':<{LABEL}}", MUTED), (limiter, STRONG)))
            rows += hanging_indent("blocks/SM", LABEL, [f"{name} {blocks}" for name, blocks in one.limits.items()], width)
            each = [f"{block.threads} threads", f"{block.registers} registers/thread", f"{block.shared} KiB shared memory"]
            rows += hanging_indent("block", LABEL, each, width)
        return rows


def _bar(label: str, share: float | None, width: int, text: str) -> Content:
    room = max(4, width - LABEL - 9 - 15)
    if share is None:
        return line((f"{label:<{LABEL}}", MUTED), (" " * room + f"{units.ABSENT:>9}", MUTED))
    return line((f"{label:<{LABEL}}", MUTED), *meter(share, room), (f"{units.percent(share):>9}", STRONG), (f" {text}", MUTED))


class OccupancyPanel(Vertical):
    """Occupancy of a kernel function; if no other panel is shown, also a what-if curve for each resource."""

    def __init__(self) -> None:
        super().__init__(id="occupancy", classes="panel")

    def compose(self) -> ComposeResult:
        yield Static(id="block", classes="title", markup=False)
        yield OccupancyLines(None)
        for name in RESOURCES:
            yield Chart(id=name, labelled=True)

    def show(self, model: Model, run: Run | None, evidence: Evidence | None, op: str) -> None:
        """Show a kernel function of the run; empty `op`: its main one."""
        found = next((o for o in run.occupancies if o.op == op), run.main_occupancy) if run is not None else None
        gpu = model.gpu_of(run) if run is not None else model.gpu
        capability = gpu.compute_capability if gpu is not None else None
        counted = counters_of(run, found.op).get("occupancy") if run is not None and found is not None else None
        achieved = counted if counted is not None else evidence.sm_occupancy if evidence is not None else None
        of = THIS_FUNCTION if counted is not None else WHOLE_RUN
        subject = OccupancySubject(run.backend == "cuda", capability, found, achieved, of) if run is not None else None
        self.query_one(OccupancyLines).show(subject)
        phase = run.phase_title(found.op) if run is not None and found is not None else ""
        title = line(("OCCUPANCY  ", f"{STRONG} $text-primary"), (phase, STRONG))
        self.query_one("#block", Static).update(title)
        block = subject.block if subject is not None else None
        self.set_class(block is None, "-none")
        for name in RESOURCES:
            empty = Figure(empty="")
            self.query_one(f"#{name}", Chart).show(curve(capability, block, name) if capability and block else empty)
