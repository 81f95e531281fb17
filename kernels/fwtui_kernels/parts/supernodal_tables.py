"""What each launch of a supernodal plan works on, as tables of tiles: an op is told its first row, and how many to take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.parts.supernodal import Elimination, elimination
from fwtui_kernels.plan import Buffers, Shape, Step
from fwtui_kernels.programs.cpu_program import CpuProgram

ONE_BY_ONE = 64  # tiles of a matrix up to which each may be launched by itself, as those do who follow the steps


class LaunchTables(NamedTuple):
    """Rows of tile numbers, int32. A slot is the place of a panel's tile, and a copy that of a closed pivot, in its launch."""

    pivots: np.ndarray  # p
    panels: np.ndarray  # p, i, slot, copy: the tiles (p, i) and (i, p)
    tasks: np.ndarray  # i, j, the first row of `via`, their number: the tile (i, j), through one tile p or more
    via: np.ndarray  # p, the slot of (i, p)
    parts: dict[tuple[str, tuple[int, int]], tuple[int, int]]  # first row and number of rows, by op and args
    copies: int  # at most in a launch
    slots: int


class SparseCpuProgram(CpuProgram):
    """Each op takes the matrix, and the first row and the number of rows of its table; the matrix is stored tile by tile."""

    def __init__(self, shape: Shape, ops: Mapping[str, Callable[..., None]], tables: LaunchTables):
        super().__init__(shape, ops, tiled=True)
        self._parts = tables.parts

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        p, count = step.args
        super().launch(replace(step, args=self._parts[step.op, (p, count)]), buffers, stream)


def tables(shape: Shape) -> LaunchTables:
    eliminated = elimination(shape)
    side = len(eliminated.spans)
    launches = dict.fromkeys(eliminated.together)
    if side <= ONE_BY_ONE:
        launches |= dict.fromkeys((p,) for p in range(side))
    rows: dict[str, list[np.ndarray]] = {"pivot": [], "panels": [], "rest": [], "via": []}
    at = dict.fromkeys(rows, 0)
    parts: dict[tuple[str, tuple[int, int]], tuple[int, int]] = {}
    for tiles in launches:
        for op, table in _launch(eliminated, tiles, side, at["via"]):
            if op != "via":
                parts[op, (tiles[0], len(tiles))] = (at[op], len(table))
            rows[op].append(table)
            at[op] += len(table)
    pivots, panels, tasks, via = (np.concatenate(rows[op]) for op in rows)
    slots = max(count for (op, _), (_, count) in parts.items() if op == "panels")
    return LaunchTables(pivots, panels, tasks, via, parts, max(map(len, launches)), slots)


def _launch(eliminated: Elimination, tiles: tuple[int, ...], side: int, first: int) -> Iterator[tuple[str, np.ndarray]]:
    """The rows of one launch for each table; `first` is the number of those of `via` before it."""
    yield "pivot", np.array(tiles, np.int32)[:, None]
    beside = [np.array(eliminated.tiles(p), dtype=np.int32) for p in tiles]
    slots = np.cumsum([0, *map(len, beside)])
    panels = [
        _rows(np.full(len(i), p), i, slots[copy] + np.arange(len(i)), np.full(len(i), copy))
        for copy, (p, i) in enumerate(zip(tiles, beside, strict=True))
    ]
    yield "panels", np.concatenate(panels)
    # column by column, as tiles that share an operand are then neighbours
    cell = np.concatenate([(i[:, None] * side + i[None, :]).ravel() for i in beside])
    via = np.concatenate([np.tile(panel[:, [0, 2]], (len(panel), 1)) for panel in panels])
    by_cell = np.argsort(cell, kind="stable")
    cells = cell[by_cell]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    columns, rows = np.divmod(cells[starts], side)
    counts = np.diff(starts, append=len(cells))
    longest = np.argsort(-counts, kind="stable")
    yield "rest", _rows(rows, columns, first + starts, counts)[longest]
    yield "via", via[by_cell]


def _rows(*columns: np.ndarray) -> np.ndarray:
    return np.stack(columns, axis=1, dtype=np.int32, casting="same_kind")
