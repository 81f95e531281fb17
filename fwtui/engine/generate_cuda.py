"""The graph generator, compiled for a GPU: large graphs are generated in device memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui.engine.generate_cpu import set_cell
from fwtui.experiment.generate import Recipe
from fwtui_kernels.compiled.device import cuda, jit

THREADS = 256


@jit
def generate(out, potentials, rule):
    """Generate the matrix with one block per row; neighbouring threads write neighbouring cells."""
    row = np.int64(cuda.blockIdx.x)
    for column in range(np.int64(cuda.threadIdx.x), np.int64(out.shape[0]), np.int64(cuda.blockDim.x)):
        set_cell(out, row, column, potentials, rule)


def fill_cuda(recipe: Recipe) -> Any:
    """Return the graph as an (n, n) device array of the recipe's type; asynchronous."""
    out = cuda.device_array((recipe.n, recipe.n), dtype=np.dtype(recipe.dtype))
    generate[recipe.n, THREADS](out, cuda.to_device(recipe.potentials), recipe.rule)
    return out


def fill(out: np.ndarray, recipe: Recipe) -> None:
    """Write the graph into the host array out (n, n), computed on the GPU."""
    fill_cuda(recipe).copy_to_host(out)
