"""Checks of a plan without its kernel: every relaxation once, in a legal order, without races between steps.

NumPy executes the plan on small graphs (fwtui_kernels.reference). Each step sees only the rectangles that it declares to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

import numpy as np

from fwtui.common.text import excerpt, sanitise
from fwtui.common.units import counted
from fwtui_kernels.plan import Kernel, Rect, Shape, Step
from fwtui_kernels.reference import middles, relax

LARGEST = 48  # vertices of a checked plan, unless its tiles are larger
MAX_STEPS = 2_000  # steps of a checked plan
MAX_PAIRS = 1_000_000  # pairs of steps that are checked for races
ORDERS = 5  # random legal orders of a plan with several streams
GRAPHS = 10  # random graphs; an illegal order leaves a distance too long in one of them
POISON = -1e6  # value of undeclared cells, so small that it shows in every result


class Conflict(NamedTuple):
    """Two unordered steps and the cells that both access; at least one of them writes there."""

    first: int
    second: int
    where: Rect
    first_writes: bool
    second_writes: bool


def ancestors(plan: Sequence[Step]) -> list[int]:
    """Return for each step the steps that must have finished before it starts, as a bit set of indices.

    A stream runs its steps in order; `after` orders steps of different streams. Raises ValueError for an `after` that
    does not point backwards.
    """
    last: dict[tuple[int, int], int] = {}
    before: list[int] = []
    for index, step in enumerate(plan):
        mine, stream = 0, _stream(step)
        for earlier in (*([last[stream]] if stream in last else []), *step.after):
            if not 0 <= earlier < index:
                raise ValueError(f"step {index} ({step.op}) waits for step {earlier}, which is not before it")
            mine |= before[earlier] | 1 << earlier
        before.append(mine)
        last[stream] = index
    return before


def _stream(step: Step) -> tuple[int, int]:
    """Return the rank and the stream of a step."""
    return step.rank, step.lane


def conflicts(plan: Sequence[Step]) -> Iterator[Conflict]:
    """Yield the pairs of unordered steps that access the same cells, at least one of them writing."""
    before = ancestors(plan)
    if len({_stream(step) for step in plan}) < 2:
        return
    pairs = ((i, j) for j in range(len(plan)) for i in range(j))
    for i, j in islice(pairs, MAX_PAIRS):
        if _stream(plan[i]) != _stream(plan[j]) and not before[j] >> i & 1:
            shared = _shared(plan[i], plan[j])
            if shared is not None:
                yield Conflict(i, j, *shared)


def races(plan: Sequence[Step]) -> list[tuple[int, int]]:
    """Return the pairs of steps that race."""
    return [(race.first, race.second) for race in conflicts(plan)]


def legal_order(plan: Sequence[Step], random: Random) -> Iterator[int]:
    """Yield the indices of the steps in a random order that streams and `after` allow."""
    before = ancestors(plan)
    done = 0
    left = set(range(len(plan)))
    while left:
        index = random.choice(sorted(i for i in left if not before[i] & ~done))
        yield index
        done |= 1 << index
        left.discard(index)


def execute(kernel: Kernel, step: Step, through: range, d: np.ndarray) -> None:
    """Execute a step with all undeclared cells poisoned; a step that reads from a copy sees all cells."""
    cells = kernel.places(step.writes)
    copied = len(kernel.places(step.reads)) < len(step.reads)
    visible = d.copy() if copied else np.full_like(d, POISON)
    for r in step.reads if not copied else ():
        visible[r.top : r.bottom, r.left : r.right] = d[r.top : r.bottom, r.left : r.right]
    for k in through:
        relax(visible, cells, k)
    for w in cells:
        d[w.top : w.bottom, w.left : w.right] = visible[w.top : w.bottom, w.left : w.right]


def sizes(tile: int) -> tuple[int, ...]:
    """Return the most informative sizes for a tile: one vertex, around one tile, and two and a half tiles."""
    around = (1, tile - 1, tile, tile + 1, 2 * tile + tile // 2 + 1)
    return tuple(sorted({n for n in around if n > 0}))


def check_plan(kernel: Kernel) -> list[str]:
    """Return the errors of the kernel's plans, a sentence each, for the smallest graph that has some; empty if all are sound."""
    for tile in sorted(kernel.tiles_for(True))[:2] or (1,):
        for n in sizes(tile if tile > 1 else 4):
            if n > max(tile + 1, LARGEST):
                continue
            shape = Shape(n, tile, kernel.dtypes[0], options=kernel.defaults)
            if kernel.refuses(shape):
                continue
            for stepwise in (False, True):
                complaints = find_plan_errors(kernel, shape, stepwise)
                if complaints:
                    at = f"n = {n}, tile {tile}" if kernel.tiles else f"n = {n}"
                    return [f"{sentence} ({at})" for sentence in complaints]
    return []


def find_plan_errors(kernel: Kernel, shape: Shape, stepwise: bool = False) -> list[str]:
    """Return the errors of a plan, a sentence each: those of single steps, else races, else incorrect relaxations."""
    plan = list(islice(kernel.plan(shape, stepwise), MAX_STEPS + 1))
    if len(plan) > MAX_STEPS:
        return [f"the plan has more than {MAX_STEPS:,} steps for a graph as small as this: does it ever end?"]
    if not plan:
        return ["the plan has no step, so nothing is ever computed"]
    names = step_names(kernel, plan)
    complaints = _one_by_one(kernel, plan, names, shape.padded)
    if not complaints:
        complaints = _races(plan, names)
    if not complaints:
        complaints = _relaxed(kernel, plan, names, shape.padded)
    return [sanitise(sentence) for sentence in complaints]


def step_names(kernel: Kernel, plan: Sequence[Step]) -> list[str]:
    """Return the name of each step: panels of round 3; round 3 for a kernel with one phase."""
    if len(kernel.phases) == 1:
        return [f"round {number}" for number, _ in kernel.rounds(plan)]
    return [f"{kernel.phases.get(step.phase, step.phase)} of round {number}" for number, step in kernel.rounds(plan)]


def describe_rect(rect: Rect) -> str:
    """Format a rectangle: rows 0-31, columns 32-63."""
    return f"{_span('row', rect.top, rect.bottom)}, {_span('column', rect.left, rect.right)}"


def _span(axis: str, low: int, high: int) -> str:
    return f"{axis} {low}" if high == low + 1 else f"{axis}s {low}-{high - 1}"


def _one_by_one(kernel: Kernel, plan: Sequence[Step], names: Sequence[str], side: int) -> list[str]:
    """Return the first error of a single step."""
    for index, step in enumerate(plan):
        name = names[index]
        if step.phase not in kernel.phases:
            return [f"step {index} is of the phase {excerpt(step.phase)!r}, which is not in the phases of the kernel"]
        if not step.writes:
            return [f"{name} writes nothing"]
        for rect in (*step.reads, *step.writes):
            if rect.top >= rect.bottom or rect.left >= rect.right:
                sides = f"rows {rect.top} to {rect.bottom}, columns {rect.left} to {rect.right}"
                return [f"{name} names a rectangle without cells ({sides}, ends not included); omit it"]
            if not (0 <= rect.top < rect.bottom <= side and 0 <= rect.left < rect.right <= side):
                return [f"{name} names {describe_rect(rect)}, which is outside a matrix of {side} x {side}"]
        for place, one in enumerate(step.writes):
            for other in step.writes[:place]:
                if one.overlaps(other):
                    return [f"{name} writes {describe_rect(_common(one, other))} twice"]
        for earlier in step.after:
            if not 0 <= earlier < index:
                return [f"{name} (step {index}) waits for step {earlier}, which is not before it"]
    return []


def _races(plan: Sequence[Step], names: Sequence[str]) -> list[str]:
    """Describe the first race of each pair of phases."""
    sentences: dict[tuple[str, str], str] = {}
    for race in conflicts(plan):
        first, second = names[race.first], names[race.second]
        if not race.first_writes:
            first, second = second, first
        does = "writes" if race.first_writes and race.second_writes else "reads"
        kinds = (plan[race.first].phase, plan[race.second].phase)
        sentences.setdefault(kinds, f"{first} writes {describe_rect(race.where)}, which {second} {does} at the same time")
    return list(sentences.values())


def _relaxed(kernel: Kernel, plan: Sequence[Step], names: Sequence[str], side: int) -> list[str]:
    """Return the first relaxation that is not done exactly once, else the first incorrect distance in a legal order."""
    done = 0
    through: list[range] = []
    by = np.full((side, side, side), -1, dtype=np.int32)  # the step that does relaxation (k, i, j)
    for index, step in enumerate(plan):
        try:
            ks = middles(kernel, step, side, done)
        except (ValueError, ZeroDivisionError):
            cells = sum(rect.area for rect in kernel.places(step.writes))
            return [
                f"{names[index]} claims {counted(step.cost.relaxations, 'relaxation')} of {counted(cells, 'cell')}, "
                f"but its rectangles do not determine the vertices k"
            ]
        if ks.start < 0 or ks.stop > side:
            return [f"{names[index]} relaxes over k = {ks.stop - 1}, but the last vertex is {side - 1}"]
        for k in ks:
            for rect in kernel.places(step.writes):
                cells = by[k, rect.top : rect.bottom, rect.left : rect.right]
                if (cells >= 0).any():
                    twice = _box(cells >= 0, rect)
                    before = names[int(cells.max())]
                    return [f"{describe_rect(twice)} are relaxed over k = {k} twice, by {before} and by {names[index]}"]
                cells[...] = index
        done += step.cost.relaxations
        through.append(ks)
    missing = np.argwhere(by < 0)
    if len(missing):
        k, i, j = missing[0].tolist()
        amount = f"{len(missing):,} of {side**3:,} relaxations are never done"
        return [f"{amount}, the first of them row {i}, column {j} over k = {k}"]
    return _wrong_order(kernel, plan, names, through, by)


def _wrong_order(
    kernel: Kernel, plan: Sequence[Step], names: Sequence[str], through: Sequence[range], by: np.ndarray
) -> list[str]:
    side = len(by)
    concurrent = len({_stream(step) for step in plan}) > 1
    orders = [list(range(len(plan)))] + [list(legal_order(plan, Random(seed))) for seed in range(ORDERS if concurrent else 0)]
    for seed in range(GRAPHS):
        matrix = _graph(side, seed)
        expected = matrix.copy()
        for k in range(side):
            relax(expected, (Rect(0, 0, side, side),), k)
        for order in orders:
            d = matrix.copy()
            for index in order:
                execute(kernel, plan[index], through[index], d)
            wrong = np.argwhere(d != expected)
            if not len(wrong):
                continue
            i, j = wrong[0].tolist()
            if d[i, j] < expected[i, j]:
                return [f"row {i}, column {j} depends on cells that its step does not list in `reads`"]
            return [_too_early(by, order, names) or f"the steps are in an order that leaves row {i}, column {j} too long"]
    return []


def _too_early(by: np.ndarray, order: Sequence[int], names: Sequence[str]) -> str:
    """Describe the first relaxation with an operand that is not final for all smaller k; empty if there is none."""
    side = len(by)
    when = np.empty(len(order), dtype=np.int32)
    when[order] = np.arange(len(order))
    at = when[by]  # [k, i, j]: when it is done
    for index in order:
        for k in range(1, side):
            rows, columns = np.nonzero(by[k] == index)
            if not len(rows):
                continue
            late_to = at[:k, :, k].max(axis=0)  # latest step of (i, k) over smaller vertices, by i
            late_from = at[:k, k, :].max(axis=0)
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
                for cell, late in (((i, k), late_to[i]), ((k, j), late_from[j])):
                    if late > when[index] and cell[0] != cell[1]:  # no path from a vertex to itself is shorter than none
                        return (
                            f"{names[index]} uses row {cell[0]}, column {cell[1]} before {names[order[int(late)]]} has relaxed it"
                        )
    return ""


def _graph(side: int, seed: int) -> np.ndarray:
    """Return a random cycle through all vertices: each pair has one path, so that every k is needed."""
    random = np.random.default_rng(seed)
    matrix = np.full((side, side), np.inf)
    path = random.permutation(side)
    matrix[path, np.roll(path, -1)] = random.integers(1, 10, side)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _shared(early: Step, late: Step) -> tuple[Rect, bool, bool] | None:
    """Return cells that both steps access and one of them writes, and which step writes; None if there are none."""
    both = early.writes, late.writes, (True, True)
    for mine, theirs, writes in (both, (early.writes, late.reads, (True, False)), (early.reads, late.writes, (False, True))):
        for one in mine:
            for other in theirs:
                if one.overlaps(other):
                    return _common(one, other), *writes
    return None


def _common(one: Rect, other: Rect) -> Rect:
    corner = max(one.top, other.top), max(one.left, other.left)
    return Rect(*corner, min(one.bottom, other.bottom), min(one.right, other.right), one.buffer)


def _box(mask: np.ndarray, within: Rect) -> Rect:
    """Return the bounding box of the marked cells of a part of the matrix."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    top, left = within.top + int(rows[0]), within.left + int(columns[0])
    return Rect(top, left, within.top + int(rows[-1]) + 1, within.left + int(columns[-1]) + 1)
