"""The hardware counters of a run, as a panel of Explain."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from fwtui.common.text import shortened
from fwtui.live.counters import METRICS, PROFILED, shown
from fwtui.stream.run import Run
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, line

LEAST_NAME = 20  # cells of a counter's name


class CountersTable(Drawn["Run | None"]):
    """Every counter of a run, from a profiler and never a timing: a column for each operation, under each other without room."""

    def draw(self, subject: Run, width: int) -> Sequence[Content]:
        told = subject.counters
        metrics = [metric for metric in METRICS if any(metric.key in counters for counters in told.values())]
        texts = {op: [shown(metric, counters) for metric in metrics] for op, counters in told.items()}
        cells = 2 + max((len(text) for column in texts.values() for text in column), default=0)
        name = min(1 + max((len(metric.title) for metric in metrics), default=0), max(LEAST_NAME, width - cells))
        each = max(1, (width - name) // cells)
        lines = [line(("COUNTERS  ", f"{STRONG} $text-primary"), (f"run {subject.id} · {PROFILED}", MUTED)), line("")]
        for first in range(0, len(told), each):
            ops = list(told)[first : first + each]
            lines += [line("")] * bool(first)
            lines.append(line(" " * name, *((f"{shortened(op, cells - 2):>{cells}}", STRONG) for op in ops)))
            for place, metric in enumerate(metrics):
                values = (f"{texts[op][place]:>{cells}}" for op in ops)
                lines.append(line((f"{shortened(metric.title, name - 1):<{name}}", MUTED), *values))
        return lines
