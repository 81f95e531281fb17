"""Host side of the sparse rung on a CPU: fronts, their tables, and distances in elimination order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import get_num_threads, prange

from fwtui_kernels.compiled.cpu_vectors import width_of
from fwtui_kernels.compiled.locked_njit import njit
from fwtui_kernels.parts.elimination import ABOVE
from fwtui_kernels.parts.fronts import fronts
from fwtui_kernels.plan import NO_EDGE, Buffers, Shape, Step
from fwtui_kernels.programs.cpu_program import CpuProgram


@njit(cache=True, parallel=True)
def reordered(matrix, places, result):
    for i in prange(len(places)):
        row = matrix[places[i]]
        for j in range(len(places)):
            result[i, j] = row[places[j]]


class SparseCpuProgram(CpuProgram):
    """Program whose buffers are the distances in elimination order, the fronts, the weights of the arcs and, if the graph is
    directed, the transposed distances to separators.
    """

    def __init__(self, shape: Shape, ops: Mapping[str, Callable[..., None]]):
        super().__init__(shape, ops)
        assert shape.order is not None
        self._fronts, self._directed = fronts(shape), shape.order.directed
        self._levels = shape.order.levels(shape.tile, shape.itemsize)

    def allocate(self) -> Buffers:
        it, dtype, side = self._fronts, self.shape.dtype, self.shape.padded
        distances = np.empty((side, side), dtype)
        back = np.empty((self._levels[-1].first, side), dtype) if self._directed else distances
        return [distances, np.empty((it.height, it.pitch), dtype), np.empty(len(it.arcs.weights), dtype), back]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        buffers[2][:] = matrix[self._fronts.arcs.sources, self._fronts.arcs.targets]

    def restore(self, buffers: Buffers, stream: Any) -> None:
        """Do nothing: no step changes the weights."""

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        """Take the weights of the ordered graph instead of calling `write`."""
        buffers[2][:] = self._fronts.arcs.weights

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        super().launch(step, buffers, stream)
        if step.op == "sweep" and step.args[1] == ABOVE and self._directed:
            self.ops[step.op](*self._sweep_arguments(step, buffers, True))

    def arguments(self, step: Step, buffers: Buffers) -> tuple[Any, ...]:
        if step.op == "sweep":
            return self._sweep_arguments(step, buffers, False)
        it, (_, front, weights, _) = self._fronts, buffers
        first, end = it.levels[len(self._levels) - 1 - step.args[0]]
        return front, weights, it.nodes[first:end], it.rows, it.columns, it.kids, it.to, *self._constants()

    def _sweep_arguments(self, step: Step, buffers: Buffers, back: bool) -> tuple[Any, ...]:
        """Return the arguments of a sweep; with `back`, of the distances to the supernodes instead of from them."""
        it, (distances, front, _, transposed), (stage, part) = self._fronts, buffers, step.args
        number = stage - len(self._levels)
        level, (first, end) = self._levels[number], it.levels[number]
        pair = (transposed, distances) if back else (distances, transposed)
        columns = (0, level.first) if part == ABOVE else (level.first, level.end)
        halved = part != ABOVE and not self._directed
        return *pair, front, it.nodes[first:end], it.taken, *columns, back, halved, *self._constants(), get_num_threads()

    def _constants(self) -> tuple[Any, int]:
        """Return the value of a missing edge and the width of a vector block."""
        dtype = np.dtype(self.shape.dtype)
        return dtype.type(NO_EDGE[self.shape.dtype]), width_of(dtype.itemsize, self.shape.tile)

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        result = np.empty((self.shape.n, self.shape.n), self.shape.dtype)
        reordered(buffers[0], self._fronts.places, result)
        return result

    result = unload
