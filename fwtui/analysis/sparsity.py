"""Properties of a plan for a sparse graph before its first repetition, and its elimination tree as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fwtui.common import units
from fwtui.stream.events import Ordered
from fwtui.stream.run import Run
from fwtui_kernels.plan import ITEMSIZE

NO_SEPARATORS = "no small separators: no relaxation is skipped, and dense kernels are equally fast"


def describe_order(run: Run, seconds: float | None = None) -> list[str]:
    """Describe the order of a run with the estimated time of a repetition; empty if its kernel does not order the vertices."""
    if run.ordered is None or not run.padded:
        return []
    if not run.ordered.sizes:
        return [NO_SEPARATORS]
    fill = [f"fill {units.percent(run.ordered.fill)}"] if run.ordered.fill is not None else []
    return [
        units.counted(len(run.ordered.sizes), "supernode"),
        *fill,
        f"{units.gain(reduction(run))} fewer relaxations than dense",
        units.memory(run.padded**2 * ITEMSIZE.get(run.experiment.dtype, 4)),
        *([f"about {units.duration(seconds)} per repetition"] if seconds is not None else []),
    ]


def reduction(run: Run) -> float:
    """Return the relaxations of a dense run / those of this one; 1 if it skips none."""
    return run.n**3 / run.needed if run.needed else 1.0


def rate_text(run: Run) -> str:
    """Format the rate of a run; if it skips relaxations, after their reduction, as the rates of dense runs do not compare."""
    rate = units.rate(run.rate)
    return f"{units.gain(reduction(run))} fewer relaxations at {rate}" if reduction(run) > 1 else rate


class _Block(NamedTuple):
    """A subtree as text: rows of equal width, and the column of its root."""

    rows: tuple[str, ...]
    at: int


def tree(ordered: Ordered, width: int, deepest: int = 4) -> list[str]:
    """Return the upper levels of an elimination tree that fit: the size of each supernode above those of its children."""
    sizes, children, subtree = ordered.sizes, dict[int, list[int]](), [*ordered.sizes]
    parents = [*ordered.parents[: len(sizes)], *[-1] * (len(sizes) - len(ordered.parents))]
    for number, parent in enumerate(parents):
        if number < parent < len(sizes):  # children come first
            children.setdefault(parent, []).append(number)
            subtree[parent] += subtree[number]
        else:
            children.setdefault(-1, []).append(number)
    if not sizes:
        return []
    root = max(children[-1], key=lambda number: subtree[number])
    block = next((b for d in range(deepest, 1, -1) if len((b := _block(root, sizes, children, d)).rows[0]) <= width), None)
    rows = block.rows if block is not None else (str(sizes[root]),)
    more = len(children[-1]) - 1
    others = f"; {units.counted(more, 'other tree')} without an edge to it" if more else ""
    return [*(row.rstrip() for row in rows), f"the upper levels of {units.counted(len(sizes), 'supernode')} by size{others}"]


def _block(node: int, sizes: Sequence[int], children: Mapping[int, Sequence[int]], depth: int) -> _Block:
    label, below = str(sizes[node]), children.get(node, ()) if depth > 1 else ()
    if not below:
        return _Block((label,), len(label) // 2)
    blocks = [_block(child, sizes, children, depth - 1) for child in below]
    height = max(len(block.rows) for block in blocks)
    columns, left = list[int](), 0
    for block in blocks:
        columns.append(left + block.at)
        left += len(block.rows[0]) + 2
    at = (columns[0] + columns[-1]) // 2
    joint = [" "] * (left - 2)
    joint[columns[0] : columns[-1] + 1] = "─" * (columns[-1] + 1 - columns[0])
    for column in columns:
        joint[column] = "┬"
    joint[columns[0]], joint[columns[-1]] = ("┌", "┐") if len(columns) > 1 else ("│", "│")
    joint[at] = {"┬": "┼", "│": "│"}.get(joint[at], "┴")
    head = f"{'':{max(0, at - len(label) // 2)}}{label}"
    wide = max(len(joint), len(head))
    filled = [[*block.rows, *[" " * len(block.rows[0])] * (height - len(block.rows))] for block in blocks]
    lines = [head, "".join(joint), *("  ".join(parts) for parts in zip(*filled, strict=True))]
    return _Block(tuple(line.ljust(wide) for line in lines), at)
