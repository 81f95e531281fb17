"""The runs that are compared, each with its verdict against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual.widgets import DataTable

from fwtui.analysis.compare import FASTER, SLOWER, Comparison, Entrant
from fwtui.common import units
from fwtui.tui.widgets import wording

MOST_ROWS = 100
WIDE_CELLS, WIDEST_CELLS = 118, 140
WIDE = (("run", 19), ("kernel", 16), ("n", 5), ("tile", 4), ("type", 4), ("total", 9), ("", 8), ("vs base", 8), ("verdict", 8))
WIDEST = (WIDE[0], ("kernel", 23), *WIDE[2:])
NARROW = (("run", 14), ("kernel", 14), ("n", 5), ("total", 9), ("vs base", 8), ("verdict", 8))
TIGHT = (("run", 8), ("kernel", 12), ("total", 9), ("vs base", 8), ("verdict", 8))
NARROW_CELLS = 72
BECAUSE = "because"
LEAST_BECAUSE = 12
RIGHT = {"n", "tile", "total", "", "vs base"}


class Line(NamedTuple):
    """A run, and what is said of it; the baseline's own line has no comparison."""

    entrant: Entrant
    found: Comparison | None
    pinned: bool = False


def columns(width: int) -> tuple[tuple[str, int], ...]:
    """Names and widths for a table of so many cells; what is left over says why."""
    fixed = WIDEST if width >= WIDEST_CELLS else WIDE if width >= WIDE_CELLS else NARROW if width >= NARROW_CELLS else TIGHT
    room = width - 1 - sum(cells + 2 for _, cells in fixed) - 2
    return (*fixed, (BECAUSE, room)) if room >= LEAST_BECAUSE else fixed


def cells(line: Line, label_width: int) -> dict[str, Text]:
    """What the table says of one run; of a label that is too long the session's name is cut, not the run's number."""
    run, found = line.entrant.run, line.found
    told = found is not None and found.verdict in (FASTER, SLOWER)
    number = "strike" if wording.doubtful(run) and run.seconds is not None else ""
    ratio = wording.times(found) if found is not None else "baseline" if line.pinned else ""
    texts = {
        "run": (short_label(line.entrant.label, label_width), "bold" if found is None else ""),
        "kernel": (run.experiment.kernel, ""),
        "n": (str(run.n) if run.n else "-", ""),
        "tile": (str(run.experiment.tile or "-"), ""),
        "type": (wording.short_dtype(run.experiment.dtype), ""),
        "total": ("not timed" if run.simulated else units.duration(run.seconds), number),
        "": (units.spread(run.done.spread if run.done is not None else None), ""),
        "vs base": (ratio, "" if told or found is None else "dim"),
        "verdict": ("" if found is None else found.verdict, "bold" if told else ""),
        BECAUSE: ("" if found is None else found.why, "dim"),
    }
    return {
        name: Text(text, style=style, justify="right" if name in RIGHT else "left", overflow="ellipsis", no_wrap=True)
        for name, (text, style) in texts.items()
    }


def short_label(label: str, width: int) -> str:
    """The label in so many cells: h200-n4096-na…:8."""
    name, colon, number = label.rpartition(":")
    room = width - len(colon) - len(number) - 1
    return label if len(label) <= width or room < 1 else f"{name[:room]}…{colon}{number}"


class CompareTable(DataTable[Text]):
    """Only cells that changed are written again, and widths never change."""

    DEFAULT_CSS = """
    CompareTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    CompareTable:focus { background-tint: $background 0%; }
    CompareTable > .datatable--header { background: $panel; color: $text-muted; text-style: none; }
    """

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False, cell_padding=1)
        self._columns_shown: tuple[tuple[str, int], ...] = ()
        self._shown: dict[str, dict[str, Text]] = {}
        self._lines: tuple[Line, ...] = ()

    @property
    def marked(self) -> str | None:
        """Label of the run under the cursor."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def show(self, lines: Sequence[Line], width: int) -> None:
        """These runs in this order; nothing is done where that is what is shown."""
        shown = columns(width)
        if (tuple(lines), shown) == (self._lines, self._columns_shown):
            return
        self._lines = tuple(lines)
        labels = [line.entrant.label for line in lines]
        marked, at = self.marked, self.cursor_row
        if shown != self._columns_shown or labels != list(self._shown):
            self.clear(columns=shown != self._columns_shown)
            if shown != self._columns_shown:
                for name, cell_width in shown:
                    heading = Text(name, justify="right" if name in RIGHT else "left")
                    self.add_column(heading, width=cell_width, key=name)
            self._columns_shown = shown
            self._shown = {}
        for line in lines:
            label, texts = line.entrant.label, cells(line, shown[0][1])
            before = self._shown.get(label)
            if before is None:
                self.add_row(*(texts[name] for name, _ in shown), key=label)
            else:
                for name, _ in shown:
                    if (texts[name].plain, str(texts[name].style)) != (before[name].plain, str(before[name].style)):
                        self.update_cell(label, name, texts[name])
            self._shown[label] = texts
        if labels and at and self.marked != marked:  # at the top it follows the newest
            self.move_cursor(row=labels.index(marked) if marked in labels else min(at, len(labels) - 1), scroll=False)
