"""Numbers in a lesson's text: named in braces, filled from the run that the text is about, never written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fwtui.analysis.compare import Entrant
from fwtui.analysis.limits import limit_of
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.learn.questions import KINDS
from fwtui.stream import events
from kernels.plan import ITEMSIZE

BEFORE, PHASE = "before.", "phase."
NAMED = re.compile(r"\{([a-z_.]+)\}", re.ASCII)
Filled = Callable[[Entrant], "str | None"]


def _theory(say: Callable[[events.Occupancy], str]) -> Filled:
    def fill(entrant: Entrant) -> str | None:
        theory = entrant.run.main_occupancy
        return say(theory) if theory is not None else None

    return fill


def _gpu(say: Callable[[events.Device], str | None]) -> Filled:
    def fill(entrant: Entrant) -> str | None:
        gpu = entrant.model.gpu_of(entrant.run)
        return say(gpu) if gpu is not None else None

    return fill


def _machine(say: Callable[[events.Machine], str | None]) -> Filled:
    return lambda entrant: say(entrant.model.header.machine) if entrant.model.header is not None else None


def _answer(kind: str, say: Callable[[float], str]) -> Filled:
    def fill(entrant: Entrant) -> str | None:
        number = KINDS[kind].answer(entrant, None).number
        return say(number) if number is not None else None

    return fill


def _limit(entrant: Entrant) -> str | None:
    limit = limit_of(entrant.model, entrant.run)
    return counted(limit.relaxations_per_second) if limit is not None else None


def _dram(entrant: Entrant) -> str | None:
    evidence = entrant.model.evidence(entrant.run)
    known = evidence is not None and evidence.dram_utilisation is not None
    return units.percent(evidence.dram_utilisation) if known and evidence is not None else None


def counted(count: float) -> str:
    """In words: 68.7 billion."""
    factor, word = next(((f, w) for f, w in ((1e12, "trillion"), (1e9, "billion")) if count >= f * 0.9995), (1e6, "million"))
    return f"{units.digits(count / factor)} {word}"


FILLED: Mapping[str, Filled] = {
    "n": lambda e: f"{e.run.n:,}" if e.run.n else None,
    "tile": lambda e: str(e.run.experiment.tile) if e.run.experiment.tile else None,
    "time": lambda e: units.duration(e.run.seconds) if e.run.seconds else None,
    "rate": lambda e: counted(e.run.rate) if e.run.rate else None,  # relaxations per second
    "relaxations": lambda e: counted(e.run.n**3) if e.run.n else None,
    "launches": lambda e: f"{e.run.steps:,}" if e.run.steps else None,
    "matrix": lambda e: units.memory(e.run.n**2 * ITEMSIZE[e.run.experiment.dtype]) if e.run.n else None,
    "bandwidth": lambda e: units.bandwidth(e.run.bandwidth) if e.run.bandwidth else None,
    "peak": _gpu(lambda gpu: units.bandwidth(gpu.peak_bytes_per_second) if gpu.peak_bytes_per_second else None),
    "peak.share": _answer("peak", units.percent),
    "limit": _limit,
    "limit.share": _answer("limit", units.percent),
    "dram": _dram,
    "occupancy": _theory(lambda o: units.percent(o.warps / o.max_warps) if o.max_warps else units.ABSENT),
    "warps": _theory(lambda o: str(o.warps)),
    "warps.most": _theory(lambda o: str(o.max_warps)),
    "threads": _theory(lambda o: str(o.threads)),
    "registers": _theory(lambda o: str(o.registers)),
    "shared": _theory(lambda o: units.memory(o.shared_bytes)),
    "gpu": _gpu(lambda gpu: gpu.name or None),
    "multiprocessors": _gpu(lambda gpu: str(gpu.multiprocessors) if gpu.multiprocessors else None),
    "cache": _gpu(lambda gpu: units.memory(gpu.l2_bytes) if gpu.l2_bytes else None),
    "cpu": _machine(lambda machine: machine.cpu or None),
    "cores": _machine(lambda machine: str(machine.cores) if machine.cores else None),
}


def names(text: str) -> list[str]:
    """The placeholders of a text."""
    return NAMED.findall(text)


def known(name: str) -> bool:
    """Whether there is such a placeholder; phases belong to kernels, so any name of one will do."""
    return name == "speedup" or name.startswith(PHASE) or name.removeprefix(BEFORE) in FILLED


def fill(text: str, entrant: Entrant, before: Entrant | None) -> str:
    """The text with every placeholder filled from the run (`before.` ones from the other). Raises Refused where one cannot be."""

    def filled(found: re.Match[str]) -> str:
        words = _filled(found[1], entrant, before)
        if not words:
            raise Refused(f"{{{found[1]}}} is not known of {entrant.label}; leave it out or name another run")
        return words

    return NAMED.sub(filled, text)


def _filled(name: str, entrant: Entrant, before: Entrant | None) -> str | None:
    if name == "speedup":
        ratio = KINDS["speedup"].answer(entrant, before).number
        return units.gain(ratio) if ratio is not None else None
    if name.startswith(PHASE):
        return next((units.percent(p.share) for p in entrant.run.phases if p.key == name.removeprefix(PHASE)), None)
    if name.startswith(BEFORE):
        return FILLED[name.removeprefix(BEFORE)](before) if before is not None and name.removeprefix(BEFORE) in FILLED else None
    return FILLED[name](entrant) if name in FILLED else None
