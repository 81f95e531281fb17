"""What a plan for a sparse graph leaves out, in words, before its first pass."""

from __future__ import annotations

from fwtui.common import units
from fwtui.stream.run import Run
from fwtui_kernels.plan import ITEMSIZE

NO_SEPARATORS = "no small separators: nothing is left out, and dense kernels are as fast"


def in_words(run: Run, seconds: float | None = None) -> list[str]:
    """Its parts, with the foreseen time of a pass; nothing for a kernel that does not order the vertices."""
    if run.ordered is None or not run.padded:
        return []
    if not run.ordered.sizes:
        return [NO_SEPARATORS]
    fill = [f"fill {units.percent(run.ordered.fill)}"] if run.ordered.fill is not None else []
    return [
        units.counted(len(run.ordered.sizes), "supernode"),
        *fill,
        f"{units.gain(run.n**3 / run.needed)} fewer relaxations than dense",
        units.memory(run.padded**2 * ITEMSIZE.get(run.experiment.dtype, 4)),
        *([f"about {units.duration(seconds)} a pass"] if seconds is not None else []),
    ]
