"""Facts of a run on a CPU that need no privileges: busy cores, relaxations per cycle, vectors, the cache of the matrix."""

from __future__ import annotations

import re
from contextlib import suppress
from math import inf, isfinite
from typing import NamedTuple

from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.event import Cache
from fwtui.stream.events import CpuLoop, LevelLimit
from fwtui.stream.model import Model
from fwtui.stream.run import PhaseTime, Run
from fwtui_kernels.plan import ITEMSIZE

MEMORY = 0  # the level below all caches
CACHE_LINE = 64  # bytes
# an inner loop over the variable of the first index, and the indices of the cell that it updates
_LOOP = re.compile(r"for (\w+) in .*:\s+\w+\[([^][,\n]+), ([^][,\n]+)\] = ")
ROOM = 0.9  # share of a cache that is available for the matrix


class CpuFacts(NamedTuple):
    """Facts of a run on a CPU; None for unknown values."""

    cores: int | None  # available cores
    busy: float | None  # mean number of busy cores
    clock_mhz: float | None
    each: float | None  # relaxations per cycle of a busy core
    matrix: int  # bytes; 0 before the plan
    level: int | None  # level of the nearest cache that holds the matrix; MEMORY if none does
    caches: tuple[Cache, ...]
    limit: LevelLimit | None  # measured bandwidth of that level
    converted: int = 0  # bytes of a value in that matrix if the kernel converts the data type
    others: float = 0.0  # mean number of cores that other processes used; 0 if it is unknown
    down_columns: bool = False  # the recorded source's inner loop takes cells of different rows, each in another cache line

    @property
    def used(self) -> float:
        """Share of the cores that were busy; 1 if it is unknown."""
        return min(self.busy / self.cores, 1.0) if self.busy and self.cores else 1.0

    @property
    def bytes_per_second(self) -> float | None:
        """Peak bandwidth of the busy cores in the level that holds the matrix; None if it is unknown or noisy."""
        if self.limit is None or self.limit.noisy or not self.limit.bytes_per_second:
            return None
        of_cores = (self.limit.one_core or inf) * max(self.busy, 1.0) if self.busy else inf
        return min(self.limit.bytes_per_second, of_cores)

    def instructions_a_cycle(self, loop: CpuLoop | None, each: float | None) -> float | None:
        """Return the instructions of that loop per cycle of a busy core, which may also execute other code, at `each`
        relaxations per cycle.
        """
        countable = loop is not None and loop.relaxations and each
        return sum(loop.mix.values()) / loop.relaxations * each if loop is not None and countable and each else None


def phase_facts(facts: CpuFacts, phase: PhaseTime) -> CpuFacts:
    """Return the facts of a phase: its busy cores, and its relaxations per cycle of a busy core.

    An only phase has the facts of the run, from the repetitions without timers.
    """
    if phase.share == 1.0:
        return facts
    busy = phase.cpu_seconds / phase.seconds if phase.cpu_seconds and phase.seconds > 0 else facts.busy
    return facts._replace(busy=busy, each=per_cycle(phase.relaxations, phase.seconds * (busy or 0.0), facts.clock_mhz))


def cpu_facts(model: Model, run: Run) -> CpuFacts | None:
    """Return the facts of a run on a CPU; None for a run on another device."""
    return model.once(_facts, run) if run.backend == "cpu" and not run.simulated else None


def _facts(model: Model, run: Run) -> CpuFacts:
    usage, evidence = run.cpu, model.evidence(run)
    machine = model.header.machine if model.header is not None else None
    cores, busy, clock = (usage.usable, usage.busy, usage.clock_mhz) if usage is not None else (None, None, None)
    if evidence is not None and usage is None:
        cores, clock = evidence.cores, evidence.cpu_clock_mhz
        if evidence.cpu is not None and cores:
            busy = max(0.0, evidence.cpu - (evidence.other_cpu or 0.0)) * cores
    kernel = None
    with suppress(Refused):  # the kernel of an old recording may no longer exist
        kernel = kernel_named(run.experiment.kernel)
    usable = (kernel.cores if kernel is not None else 0) or cores
    busy = min(busy, usable) if busy is not None and usable else busy  # the CPU time of a short run, or of others, is inaccurate
    converted = kernel.itemsize if kernel is not None else 0
    matrix = (run.padded or run.n) ** 2 * (converted or ITEMSIZE.get(run.experiment.dtype, 4))
    caches = machine.caches if machine is not None else ()
    fitting = (cache.level for cache in caches if matrix <= ROOM * cache.bytes)
    level = next(fitting, MEMORY) if caches and matrix else None
    limits = model.measured.get(run.device)
    limit = next((one for one in limits.levels if one.level == level), None) if limits is not None else None
    worked = usage.each if usage is not None and usage.each else (run.seconds or 0.0) * (busy or 0.0)
    each = per_cycle(run.relaxations, worked, clock)
    others = (evidence.other_cpu or 0.0) * (evidence.cores or 0) if evidence is not None else 0.0
    return CpuFacts(cores, busy, clock, each, matrix, level, caches, limit, converted, others, down_columns(run))


def down_columns(run: Run) -> bool:
    """Return whether each inner loop of the recorded source updates the cells of a column; those of a row are contiguous."""
    loops = [loop for one in run.source for loop in _LOOP.findall("\n".join(one.lines))]
    return bool(loops) and all(
        re.search(rf"\b{name}\b", row) and not re.search(rf"\b{name}\b", column) for name, row, column in loops
    )


def per_cycle(relaxations: int, worked: float, clock_mhz: float | None) -> float | None:
    """Return the relaxations per cycle of a busy core, from `worked` seconds of CPU time; None if the clock is unknown."""
    cycles = worked * clock_mhz * 1e6 if clock_mhz else 0.0
    each = relaxations / cycles if cycles and relaxations else inf
    return each if isfinite(each) else None


def level_name(level: int | None) -> str:
    return "memory" if not level else f"L{level} cache"


def level_with_article(level: int | None) -> str:
    """Return the name of a level with its article."""
    return level_name(level) if not level else f"the {level_name(level)}"


def vectors(loop: CpuLoop) -> str:
    """Describe the vector width of a loop: 16 relaxations per instruction (512 bits)."""
    if loop.lanes == 1:
        return "one relaxation per instruction" + f", the vector loop of {loop.skipped} is skipped" * bool(loop.skipped)
    return f"{loop.lanes} relaxations per instruction ({loop.lanes * loop.item_bits} bits)"


def scalar_reason(loop: CpuLoop | None) -> str:
    """Explain code without vector instructions."""
    if loop is None or not loop.skipped:
        return "each instruction does one relaxation; a vector instruction does several"
    return (
        f"the compiler cannot prove that rows k and i differ, so the scalar loop runs, not that of {loop.skipped} per instruction"
    )


def describe_cpu(facts: CpuFacts, loop: CpuLoop | None) -> str:
    """Describe the facts: relaxations per cycle, busy cores, vectors, and the cache of the matrix; empty if all are unknown."""
    parts: list[str] = []
    cores = busy_cores(facts)
    if facts.each is not None and facts.busy is not None:
        parts.append(f"{units.digits(facts.each)} relaxations per cycle on each busy core" + f", {cores}" * bool(cores))
    elif cores:
        parts.append(cores)
    if loop is not None and loop.lanes:
        parts.append(vectors(loop))
    if facts.matrix and facts.level is not None:
        verb = "does not fit in any cache" if facts.level == MEMORY else f"fits in {level_with_article(facts.level)}"
        width = f", {facts.converted} bytes per value," * bool(facts.converted)
        parts.append(f"its matrix of {units.memory(facts.matrix)}{width} {verb}")
    return "; ".join(parts)


def busy_cores(facts: CpuFacts) -> str:
    """Describe the busy cores: 1.0 of 16 cores busy; empty if they are unknown."""
    if facts.busy is None:
        return ""
    return f"{facts.busy:.1f} of {units.counted(facts.cores, 'core')} busy" if facts.cores else f"{facts.busy:.1f} cores busy"
