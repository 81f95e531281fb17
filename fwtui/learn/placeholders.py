"""Placeholders in a lesson's text: names in braces that the recorded runs fill in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.limits import limit_of, of_all_devices
from fwtui.analysis.sparsity import reduction
from fwtui.analysis.warps import loop_facts, main_samples
from fwtui.common import units
from fwtui_kernels.plan import ITEMSIZE

BEFORE, PHASE = "before.", "phase."
NAMED = re.compile(rf"\{{((?:(?:{'|'.join(ITEMSIZE)})\.)?[a-z_.]+)\}}", re.ASCII)


def large_number(count: float) -> str:
    """Format a large number with a word: 68.7 billion."""
    factor, word = next(((f, w) for f, w in ((1e12, "trillion"), (1e9, "billion")) if count >= f * 0.9995), (1e6, "million"))
    return f"{units.digits(count / factor)} {word}"


# by name: a value of the run (None or 0 if the run does not have it), and its format
FILLED: Mapping[str, tuple[Callable[[ComparedRun], Any], Callable[[Any], str]]] = {
    "n": (lambda e: e.run.n, "{:,}".format),
    "tile": (lambda e: e.run.experiment.tile, str),
    "time": (lambda e: e.run.seconds, units.duration),
    "rate": (lambda e: e.run.rate, large_number),  # relaxations per second
    "relaxations": (lambda e: e.run.n and e.run.needed, large_number),
    "fewer": (lambda e: e.run.ordered and reduction(e.run), units.gain),
    "fill": (lambda e: e.run.ordered and e.run.ordered.fill, units.percent),
    "bytes": (lambda e: ITEMSIZE[e.run.experiment.dtype], str),
    "instructions": (lambda e: (samples := main_samples(e.run)) and loop_facts(samples).each, units.digits),
    "launches": (lambda e: e.run.steps, "{:,}".format),
    "bandwidth": (lambda e: e.run.bandwidth, units.bandwidth),
    "peak": (lambda e: (gpu := e.model.gpu_of(e.run)) and of_all_devices(e.run, gpu.peak_bytes_per_second), units.bandwidth),
    "limit": (lambda e: (limit := limit_of(e.model, e.run)) and limit.relaxations_per_second, large_number),
    "dram": (lambda e: (evidence := e.model.evidence(e.run)) and evidence.dram_utilisation, units.percent),
    "occupancy": (lambda e: (o := e.run.main_occupancy) and o.max_warps and o.warps / o.max_warps, units.percent),
    "warps": (lambda e: (o := e.run.main_occupancy) and o.warps, str),
    "warps.most": (lambda e: (o := e.run.main_occupancy) and o.max_warps, str),
    "threads": (lambda e: (o := e.run.main_occupancy) and o.threads, str),
    "registers": (lambda e: (o := e.run.main_occupancy) and o.registers, str),
    "shared": (lambda e: (o := e.run.main_occupancy) and o.shared_bytes, units.memory),
    "gpu": (lambda e: (gpu := e.model.gpu_of(e.run)) and gpu.name, str),
    "multiprocessors": (lambda e: (gpu := e.model.gpu_of(e.run)) and gpu.multiprocessors, str),
    "cpu": (lambda e: (header := e.model.header) and header.machine.cpu, str),
    "cores": (lambda e: (header := e.model.header) and header.machine.cores, str),
}


def dtype_of(name: str) -> str:
    """Return the data type that a placeholder begins with: int16 for `int16.time`; empty if there is none."""
    prefix, dot, _ = name.partition(".")
    return prefix if dot and prefix in ITEMSIZE else ""


def value_of(name: str, entrant: ComparedRun, before: ComparedRun | None) -> str | None:
    """Return the value of a placeholder in a run; None if the run, or the run before it, does not have it."""
    if name.startswith(PHASE):
        return next((units.percent(p.share) for p in entrant.run.phases if p.key == name.removeprefix(PHASE)), None)
    run = before if name.startswith(BEFORE) else entrant
    value, show = FILLED[name.removeprefix(BEFORE)]
    found = value(run) if run is not None else None
    return show(found) if found else None
