"""The hardware counters of a run, an operation beside the other."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content

from fwtui.live.counters import METRICS, PROFILED, shown
from fwtui.stream.run import Run
from fwtui.tui.frame.dialogs import Dialog, Scrolled
from fwtui.tui.widgets.drawn import MUTED, STRONG, line

NAME, VALUE = 36, 14  # cells of a column


class CountersScreen(Dialog):
    """Every counter that was measured, by operation. They come from a profiler and are never timings."""

    def __init__(self, run: Run):
        super().__init__(f"Counters · run {run.id} · {PROFILED}")
        self._counters = run.counters

    def body(self) -> ComposeResult:
        ops = list(self._counters)
        rows: list[tuple[Content, str]] = [(line(" " * NAME, *((f"{op[: VALUE - 2]:>{VALUE}}", STRONG) for op in ops)), "")]
        for metric in METRICS:
            if any(metric.key in self._counters[op] for op in ops):
                values = (f"{shown(metric, self._counters[op]):>{VALUE}}" for op in ops)
                rows.append((line((f"{metric.title:<{NAME}}", MUTED), *values), ""))
        yield Scrolled(rows)
