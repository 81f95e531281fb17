"""What is known of a run on a CPU: its reason, busy cores, the compiled loop, and the cache that holds its matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.analysis.cpu import MEMORY, CpuFacts, level_name, vectors
from fwtui.common import units
from fwtui.stream.events import CpuLoop, LevelLimit
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, hanging, line
from fwtui.tui.widgets.run_text import meter

HEAD = line(("CORES AND CACHES  ", f"{STRONG} $text-primary"))
LABEL = 10
MOST_NAMED = 6  # instructions of a loop
HOLDS = "◀ matrix"


class CpuSubject(NamedTuple):
    """A run on a CPU, and one of its ops."""

    run: int
    op: str
    facts: CpuFacts
    loop: CpuLoop | None
    limit: float | None  # relaxations a second that all cores can do
    levels: tuple[LevelLimit, ...]
    why: str


class CpuPanel(Drawn[CpuSubject | None]):
    NOTHING = (HEAD,)

    def draw(self, subject: CpuSubject, width: int) -> Sequence[Content]:
        head, facts = line(HEAD, (subject.op, STRONG)), subject.facts
        rows = [head, *line((subject.why, STRONG)).wrap(width)] if subject.why else [head]
        if facts.busy is not None and facts.cores:
            words = f"{facts.busy:.1f} of {facts.cores} busy"
            rows.append(_bar("cores", facts.used, width, words))
        if facts.each is not None:
            most = _per_cycle(subject.limit, facts)
            words = f"{units.digits(facts.each)} relaxations" + (f" of {units.digits(most)}" if most else "")
            rows.append(_bar("a cycle", facts.each / most if most else None, width, words))
        if facts.clock_mhz:
            rows += hanging("clock", LABEL, [f"{facts.clock_mhz:.0f} MHz, measured right after the passes"], width)
        rows += hanging("loop", LABEL, _loop_words(subject), width, most=5)
        return [*rows, line(""), *_levels(subject, width)]


def _loop_words(subject: CpuSubject) -> list[str]:
    loop = subject.loop
    if loop is None:
        return ["its machine code is not known: it was not compiled here"]
    total = sum(loop.mix.values())
    told = [vectors(loop)]
    if total and loop.relaxations:
        rate = subject.facts.instructions_a_cycle(loop, subject.facts.each)
        told.append(f"{units.counted(total, 'instruction')} for {units.counted(loop.relaxations, 'relaxation')}")
        told += [f"{units.digits(rate)} instructions a cycle"] if rate is not None else []
        named = Counter(loop.mix).most_common(MOST_NAMED)
        told.append(", ".join(f"{count:,} {name}" for name, count in named))
    return told


def _per_cycle(limit: float | None, facts: CpuFacts) -> float | None:
    """The limit of a core in relaxations a cycle."""
    return limit / facts.cores / facts.clock_mhz / 1e6 if limit and facts.cores and facts.clock_mhz else None


def _levels(subject: CpuSubject, width: int) -> list[Content]:
    """A row for each cache and for memory: size, measured bandwidth, and which one holds the matrix."""
    facts, measured = subject.facts, {one.level: one for one in subject.levels}
    if not facts.caches:
        return hanging("caches", LABEL, ["this system does not tell its caches"], width)
    rows = [line((f"{'level':<{LABEL}}{'size / cores':>13}{'bandwidth':>19}", MUTED))]
    sizes = {cache.level: f"{units.memory(cache.bytes)}{f' / {cache.cores}' * (cache.cores > 1)}" for cache in facts.caches}
    for level in (*sizes, MEMORY):
        one = measured.get(level)
        rate = units.bandwidth(one.bytes_per_second) + " (noisy)" * one.noisy if one is not None else units.ABSENT
        holds = level == facts.level
        told = (f"{sizes.get(level, ''):>13}{rate:>19}", STRONG if holds else "")
        rows.append(line((f"{level_name(level):<{LABEL}}", MUTED), told, (f"  {HOLDS}" if holds else "", "$primary")))
    return [*rows, *hanging("matrix", LABEL, [units.memory(facts.matrix)], width)]


def _bar(label: str, share: float | None, width: int, words: str) -> Content:
    room = max(4, min(24, width - LABEL - len(words) - 2))
    bar = meter(share, room) if share is not None else []
    return line((f"{label:<{LABEL}}", MUTED), *bar, (f" {words}" if bar else words, STRONG))
