"""Evidence in a session for a kernel's speed: its times, GPM, hardware counters and compiled code.

Sentences are empty without evidence; numbers raise Missing.
"""

from __future__ import annotations

from contextlib import suppress

from fwtui.analysis.occupancy import occupancy
from fwtui.campaigns.reproduce.results import Make, Missing, Results, needed, needed_kernel
from fwtui.common import units
from fwtui.common.units import gain as times
from fwtui.experiment.experiment import Experiment
from fwtui.stream.run import same

FULL = 0.9  # share of a unit's time
OP = "rest"  # the op that dominates a blocked kernel's time
NO_LOADS = "the counters hold no load from global memory"


def integer_bound(results: Results, *makes: Make) -> str:
    """GPM's shares for integer units and memory in the largest run with readings, if the integer units were full."""
    for make in makes:
        for n in sorted({run.n for run in results.runs}, reverse=True):
            with suppress(Missing):
                integer, dram = results.gpm(make(n))
                if integer >= FULL:
                    tile = f", tile {make(n).tile}" if make(n).tile else ""
                    shares = f"the integer units {units.percent(integer)} busy and the memory {units.percent(dram)}"
                    return f"{make(n).kernel} keeps {shares} (GPM, n {n}{tile})"
    return ""


def gain(results: Results, slow: Make, fast: Make, n: int) -> str:
    """The speed-up in words; empty if one was not run at that size."""
    with suppress(Missing):
        return times(results.seconds(slow(n)) / results.seconds(fast(n)))
    return ""


def ways(results: Results, make: Make) -> float:
    """Wavefronts of its shared memory reads relative to those without bank conflicts."""
    _, (wavefronts, extra) = counters(results, make, "shared_load_wavefronts", "shared_load_conflicts")
    return wavefronts / needed(max(0.0, wavefronts - extra), "the counters of shared memory contradict each other")


def sectors(results: Results, make: Make) -> float:
    """Sectors of 32 bytes per load from global memory."""
    _, (transfers, loads) = counters(results, make, "global_load_sectors", "global_load_requests")
    return needed(transfers, NO_LOADS) / needed(loads, NO_LOADS)


def full(results: Results, make: Make) -> str:
    """The counters of a kernel that keeps a unit on the chip fully busy, in words; else empty."""
    with suppress(Missing):
        n, (compute, dram, moved) = counters(results, make, "compute_share", "dram_share", "memory_share")
        if max(compute, moved) >= FULL:
            words = f"{make(n).kernel} keeps the arithmetic units {units.percent(compute)} busy, the load and store units"
            return f"{words} {units.percent(moved)}, and DRAM {units.percent(dram)} (counters, n {n})"
    return ""


def counters(results: Results, make: Make, *keys: str, op: str = OP) -> tuple[int, list[float]]:
    """The largest size at which it has the last of these counters, and all of them there. Raises Missing."""
    n = results.counted_at(op, keys[-1], make)
    return n, [results.counter(make(n), op, key) for key in keys]


def counter_values(results: Results, key: str, *makes: Make) -> tuple[int, list[float]]:
    """The largest size at which all of them have that counter, and its values there."""
    n = results.counted_at(OP, key, *makes)
    return n, [results.counter(make(n), OP, key) for make in makes]


def shared_bytes(results: Results, kernel_id: str) -> tuple[int, str]:
    """Shared memory in bytes of the kernel's main op, and in words how many blocks fit and their limit. Raises Missing.

    For float32, the kernel's own tile and options: from a run, else from compiling it without a GPU.
    """
    kernel = needed_kernel(kernel_id)
    for run in results.runs:
        used = next((o for o in run.occupancies if o.op == OP), None)
        if used is not None and same(run, Experiment(kernel=kernel_id), kernel):
            cc = results.model.gpu.compute_capability if results.model.gpu is not None else None
            table = occupancy(cc, used.threads, used.registers, used.shared_bytes)
            allowed = f"{table.limits['shared memory']} by shared memory, " if table and "shared memory" in table.limits else ""
            limited = f", limited by {', '.join(used.limiters)}" if used.limiters else ""
            return used.shared_bytes, f"here {allowed}{used.blocks} fit{limited}"
    compiled = results.compiled(kernel_id)
    if isinstance(compiled, str):
        raise Missing(compiled)
    return compiled[OP], "compiled without a GPU"
