"""Numbers in a lesson's text: named in braces, and filled from the run that the text is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.limits import limit_of
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.learn.questions import KINDS
from fwtui.stream import events
from fwtui_kernels.plan import ITEMSIZE

BEFORE, PHASE = "before.", "phase."
NAMED = re.compile(r"\{([a-z_.]+)\}", re.ASCII)
Filled = Callable[[ComparedRun], "str | None"]
T = TypeVar("T")


def _of(thing: Callable[[ComparedRun], T | None], say: Callable[[T], str | None]) -> Filled:
    """A value of the run in words; None if it has none."""

    def fill(entrant: ComparedRun) -> str | None:
        found = thing(entrant)
        return say(found) if found is not None else None

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


def large_number(count: float) -> str:
    """Format a large number with a word: 68.7 billion."""
    factor, word = next(((f, w) for f, w in ((1e12, "trillion"), (1e9, "billion")) if count >= f * 0.9995), (1e6, "million"))
    return f"{units.digits(count / factor)} {word}"


FILLED: Mapping[str, Filled] = {
    "n": lambda e: f"{e.run.n:,}" if e.run.n else None,
    "tile": lambda e: str(e.run.experiment.tile) if e.run.experiment.tile else None,
    "time": lambda e: units.duration(e.run.seconds) if e.run.seconds else None,
    "rate": lambda e: large_number(e.run.rate) if e.run.rate else None,  # relaxations per second
    "relaxations": lambda e: large_number(e.run.needed) if e.run.n else None,
    "fewer": lambda e: units.gain(e.run.n**3 / e.run.needed) if e.run.ordered is not None and e.run.needed else None,
    "fill": lambda e: units.percent(e.run.ordered.fill) if e.run.ordered is not None and e.run.ordered.fill else None,
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
    """The placeholders of a text."""
    return NAMED.findall(text)


def exists(name: str) -> bool:
    """Return True for a known placeholder; any phase name is accepted, because phases belong to kernels."""
    return name == "speedup" or name.startswith(PHASE) or name.removeprefix(BEFORE) in FILLED


def fill(text: str, entrant: ComparedRun, before: ComparedRun | None) -> str:
    """The text with every placeholder filled from the run (`before.` ones from the other). Raises Refused if one cannot be."""

    def filled(found: re.Match[str]) -> str:
        words = _filled(found[1], entrant, before)
        if not words:
            raise Refused(f"{{{found[1]}}} is unknown for {entrant.label}; omit it or choose another run")
        return words

    return NAMED.sub(filled, text)


def _filled(name: str, entrant: ComparedRun, before: ComparedRun | None) -> str | None:
    if name == "speedup":
        return KINDS["speedup"].answer(entrant, before).short
    if name.startswith(PHASE):
        return next((units.percent(p.share) for p in entrant.run.phases if p.key == name.removeprefix(PHASE)), None)
    of = before if name.startswith(BEFORE) else entrant
    filled = FILLED.get(name.removeprefix(BEFORE))
    return filled(of) if filled is not None and of is not None else None
