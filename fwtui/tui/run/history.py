"""The table of runs, newest first."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import DataTable

from fwtui.analysis.limits import share_of_limit
from fwtui.common import units
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.widgets import wording

MAX_ROWS = 100
WIDE = (
    *(("#", 3), ("kernel", 16), ("n", 5), ("tile", 4), ("type", 4), ("total", 9)),
    *(("relax/s", 7), ("of limit", 8), ("vs base", 8), ("result", 33)),
)
WIDEST = (*WIDE[:-2], ("of peak", 7), WIDE[-2], ("verdict", 8), WIDE[-1])
LONGEST = 23  # cells of a kernel's name
NARROW = (("#", 3), ("kernel", 16), ("n", 5), ("total", 10), ("result", 33))
WIDE_CELLS, WIDEST_CELLS = 118, 140
RIGHT = {"#", "n", "tile", "total", "relax/s", "of limit", "of peak", "vs base"}
NONE = "-"


def columns(width: int) -> tuple[tuple[str, int], ...]:
    """Names and widths for a table of `width` cells with its scrollbar.

    The last one gives way where there is no room, and kernels take what it leaves, so that no name is cut there.
    """
    *fixed, (last, most) = WIDEST if width >= WIDEST_CELLS else WIDE if width >= WIDE_CELLS else NARROW
    room = width - 1 - sum(cells + 2 for _, cells in fixed) - 2
    number, (kernel, usual), *others = fixed
    whole = min(max(usual, usual + room - most), LONGEST)
    return (number, (kernel, whole), *others, (last, max(8, min(most, room))))


def cells(run: Run, model: Model, baseline: Run | None) -> dict[str, Text]:
    """What the table says of a run; numbers that nobody should trust are struck through."""
    number = "strike" if wording.doubtful(run) and run.seconds is not None else ""
    rate = units.scaled(run.rate, "").rstrip() if run.rate else units.ABSENT  # its unit is the column's name
    evidence = model.evidence(run) if run.backend == "cuda" and run.state == "done" else None
    peak = model.gpu.peak_bytes_per_second if model.gpu is not None and run.backend == "cuda" else None
    share = run.bandwidth / peak if run.bandwidth and peak else None
    ratio, word = wording.against(model, run, baseline)
    reached = share_of_limit(model, run)
    texts = {
        "#": (str(run.id), ""),
        "kernel": (run.experiment.kernel, ""),
        "n": (str(run.n) if run.n else NONE, ""),
        "tile": (str(run.experiment.tile) if run.experiment.tile else NONE, ""),
        "type": (wording.short_dtype(run.experiment.dtype), ""),
        "total": ("not timed" if run.simulated else units.duration(run.seconds), number),
        "relax/s": (units.ABSENT if run.simulated else rate, number),
        "of limit": (units.percent(reached), number if reached is not None else ""),
        "of peak": (units.percent(share), number if share is not None else ""),
        "vs base": (ratio, ""),
        "verdict": (word, ""),
        "result": (wording.outcome(run, evidence.throttled if evidence is not None else ()), ""),
    }
    return {
        name: Text(
            text,
            style="dim" if text == units.ABSENT else style,
            justify="right" if name in RIGHT else "left",
            overflow="ellipsis",
            no_wrap=True,
        )
        for name, (text, style) in texts.items()
    }


class HistoryTable(DataTable[Text]):
    """Only cells that changed are written again, and widths never change."""

    DEFAULT_CSS = """
    HistoryTable { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    HistoryTable:focus { background-tint: $background 0%; }
    HistoryTable > .datatable--header { background: $panel; color: $text-muted; text-style: none; }
    """

    def __init__(self, *, id: str | None = None):
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=1)
        self._columns_shown: tuple[tuple[str, int], ...] = ()
        self._shown: dict[int, tuple[object, dict[str, Text]]] = {}

    @property
    def marked(self) -> int | None:
        """The run under the cursor."""
        if not self.row_count:
            return None
        key = self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value
        return int(key) if key else None

    def show(self, model: Model, baseline: Run | None, width: int) -> None:
        """Agree with the model."""
        shown = columns(width)
        if shown != self._columns_shown:
            self._rebuild(shown)
        newest = sorted(model.runs, reverse=True)[:MAX_ROWS]
        kept = set(newest)
        marked = self.marked
        at_top = self.cursor_row == 0
        for gone in [run for run in self._shown if run not in kept]:
            self.remove_row(str(gone))
            del self._shown[gone]
        added = False
        for number in newest:
            run = model.runs[number]
            before = self._shown.get(number)
            key = (run, baseline, model.device, model.limits)
            if before is not None and _same(before[0], key):
                continue
            texts = cells(run, model, baseline)
            if before is None:
                self.add_row(*(texts[name] for name, _ in shown), key=str(number))
                added = True
            else:
                for name, _ in shown:
                    if _looks(texts[name]) != _looks(before[1][name]):
                        self.update_cell(str(number), name, texts[name])
            self._shown[number] = (key, texts)
        if added:
            self.sort("#", key=lambda text: int(text.plain), reverse=True)
            if marked is not None and not at_top and marked in kept:
                self.move_cursor(row=newest.index(marked), scroll=False)

    def _rebuild(self, shown: tuple[tuple[str, int], ...]) -> None:
        self.clear(columns=True)
        self._shown.clear()
        self._columns_shown = shown
        for name, width in shown:
            self.add_column(Text(name, justify="right" if name in RIGHT else "left"), width=width, key=name)


def _same(before: object, after: tuple[object, ...]) -> bool:
    return isinstance(before, tuple) and all(a is b for a, b in zip(before, after, strict=True))


def _looks(text: Text) -> tuple[str, str]:
    return text.plain, str(text.style)
