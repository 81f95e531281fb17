"""Placeholders in a lesson's text: names in braces that the recorded runs fill in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.limits import limit_of
from fwtui.analysis.warps import loop_facts, main_samples
from fwtui.common import units
from fwtui.learn.questions import KINDS
from fwtui.stream import events
from fwtui_kernels.plan import ITEMSIZE

BEFORE, PHASE, SPEEDUP = "before.", "phase.", "speedup"
NAMED = re.compile(rf"\{{((?:(?:{'|'.join(ITEMSIZE)})\.)?[a-z_.]+)\}}", re.ASCII)
Fill = Callable[[ComparedRun], "str | None"]
T = TypeVar("T")


def _of(value: Callable[[ComparedRun], T | None], show: Callable[[T], str | None]) -> Fill:
    """Return a function that formats a value of a run; it returns None if the run does not have the value."""

    def fill(entrant: ComparedRun) -> str | None:
        found = value(entrant)
        return show(found) if found is not None else None

    return fill


def _theory(entrant: ComparedRun) -> events.Occupancy | None:
    return entrant.run.main_occupancy


def _gpu(entrant: ComparedRun) -> events.Device | None:
    return entrant.model.gpu_of(entrant.run)


def _machine(entrant: ComparedRun) -> events.Machine | None:
    return entrant.model.header.machine if entrant.model.header is not None else None


def _dram(entrant: ComparedRun) -> float | None:
    evidence = entrant.model.evidence(entrant.run)
    return evidence.dram_utilisation if evidence is not None else None


def _instructions(entrant: ComparedRun) -> float | None:
    samples = main_samples(entrant.run)
    return loop_facts(samples).each if samples is not None else None


def large_number(count: float) -> str:
    """Format a large number with a word: 68.7 billion."""
    factor, word = next(((f, w) for f, w in ((1e12, "trillion"), (1e9, "billion")) if count >= f * 0.9995), (1e6, "million"))
    return f"{units.digits(count / factor)} {word}"


FILLED: Mapping[str, Fill] = {
    "n": lambda e: f"{e.run.n:,}" if e.run.n else None,
    "tile": lambda e: str(e.run.experiment.tile) if e.run.experiment.tile else None,
    "time": lambda e: units.duration(e.run.seconds) if e.run.seconds else None,
    "rate": lambda e: large_number(e.run.rate) if e.run.rate else None,  # relaxations per second
    "relaxations": lambda e: large_number(e.run.needed) if e.run.n else None,
    "fewer": lambda e: units.gain(e.run.n**3 / e.run.needed) if e.run.ordered is not None and e.run.needed else None,
    "fill": lambda e: units.percent(e.run.ordered.fill) if e.run.ordered is not None and e.run.ordered.fill else None,
    "bytes": lambda e: str(ITEMSIZE[e.run.experiment.dtype]),  # of a value
    "instructions": _of(_instructions, units.digits),  # of the inner loop, per relaxation
    "launches": lambda e: f"{e.run.steps:,}" if e.run.steps else None,
    "matrix": lambda e: units.memory(e.run.n**2 * ITEMSIZE[e.run.experiment.dtype]) if e.run.n else None,
    "bandwidth": lambda e: units.bandwidth(e.run.bandwidth) if e.run.bandwidth else None,
    "peak": _of(_gpu, lambda gpu: units.bandwidth(gpu.peak_bytes_per_second) if gpu.peak_bytes_per_second else None),
    "peak.share": _of(lambda e: KINDS["peak"].answer(e, None).number, units.percent),
    "limit": _of(lambda e: limit_of(e.model, e.run), lambda limit: large_number(limit.relaxations_per_second)),
    "limit.share": _of(lambda e: KINDS["limit"].answer(e, None).number, units.percent),
    "dram": _of(_dram, units.percent),
    "occupancy": _of(_theory, lambda o: units.percent(o.warps / o.max_warps) if o.max_warps else units.ABSENT),
    "warps": _of(_theory, lambda o: str(o.warps)),
    "warps.most": _of(_theory, lambda o: str(o.max_warps)),
    "threads": _of(_theory, lambda o: str(o.threads)),
    "registers": _of(_theory, lambda o: str(o.registers)),
    "shared": _of(_theory, lambda o: units.memory(o.shared_bytes)),
    "gpu": _of(_gpu, lambda gpu: gpu.name or None),
    "multiprocessors": _of(_gpu, lambda gpu: str(gpu.multiprocessors) if gpu.multiprocessors else None),
    "cache": _of(_gpu, lambda gpu: units.memory(gpu.l2_bytes) if gpu.l2_bytes else None),
    "cpu": _of(_machine, lambda machine: machine.cpu or None),
    "cores": _of(_machine, lambda machine: str(machine.cores) if machine.cores else None),
}


def names(text: str) -> list[str]:
    """Return the placeholders of a text."""
    return NAMED.findall(text)


def dtype_of(name: str) -> str:
    """Return the data type that a placeholder begins with: int16 for `int16.time`; empty if there is none."""
    prefix, dot, _ = name.partition(".")
    return prefix if dot and prefix in ITEMSIZE else ""


def exists(name: str) -> bool:
    """Return True for a known placeholder; any phase name is accepted, because phases belong to kernels."""
    plain = name.removeprefix(f"{dtype_of(name)}.") if dtype_of(name) else name.removeprefix(BEFORE)
    return name == SPEEDUP or name.startswith(PHASE) or plain in FILLED


def value_of(name: str, entrant: ComparedRun, before: ComparedRun | None) -> str | None:
    """Return the value of a placeholder in a run; None if the run, or the run before it, does not have it."""
    if name == SPEEDUP:
        return KINDS["speedup"].answer(entrant, before).short
    if name.startswith(PHASE):
        return next((units.percent(p.share) for p in entrant.run.phases if p.key == name.removeprefix(PHASE)), None)
    run = before if name.startswith(BEFORE) else entrant
    return FILLED[name.removeprefix(BEFORE)](run) if run is not None else None
