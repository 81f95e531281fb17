"""Stacks of small graphs on a GPU: one block for each graph."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.memory import KEPT_FREE
from fwtui.common.units import memory
from fwtui.engine.engine import Engine
from fwtui.solver import launching
from fwtui.solver.launching import Clock, on_device
from fwtui.solver.stack import Stack
from fwtui_kernels.parts import stacks


def close_on_device(stack: Stack, cells: np.ndarray, before: np.ndarray | None, engine: Engine, clock: Clock) -> None:
    """Floyd-Warshall in each matrix in `cells`, on the GPU; call it within compiled(). Raises Refused if there is no room."""
    arrays = [cells] if before is None else [cells, before]
    needed, free = sum(array.nbytes for array in arrays), engine.free_bytes()
    if free is not None and needed > free - KEPT_FREE:
        raise Refused(
            f"the stack needs {memory(needed)} and {memory(free)} of device memory are free; "
            "give fewer graphs at a time, or device cpu"
        )
    # by width: graphs share a launch if the same block holds them
    widths = np.array(stacks.TILES)[np.searchsorted(stacks.TILES, stack.sizes)]
    there = [on_device(array, engine) for array in (*arrays, stack.first, stack.sizes.astype(np.int32))]
    chosen = {int(tile): on_device(np.flatnonzero(widths == tile).astype(np.int32), engine) for tile in np.unique(widths)}
    engine.synchronize()
    clock.lap("copy in")
    for tile, graphs in chosen.items():
        function = _function(cells.dtype.name, tile, before is not None)
        launching.launch(function, len(graphs), engine.stream, *there, graphs, threads=(tile // 4) ** 2)
    engine.synchronize()
    clock.lap("kernels")
    for array, copy in zip(arrays, there, strict=False):
        copy.copy_to_host(array, stream=engine.stream)
    engine.synchronize()
    clock.lap("copy out")


@cache
def _function(dtype: str, tile: int, predecessors: bool) -> Any:
    return stacks.closing_with_predecessors(dtype, tile) if predecessors else stacks.closing(dtype, tile)
