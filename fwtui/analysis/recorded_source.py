"""The recorded source of a run: changes since the previous version, and the PC samples of its lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import count, takewhile
from typing import NamedTuple

from fwtui.common.errors import Refused
from fwtui.stream.events import Source
from fwtui.stream.listing import CodeLine
from fwtui.stream.run import Run

MAX = 40  # lines of an excerpt
DEFAULT = 12  # lines of an excerpt without chosen lines
MAX_COMPARED = 1000  # lines of a file; the changes of a longer one are not marked
ADDED, REMOVED, SAME = "+", "-", " "


class SourceRow(NamedTuple):
    """A line that is new since the previous version (ADDED), existed only there (REMOVED), or is in both (SAME)."""

    sign: str
    line: CodeLine


class SourceExcerpt(NamedTuple):
    """Lines of a run's source; `before` is the run of the previous version, 0 for none."""

    file: str
    rows: tuple[SourceRow, ...]
    before: int
    total: int  # samples of the file
    most: int  # samples of its hottest line


def excerpt(runs: Iterable[Run], run: Run, first: int = 0, last: int = 0) -> SourceExcerpt:
    """Return lines `first` to `last` of a run's source; by default the longest change since the previous of `runs`, else the
    hottest lines. Raises Refused if the source was not recorded.
    """
    sampled, listed = _sampled(run)
    files = _texts(run.source) or listed
    if not files:
        raise Refused(f"run {run.id} has no source up to this moment; `fwtui run --record-source` records only your kernels")
    totals = {file: sum(sum(lines.values()) for of, lines in sampled.items() if of[0] == file) for file in files}
    file = max(reversed(files), key=lambda name: totals[name])
    lines = files[file]
    earlier = [one for one in takewhile(lambda one: one.id != run.id, runs) if one.source]
    olds = ((one.id, _texts(one.source)) for one in reversed(earlier) if one.source and run.source)
    before, old = next(((number, old.get(file, {})) for number, old in olds if old != files), (0, {}))
    added, removed = _changes((*old.values(),), (*lines.values(),)) if before else (frozenset[int](), {})
    numbers = [*lines]
    added = {numbers[place] for place in added}
    deletions = {numbers[place] if place < len(numbers) else numbers[-1] + 1: there for place, there in removed.items()}
    counts = {number: sum(sampled.get((file, number), {}).values()) for number in numbers}
    if not first:
        hottest = max(numbers, key=lambda number: counts[number])
        around = hottest - DEFAULT // 2 if counts[hottest] else numbers[0]
        first = max(numbers[0], _longest({*added, *deletions}) - 1 if before else around)
        last = first + DEFAULT - 1
    rows: list[SourceRow] = []
    for number in range(first, min(max(first, last), first + MAX - 1) + 1):
        rows += [SourceRow(REMOVED, CodeLine(file, 0, text)) for text in deletions.get(number, ())]
        if number in lines:
            sign = ADDED if number in added else SAME
            rows.append(SourceRow(sign, CodeLine(file, number, lines[number], dict(sampled.get((file, number), {})))))
    if not rows:
        raise Refused(f"{file} of run {run.id} has no line {first}; choose a line up to {numbers[-1]}")
    return SourceExcerpt(file, tuple(rows[:MAX]), before, totals[file], max(counts.values(), default=0))


def _longest(numbers: set[int]) -> int:
    """Return the first number of the longest (of several, the last) range of consecutive numbers; 1 for none."""
    begins = [number for number in numbers if number - 1 not in numbers]

    def length(begin: int) -> int:
        return next(step for step in count(1) if begin + step not in numbers)

    return max(begins, key=lambda begin: (length(begin), begin), default=1)


def _texts(parts: Sequence[Source]) -> dict[str, dict[int, str]]:
    """Map each file to its lines by number."""
    files: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for part in parts:
        files[part.file].update(enumerate(part.lines, part.first))
    return {file: lines for file, lines in files.items() if lines}


def _sampled(run: Run) -> tuple[Mapping[tuple[str, int], Counter[str]], dict[str, dict[int, str]]]:
    """Return the samples of each line in all kernel functions, and the lines of the listings."""
    sampled: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    files: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for op, _ in run.code:
        listing = run.listing(op)
        for one in listing.lines if listing is not None else ():
            if one.file:
                sampled[one.file, one.line].update(one.reasons)
                files[one.file][one.line] = one.text
    return sampled, {file: dict(sorted(lines.items())) for file, lines in files.items()}


@lru_cache(maxsize=16)  # a card is drawn at every refresh
def _changes(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[frozenset[int], dict[int, tuple[str, ...]]]:
    """Return the indices of new lines, and the removed lines by the index at which they were; nothing for very long files."""
    added, removed = set[int](), dict[int, tuple[str, ...]]()
    if max(len(old), len(new)) > MAX_COMPARED:
        return frozenset(), {}
    for what, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what != "equal":
            added.update(range(begin, end))
            if last > first:
                removed[begin] = old[first:last]
    return frozenset(added), removed
