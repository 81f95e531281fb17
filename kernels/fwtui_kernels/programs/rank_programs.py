"""The rows of a rank of the distributed rungs, and its program on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwtui_kernels.plan import Buffers, Shape, Step, Target
from fwtui_kernels.programs.cpu_program import CpuProgram, pad


class RankRows:
    """The rows of the matrix that a rank holds: its rows of tiles, without gaps. Only the last row of tiles has padding."""

    def __init__(self, shape: Shape, rank: int):
        self._tile = shape.tile
        self._spans = [(low, min(high, shape.n)) for low, high in shape.spans(rank)]
        self.count = sum(end - low for low, end in self._spans)  # rows without the padding
        self.size = (max(1, len(self._spans)) * shape.tile, shape.padded)  # buffers cannot be empty

    def blocks(self, max_rows: int) -> Iterator[tuple[slice, slice]]:
        """Yield neighbouring rows, at most `max_rows` at a time, as slices of the rank's rows and of the matrix."""
        place = 0
        for low, end in self._spans:
            for first in range(low, end, max_rows):
                count = min(max_rows, end - first)
                yield slice(place, place + count), slice(first, first + count)
                place += count

    def pad(self, rows: Any, to: Any) -> None:
        """Copy the rows to a larger array, whose other vertices have no edges."""
        last = self._spans[-1][0] if self._spans else 0
        pad(rows, to, last - (len(to) - self._tile))


class CpuRank(CpuProgram):
    """A rank on a CPU. Its buffers are its rows, the broadcast panels of even and of odd rounds, and the input."""

    def __init__(self, shape: Shape, target: Target):
        from fwtui_kernels.compiled import cpu_rows
        from fwtui_kernels.compiled.cpu_vectors import width_of

        super().__init__(shape, {name: getattr(cpu_rows, name) for name in ("pivot", "row", "column", "rest")})
        self._link = target.link
        self._rows = RankRows(shape, target.rank)
        self._width = width_of(shape.itemsize, shape.tile)
        self._arriving: dict[int, Callable[[], object]] = {}  # the function that waits for a buffer

    def allocate(self) -> Buffers:
        tile, dtype = self.shape.tile, self.shape.dtype
        panels = [np.empty(tile * (self.shape.padded + tile), dtype) for _ in range(2)]
        return [np.empty(self._rows.size, dtype), *panels, np.empty(self._rows.size, dtype)]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self._rows.pad(matrix, buffers[-1])
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        self._wait(*list(self._arriving))
        np.copyto(buffers[0], buffers[-1])

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        p, *args = step.args
        which = 1 + p % 2
        self._wait(which)
        if step.op == "broadcast":
            assert self._link is not None
            self._arriving[which] = self._link.broadcast(buffers[which], args[0], stream)
        else:
            super().launch(step, buffers, stream)

    def arguments(self, step: Step, buffers: Buffers) -> tuple[Any, ...]:
        tile, (p, *args) = self.shape.tile, step.args
        matrix, panel_buffer = buffers[0], self.broadcast_array(buffers, p)
        panel, square = panel_buffer[: -(tile**2)].reshape(tile, -1), panel_buffer[-(tile**2) :].reshape(tile, tile)
        arrays = {"pivot": (square,), "row": (square, panel), "column": (square,), "rest": (panel,)}[step.op]
        return (matrix, *arrays, p, *args, self._width)

    def broadcast_array(self, buffers: Buffers, p: int) -> Any:
        """Return the broadcast panel of round p: row p (tile x padded), followed by the solved pivot."""
        return buffers[1 + p % 2]

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        return buffers[0][: self._rows.count, : self.shape.n].copy()

    def _wait(self, *which: int) -> None:
        for buffer in which:
            self._arriving.pop(buffer, lambda: None)()
