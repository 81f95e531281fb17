"""The occupancy panel: compiled and achieved occupancy, and a what-if calculation with sliders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple

from textual import events as ui
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.strip import Strip
from textual.widgets import Static

from fwtui.analysis.occupancy import KIB, MAX_REGISTERS, MAX_THREADS, STATIC_SHARED, TABLE, Estimate, occupancy
from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.model import Evidence, Model
from fwtui.stream.run import Run
from fwtui.tui.actions import ACROSS, Arrowed
from fwtui.tui.charts import Axis, Figure, Rule, Series
from fwtui.tui.charts.base import PieceWidget
from fwtui.tui.charts.chart import Chart
from fwtui.tui.widgets.run_text import meter
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, hanging, line
from fwtui_kernels.plan import WARP

TITLE, VALUE = 18, 10  # cells of its name and of its value
LABEL = 12
THREADS, REGISTERS, SHARED = "threads", "registers", "shared"


class Slider(PieceWidget, Arrowed, can_focus=True):
    """One line: name, value, and a bar with a knob. Values are whole numbers from `low` to `high` in steps."""

    ALLOW_SELECT = False
    PREFIX = "slider"
    BINDINGS: ClassVar = [*ACROSS]
    DEFAULT_CSS = """
    Slider { height: 1; }
    Slider .slider--title { color: $text-muted; }
    Slider:focus .slider--title { color: $text-primary; text-style: bold; }
    Slider .slider--value { color: $foreground; text-style: bold; }
    Slider .slider--filled { color: $primary; }
    Slider .slider--track { color: $text-muted; }
    Slider:disabled { opacity: 60%; }
    """
    COMPONENT_CLASSES: ClassVar = {f"slider--{part}" for part in ("title", "value", "filled", "track")}

    value: reactive[int] = reactive(0)
    high: reactive[int] = reactive(0)

    def __init__(
        self, title: str, low: int, high: int, step: int, text: Callable[[int], str], moved: Callable[[Slider], None], id: str
    ):
        """`moved` is called when the user has moved it, and when it gets the focus."""
        super().__init__(id=id)
        self._moved = moved
        self.title = title
        self.low, self.step = low, step
        self._text = text
        self.set_reactive(Slider.value, low)
        self.set_reactive(Slider.high, high)

    def show(self, value: int, high: int | None = None) -> None:
        """Take this value without a message."""
        self.high = self.high if high is None else high
        self.value = min(max(value, self.low), self.high)

    def _bar(self) -> tuple[int, int]:
        """Cells of the bar, and the knob's place in it."""
        cells = max(0, self.size.width - TITLE - VALUE - 1)
        share = (self.value - self.low) / max(self.high - self.low, 1)
        return cells, round(share * (cells - 1)) if cells else 0

    def render_line(self, y: int) -> Strip:
        cells, knob = self._bar()
        parts = [(f"{self.title:<{TITLE}.{TITLE}}", "title"), (f"{self._text(self.value):>{VALUE}} ", "value")]
        if cells:
            sign = "●" if self.has_focus else "┃"
            parts += [("━" * knob, "filled"), (sign, "value"), ("─" * (cells - knob - 1), "track")]
        return self.strip(parts)

    def action_arrow(self, rows: int, columns: int) -> None:
        # onto a whole step, also from a value between two of them
        steps = (self.value - self.low) / self.step
        place = int(steps) + columns if columns > 0 or steps == int(steps) else int(steps) + 1 + columns
        self._move(self.low + place * self.step)

    def _move(self, value: int) -> None:
        value = min(max(value, self.low), self.high)
        if value != self.value:
            self.value = value
            self._moved(self)

    def on_focus(self) -> None:
        self._moved(self)

    def on_mouse_down(self, event: ui.MouseDown) -> None:
        self.capture_mouse()
        self._point(event.x)

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        if self.app.mouse_captured is self:
            self._point(event.x)

    def on_mouse_up(self, event: ui.MouseUp) -> None:
        self.release_mouse()

    def _point(self, x: int) -> None:
        cells, _ = self._bar()
        if cells and x >= TITLE + VALUE:
            share = min(1.0, max(0.0, (x - TITLE - VALUE - 1) / max(cells - 1, 1)))
            self._move(self.low + round(share * (self.high - self.low) / self.step) * self.step if share < 1 else self.high)


class Range(NamedTuple):
    title: str
    low: int
    high: int
    step: int = 1
    text: str = "{:.0f}"


RANGES = {
    THREADS: Range("threads/block", WARP, MAX_THREADS, WARP),
    REGISTERS: Range("registers/thread", 16, MAX_REGISTERS),
    SHARED: Range("shared/block", 0, STATIC_SHARED // KIB, text="{:.0f} KiB"),  # the table of the GPU may raise the maximum
}


class BlockChoice(NamedTuple):
    """A block: threads, registers for each, and shared memory in KiB."""

    threads: int = 256
    registers: int = 32
    shared: int = 0


class OccupancySubject(NamedTuple):
    run: int | None
    op: str
    capability: tuple[int, int] | None
    compiled: events.Occupancy | None
    choice: BlockChoice
    measured: float | None  # GPM occupancy of the run as a whole
    cuda: bool


def estimate(capability: tuple[int, int] | None, choice: BlockChoice) -> Estimate | None:
    return occupancy(capability, choice.threads, choice.registers, choice.shared * KIB)


@lru_cache(maxsize=32)
def curve(capability: tuple[int, int] | None, choice: BlockChoice, varied: str, most: int) -> Figure:
    """Plot the occupancy over one of the three values; the other two stay fixed."""
    title, low, _, step, text = RANGES[varied]
    found = {value: estimate(capability, choice._replace(**{varied: value})) for value in range(low, most + 1, step)}
    points = {float(value): one.fraction for value, one in found.items() if one is not None}
    if not points:
        return Figure(empty="no table for this compute capability")
    return Figure(
        (Series("occupancy", tuple(points), tuple(points.values()), points=False, listed=False),),
        Axis(title, text.format, low=float(low), high=float(most)),
        Axis("occupancy", units.percent, low=0.0, high=1.0),
        (Rule(float(getattr(choice, varied)), "", vertical=True),),
    )


class OccupancyLines(TextPanel[OccupancySubject | None]):
    """What-if, theoretical and achieved occupancy, and the blocks that each resource allows."""

    NOTHING = (line(("no run yet", MUTED)),)

    def draw(self, subject: OccupancySubject, width: int) -> Sequence[Content]:
        if subject.run is None:
            return self.NOTHING
        if not subject.cuda:
            return [line(("occupancy needs a GPU; this run used the CPU", MUTED))]
        if subject.capability is None or subject.capability not in TABLE:
            return [line(("no occupancy table for the compute capability of this GPU", MUTED))]
        one = estimate(subject.capability, subject.choice)
        compiled = subject.compiled
        share = compiled.warps / compiled.max_warps if compiled is not None and compiled.max_warps else None
        rows = [
            _bar("what-if", one.fraction if one else None, width, f"{one.warps}/{one.max_warps} warps" if one else ""),
            _bar("theoretical", share, width, f"from {compiled.source}" if compiled is not None else ""),
            _bar("achieved", subject.measured, width, ""),
        ]
        if one is not None:
            rows.append(line((f"{'limiter':<{LABEL}}", MUTED), (" and ".join(one.limiters), STRONG)))
            rows += hanging("blocks/SM", LABEL, [f"{name} {blocks}" for name, blocks in one.limits.items()], width)
        return rows


def _bar(label: str, share: float | None, width: int, words: str) -> Content:
    room = max(4, width - LABEL - 9 - 15)
    if share is None:
        return line((f"{label:<{LABEL}}", MUTED), (" " * room + f"{units.ABSENT:>9}", MUTED))
    return line((f"{label:<{LABEL}}", MUTED), *meter(share, room), (f"{units.percent(share):>9}", STRONG), (f" {words}", MUTED))


class OccupancyPanel(Vertical):
    """Three sliders, the resulting occupancy, and its curve over the last moved slider."""

    DEFAULT_CSS = """
    OccupancyPanel Chart { margin-top: 1; }
    """

    def __init__(self, changed: Callable[[], None], key_of: Callable[[str], str]) -> None:
        """`changed` is called after a slider was moved; `key_of` gives the key of a row."""
        super().__init__(id="occupancy", classes="panel")
        self._changed, self._key_of = changed, key_of
        self.subject = OccupancySubject(None, "", None, None, BlockChoice(), None, False)
        self._varied = REGISTERS

    def compose(self) -> ComposeResult:
        yield Static(id="block", classes="title", markup=False)
        for name, (title, low, high, step, text) in RANGES.items():
            yield Slider(title, low, high, step, text.format, self._vary, name)
        yield OccupancyLines(None)
        yield Chart(id="curve")

    @property
    def changed(self) -> bool:
        """Whether the sliders differ from the compiled values."""
        return self.subject.choice != _compiled_choice(self.subject.compiled)

    def show(self, model: Model, run: Run | None, evidence: Evidence | None, op: str) -> None:
        """Show a kernel function of the run; a new one moves the sliders back to its compiled values."""
        found = next((o for o in run.occupancies if o.op == op), run.main_occupancy) if run is not None else None
        base = (run.id if run is not None else None, found.op if found is not None else "")
        gpu = model.gpu_of(run) if run is not None else model.gpu
        capability = gpu.compute_capability if gpu is not None else None
        measured = evidence.sm_occupancy if evidence is not None else None
        choice = self.subject.choice if base == self.subject[:2] else _compiled_choice(found)
        self._say(OccupancySubject(*base, capability, found, choice, measured, run is not None and run.backend == "cuda"))

    def reset(self) -> None:
        self._say(self.subject._replace(choice=_compiled_choice(self.subject.compiled)))

    def _say(self, subject: OccupancySubject) -> None:
        self.subject = subject
        self.query_one(OccupancyLines).show(subject)
        has = TABLE.get(subject.capability) if subject.capability is not None else None
        usable = subject.cuda and has is not None
        undo, cursor = self._key_of("explain.undo"), self._key_of("cursor")
        hint = "" if not usable else f"what-if; {undo} resets" if self.changed else f"what-if: {cursor}, then the arrows"
        title = line(("OCCUPANCY  ", f"{STRONG} $text-primary"), (f"{subject.op}  " if subject.op else "", STRONG), (hint, MUTED))
        self.query_one("#block", Static).update(title)
        most = {name: limits.high for name, limits in RANGES.items()}
        if has is not None:
            most[SHARED] = max(most[SHARED], has.shared_per_block // KIB)
        for slider in self.query(Slider):
            slider.disabled = not usable
            slider.show(getattr(subject.choice, slider.id or ""), most[slider.id or ""])
        chart = self.query_one(Chart)
        chart.display = usable
        if usable:
            chart.show(curve(subject.capability, subject.choice, self._varied, most[self._varied]))

    def _vary(self, slider: Slider) -> None:
        self._varied = slider.id or THREADS
        self._say(self.subject._replace(choice=self.subject.choice._replace(**{self._varied: slider.value})))
        self._changed()


def _compiled_choice(found: events.Occupancy | None) -> BlockChoice:
    """Return the compiled values, clamped to the range of the sliders."""
    if found is None:
        return BlockChoice()
    threads, registers = min(max(found.threads, WARP), MAX_THREADS), min(max(found.registers, 16), MAX_REGISTERS)
    return BlockChoice(threads, registers, min(-(-found.shared_bytes // KIB), 227))
