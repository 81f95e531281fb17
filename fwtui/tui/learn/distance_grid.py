"""The distance matrix of a small graph as numbers; text on the step, the relaxation, the path and the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from fwtui.experiment.experiment import kernel_named
from fwtui.learn.stepping import Stepping
from fwtui.tui.actions import ACROSS, DOWN
from fwtui.tui.charts.base import GridCursor
from fwtui.tui.frame.glossary import used
from fwtui.tui.widgets.text_panel import MUTED, STRONG, TextPanel, indented, line
from fwtui_kernels.plan import EVERY

LABELS = 4  # cells of a row number
NUMBER = 4  # cells of a distance; one more for its sign
CELL = NUMBER + 1
SIGNS = {"shorter": "*", "written": "'", "read": ".", "rest": " "}  # for screens without colours
PARTS = ("rest", "read", "written", "shorter", "marked", "head")
LABEL = 8


class Legend(TextPanel[None]):
    """The legend of signs and tints."""

    DEFAULT_CSS = "Legend { width: 42; }"
    NOTHING = (
        line(
            (f" {SIGNS['written']} written ", "$text on $primary 35%"),
            (f" {SIGNS['read']} read ", "$text on $foreground 12%"),
            (f" {SIGNS['shorter']} shorter ", "bold $background on $primary"),
            (" k= this k", MUTED),
        ),
    )


def distance_text(distance: float) -> str:
    """Format a distance in at most NUMBER cells; ∞ means no path."""
    if distance == float("inf"):
        return "∞"
    whole = f"{distance:.0f}"
    return whole if len(whole) <= NUMBER else ("-" if distance < 0 else "") + "…"


class DistanceGrid(ScrollView, GridCursor, can_focus=True):
    """The matrix with a cursor; the heads of row and column k are marked `k=`."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    DistanceGrid { height: auto; width: auto; scrollbar-size: 1 1; }
    DistanceGrid .grid--rest { color: $text; }
    DistanceGrid .grid--read { background: $foreground 12%; color: $text; }
    DistanceGrid .grid--written { background: $primary 35%; color: $text; }
    DistanceGrid .grid--shorter { background: $primary; color: $background; text-style: bold; }
    DistanceGrid .grid--marked { text-style: reverse bold; }
    DistanceGrid .grid--head { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar = {f"grid--{part}" for part in PARTS}
    BINDINGS: ClassVar = [*DOWN, *ACROSS]

    def __init__(self, stepping: Stepping, marked: Callable[[], None]):
        """Call `marked` when the cursor moves."""
        super().__init__()
        self._marked = marked
        self._stepping = stepping
        self._made_for: object = None
        self._strips: list[Strip] = []

    def show(self) -> None:
        size = Size(LABELS + CELL * self._stepping.trace.n, 1 + self._stepping.trace.n)
        if size != self.virtual_size:
            self.virtual_size = size
            self.refresh(layout=True)
        self.refresh()
        row, column = self._stepping.row, self._stepping.column
        self.scroll_to_region(Region(column * CELL, row, LABELS + CELL, 2), animate=False, force=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        return LABELS + CELL * self._stepping.trace.n

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + self._stepping.trace.n

    @property
    def extent(self) -> tuple[int, int]:
        return self._stepping.trace.n, self._stepping.trace.n

    @property
    def cursor(self) -> tuple[int, int]:
        return self._stepping.row, self._stepping.column

    def put(self, row: int, column: int) -> None:
        self._stepping.mark(row, column)
        self._marked()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        column, row = (offset.x + self.scroll_offset.x - LABELS) // CELL, offset.y + self.scroll_offset.y - 1
        if row >= 0 and column >= 0:
            self.put(row, column)

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        styles = {part: self.get_component_rich_style(f"grid--{part}") for part in PARTS}
        s = self._stepping
        made_for = (s.edition, s.position, s.row, s.column, self.has_focus, tuple(styles.values()))
        if made_for != self._made_for:
            self._made_for = made_for
            self._strips = list(self._drawn(styles))
        place = y + scroll_y
        strip = self._strips[place] if place < len(self._strips) else Strip.blank(self.size.width)
        return strip.crop(scroll_x, scroll_x + self.size.width).adjust_cell_length(self.size.width, self.rich_style)

    def _drawn(self, styles: dict[str, Style]) -> Sequence[Strip]:
        s = self._stepping
        n, moment, changed = s.trace.n, s.moment, s.changed
        k = moment.k if moment is not None else -1
        head = [Segment(" " * LABELS, styles["head"])]
        head += [Segment(f"{'k=' if j == k else ''}{j}".rjust(NUMBER) + " ", styles["head"]) for j in range(n)]
        strips = [Strip(head)]
        for i in range(n):
            line = [Segment(f"{'k=' if i == k else ''}{i}".rjust(LABELS - 1) + " ", styles["head"])]
            for j in range(n):
                if changed[i, j]:
                    part = "shorter"
                elif moment is None:
                    part = "rest"
                else:
                    part = "written" if moment.writes(i, j) else "read" if moment.reads(i, j) else "rest"
                style = styles[part]
                if (i, j) == (s.row, s.column):
                    style = style + styles["marked"]
                line.append(Segment(distance_text(s.distances[i, j]).rjust(NUMBER), style))
                line.append(Segment(SIGNS[part], styles[part]))
            strips.append(Strip(line))
        return strips


class StepPosition(NamedTuple):
    """The state of the text: the position is copied, as the stepping changes in place."""

    stepping: Stepping
    at: tuple[int, int, int, int]  # edition, position, row, column


class StepText(TextPanel[StepPosition]):
    """The step, its round, and its effect on the marked cell."""

    def draw(self, subject: StepPosition, width: int) -> Sequence[Content]:
        s = subject.stepping
        unknown = f"none from {s.row} to {s.column} yet" if s.moment is not None else "no edge"
        path = f"{' → '.join(map(str, s.path))}, length {distance_text(s.distances[s.row, s.column])}"
        facts = [*_cell(s), ("path", path, "") if s.path else ("path", unknown, MUTED)]
        if s.negative_cycle:
            facts.append(("cycle", "a cycle of negative length: paths through it have no shortest length", "$text-error"))
        rows = [part for row in _where(s) for part in row.wrap(width)]
        hung_lines = [indented(line((f"{label:<{LABEL}}", MUTED)), text, width, style) for label, text, style in facts]
        return [*rows, line(""), *chain(*hung_lines)]


def _where(s: Stepping) -> list[Content]:
    """Return the graph and the position in the plan."""
    trace, moment = s.trace, s.moment
    facts = [trace.kernel.title, f"n {trace.n}"]
    if trace.kernel.tiles:
        facts.append(f"tile {trace.shape.tile}")
    facts.append("weights changed by hand" if s.edited else f"seed {s.experiment.seed}")
    rows = [line((" · ".join(facts), STRONG))]
    if moment is None:
        return [*rows, line(("before the first step: edge weights, ∞ if there is no edge", MUTED))]
    at = f"step {moment.step + 1} of {len(trace.plan)} · round {moment.round} of {trace.moments[-1].round} · "
    step = trace.plan[moment.step]
    work = f" · k = {moment.k}" + f" · rank {step.rank}" * (trace.shape.ranks > 1)
    if step.rank == EVERY:
        owner = moment.k // trace.shape.tile % trace.shape.ranks
        work = f" · rank {owner} broadcasts the row of tiles from {moment.k} on"
    return [*rows, line(at, (trace.kernel.phases[moment.phase], "$text-primary"), work)]


def _cell(s: Stepping) -> list[tuple[str, str, str]]:
    i, j, moment = s.row, s.column, s.moment
    here = distance_text(s.distances[i, j])
    if moment is None:
        return [("cell", f"d[{i},{j}] = {here}", "")]
    k, cell = moment.k, s.cell
    if cell is None:
        return [("cell", f"d[{i},{j}] = {here}, not written by this step", "")]
    formula = f"d[{i},{j}] = min(d[{i},{j}], d[{i},{k}] + d[{k},{j}])"
    old, to_k, from_k, new = map(distance_text, (cell.old, cell.to_k, cell.from_k, cell.new))
    numbers = f"{'':{len(f'd[{i},{j}]')}} = min({old}, {to_k} + {from_k}) = {new}"
    return [("cell", formula, ""), ("", numbers, "$text-primary" if cell.new < cell.old else "")]


class KernelText(TextPanel[tuple[str, str] | None]):
    """The summary and lesson of a kernel, given its id and the key of the glossary; empty next to the course."""

    def draw(self, subject: tuple[str, str], width: int) -> Sequence[Content]:
        id, key = subject
        kernel = kernel_named(id)
        rows = [line((kernel.title, STRONG)), *Content(kernel.summary).wrap(width), line("")]
        rows += Content(kernel.lesson).wrap(width)
        terms = used(f"{kernel.summary} {kernel.lesson}")
        return [*rows, *line((f"{key} explains: {', '.join(terms)}", MUTED)).wrap(width)]
