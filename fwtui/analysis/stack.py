"""A run of many graphs at once in words: how many a second, and where each of them is while it is solved."""

from __future__ import annotations

from fwtui.common import units
from fwtui.stream.run import Run
from fwtui_kernels.plan import ITEMSIZE, WARP

CELLS = 16  # of a graph in the registers of one thread
FULL = 0.9  # a share of a block's cells from which on nothing is said of the rest


def graphs_per_second(run: Run) -> float | None:
    """None for a single graph, or without a time."""
    return run.experiment.graphs / run.seconds if run.experiment.graphs > 1 and run.seconds else None


def pace(run: Run) -> str:
    """10,000 graphs of 64 vertices in 800 us: 12.5 million graphs a second; empty for a single graph, or without a time."""
    rate = graphs_per_second(run)
    if rate is None:
        return ""
    number, _, _ = units.scaled(rate / 1e6, "").partition(" ")
    words = f"{number} million" if rate >= 999_500 else f"{rate:,.0f}" if rate >= 100 else units.digits(rate)
    each = units.counted(run.n, "vertex", "vertices")
    return f"{run.experiment.graphs:,} graphs of {each} in {units.duration(run.seconds)}: {words} graphs a second"


def place(run: Run) -> str:
    """Where each graph is while it is solved, and why; empty for a single graph."""
    if run.experiment.graphs == 1 or not run.n:
        return ""
    size = units.memory(run.n**2 * ITEMSIZE.get(run.experiment.dtype, 4))
    if run.backend == "cpu":
        return f"one core for each graph: its {size} stay in that core's cache, and no core waits for another one"
    occupancy = run.main_occupancy
    if occupancy is None:
        return f"one block for each graph: its {size} stay in registers, and no block waits for another one"
    warps = units.counted(-(-occupancy.threads // WARP), "warp")
    words = f"one block of {warps} for each graph: its {size} stay in registers, {CELLS} cells a thread"
    used = run.n**2 / (CELLS * occupancy.threads)
    if used < FULL:
        words += f" ({units.percent(used)} of them used, as blocks have three sizes)"
    if occupancy.blocks < 2:
        return f"{words}; a multiprocessor has one at once"
    return f"{words}; a multiprocessor has {occupancy.blocks} at once, and while one waits at its barrier the others work"


def in_words(run: Run) -> list[str]:
    """The pace, and where each graph is; nothing for a single graph."""
    return list(filter(None, (pace(run), place(run))))
