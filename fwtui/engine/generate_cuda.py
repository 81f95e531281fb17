"""The generator compiled for a GPU: large graphs are born where they are needed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fwtui.experiment.generate import Recipe
from fwtui.experiment.hashing import ONE, ZERO, functions

THREADS = 256

cuda: Any
cell_hash: Any
toss: Any
scaled: Any
cell_index: Any
shuffle: Any


def fill_cuda(recipe: Recipe, stream: Any = 0) -> Any:
    """The graph as an (n, n) device array of the recipe's type; asynchronous on the stream."""
    number = np.float64 if recipe.dtype == "float32" else np.int64
    kernel = build()
    out = cuda.device_array((recipe.n, recipe.n), dtype=np.dtype(recipe.dtype), stream=stream)
    shifted = recipe.potential_range > 0
    potentials = cuda.to_device(recipe.potentials if shifted else np.zeros(1, dtype=np.int64), stream=stream)
    kernel[recipe.n, THREADS, stream](
        out,
        recipe.key,
        recipe.threshold,
        np.int64(recipe.low),
        recipe.span,
        potentials,
        shifted,
        number(recipe.scale),
        number(recipe.no_edge),
        recipe.connected,
        recipe.exact,
        recipe.drawn,
        recipe.cells,
        recipe.half,
        recipe.shuffle_key,
    )
    return out


def fill(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into the host array out (n, n), computed on the GPU."""
    fill_cuda(recipe).copy_to_host(out)


@cache
def build() -> Any:
    """The kernel, once: one block per row, neighbouring threads write neighbouring cells."""
    global cuda, cell_hash, toss, scaled, cell_index, shuffle
    from kernels.numba_door.device import cuda, jit

    device = functions(jit(device=True, inline="always"))
    cell_hash, toss, scaled = device.cell_hash, device.toss, device.scaled
    cell_index, shuffle = device.cell_index, device.shuffle

    @jit
    def generate(
        out, key, threshold, low, span, potentials, shifted, scale, no_edge, connected, exact, drawn, cells, half, shuffle_key
    ):
        n = np.int64(out.shape[0])
        row = np.int64(cuda.blockIdx.x)
        i = np.uint64(row)
        forced = ONE if connected else ZERO
        following = (row + np.int64(1)) % n if connected else np.int64(-1)
        for column in range(np.int64(cuda.threadIdx.x), n, np.int64(cuda.blockDim.x)):
            j = np.uint64(column)
            if column == row or column == following:
                edge = column == following
            elif exact:
                index = shuffle(cell_index(i, j, np.uint64(n), forced), shuffle_key, half)
                while index >= cells:
                    index = shuffle(index, shuffle_key, half)
                edge = index < drawn
            else:
                edge = toss(cell_hash(key, i, j), threshold)
            if column == row:
                out[row, column] = 0
            elif edge:
                weight = low + np.int64(scaled(cell_hash(key, i, j), span))
                if shifted:
                    weight += potentials[row] - potentials[column]
                out[row, column] = weight * scale
            else:
                out[row, column] = no_edge

    return generate
