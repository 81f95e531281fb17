"""A distributed rung with all its ranks in one process, one after the other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fwtui_kernels.plan import EVERY, Buffers, Kernel, Shape, Step, Target
from fwtui_kernels.programs.rank_programs import RankRows


class AllRanks:
    """The programs of all ranks. Their buffers are those of each rank."""

    def __init__(self, kernel: Kernel, shape: Shape, target: Target):
        self.shape = shape
        self._rows = [RankRows(shape, rank) for rank in range(shape.ranks)]
        self._ranks: Sequence[Any] = [kernel.build(shape, replace(target, rank=rank)) for rank in range(shape.ranks)]

    def allocate(self) -> Buffers:
        return [rank.allocate() for rank in self._ranks]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        for rank, rows, mine in zip(self._ranks, self._rows, buffers, strict=True):
            rank.load(np.concatenate([matrix[:0], *(matrix[whole] for _, whole in rows.blocks(len(matrix)))]), mine, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        for rank, mine in zip(self._ranks, buffers, strict=True):
            rank.restore(mine, stream)

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        if step.rank != EVERY:
            self._ranks[step.rank].launch(step, buffers[step.rank], stream)
            return
        p, owner = step.args
        arrays = [rank.broadcast_array(mine, p) for rank, mine in zip(self._ranks, buffers, strict=True)]
        for rank, array in enumerate(arrays):
            if rank != owner:
                array.copy_to_device(arrays[owner], stream=stream)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        matrix = np.empty((self.shape.n, self.shape.n), self.shape.dtype)
        for rank, rows, mine in zip(self._ranks, self._rows, buffers, strict=True):
            found = rank.unload(mine, stream)
            for own, whole in rows.blocks(self.shape.n):
                matrix[whole] = found[own]
        return matrix
