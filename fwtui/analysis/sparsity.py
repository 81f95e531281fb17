"""Properties of a plan for a sparse graph before its first repetition."""

from __future__ import annotations

from fwtui.common import units
from fwtui.stream.run import Run
from fwtui_kernels.plan import ITEMSIZE

NO_SEPARATORS = "no small separators: no relaxation is skipped, and dense kernels are equally fast"


def describe_order(run: Run, seconds: float | None = None) -> list[str]:
    """Describe the order of a run with the estimated time of a repetition; empty if its kernel does not order the vertices."""
    if run.ordered is None or not run.padded:
        return []
    if not run.ordered.sizes:
        return [NO_SEPARATORS]
    fill = [f"fill {units.percent(run.ordered.fill)}"] if run.ordered.fill is not None else []
    return [
        units.counted(len(run.ordered.sizes), "supernode"),
        *fill,
        f"{units.gain(reduction(run))} fewer relaxations than dense",
        units.memory(run.padded**2 * ITEMSIZE.get(run.experiment.dtype, 4)),
        *([f"about {units.duration(seconds)} per repetition"] if seconds is not None else []),
    ]


def reduction(run: Run) -> float:
    """Return the relaxations of a dense run / those of this one; 1 if it skips none."""
    return run.n**3 / run.needed if run.needed else 1.0


def rate_text(run: Run) -> str:
    """Format the rate of a run; if it skips relaxations, after their reduction, as the rates of dense runs do not compare."""
    rate = units.rate(run.rate)
    return f"{units.gain(reduction(run))} fewer relaxations at {rate}" if reduction(run) > 1 else rate
