"""Rungs in the simulator, compared case by case with plain Floyd-Warshall.

A program that in_simulator.py starts imports this; `RIGHT` there is one that does no more.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from all_ranks import AllRanks
from in_simulator import kernel_in
from path_checks import floyd_warshall

from fwtui_kernels import registry
from fwtui_kernels.compiled.device import cuda
from fwtui_kernels.parts.blocked import place
from fwtui_kernels.plan import NO_EDGE, Kernel, Shape, Target

warnings.simplefilter("ignore")  # sums over a negative cycle wrap around


def graph(n: int, dtype: str, kind: str, seed: int) -> np.ndarray:
    """Return integer weights from 1 to 16, or those of the kind, and the sentinel for no edge."""
    chance = np.random.default_rng(seed)
    matrix = np.full((n, n), NO_EDGE[dtype], dtype)
    if kind in ("ring", "round"):  # the longest paths there are: every k counts
        order = chance.permutation(n)
        matrix[order, np.roll(order, -1)] = 1
    if kind != "ring":
        weights = chance.integers(0, 2, (n, n)) if kind == "zeros" else chance.integers(1, 17, (n, n))
        if kind == "negative":
            height = chance.integers(0, 16, n)
            weights = weights + height[:, None] - height
        elif kind == "real":
            weights = weights / 256
        edge = chance.random((n, n)) < (0.1 if kind in ("sparse", "round") else 0.3)
        matrix[edge] = weights[edge]
    np.fill_diagonal(matrix, 0)
    if kind == "cycle":
        matrix[1, 2], matrix[2, 1] = -3, 2
    return matrix


def right(
    kernel: Kernel,
    n: int,
    tile: int,
    dtype: str,
    seed: int = 0,
    kind: str = "dense",
    options: Mapping[str, int] | None = None,
    nonnegative: bool | None = None,
    ranks: int = 1,
    stepwise: Sequence[bool] = (False,),
    size: list[int] | None = None,
) -> bool:
    """Return True if each repetition gives the distances or the negative cycle, and the matrix has that size in memory."""
    matrix = graph(n, dtype, kind, seed)
    chosen = {**{option.name: option.default for option in kernel.options}, **(options or {})}
    sign = kind != "negative" if nonnegative is None else nonnegative
    shape = Shape(n, tile, dtype, nonnegative=sign, options=tuple(sorted(chosen.items())), ranks=ranks)
    program: Any = AllRanks(kernel, shape, Target("simulator")) if ranks > 1 else kernel.build(shape, Target("simulator"))
    buffers: Any = program.allocate()
    stream = cuda.stream()
    if ranks == 1:
        for buffer in buffers:  # what was in memory before must not matter
            buffer[:] = -99
    program.load(matrix, buffers, stream)
    if kernel.id == "staged-load":
        assert_order(matrix, buffers[0].copy_to_host().reshape(-1), shape)
    expected = floyd_warshall(matrix.astype(float))
    # with negative weights what is out of reach sinks a little below the sentinel
    limit = NO_EDGE[dtype] - (1000 if kind == "negative" and dtype != "float32" else 0)
    for how in stepwise:
        program.restore(buffers, stream)
        for step in kernel.plan(shape, how):
            program.launch(step, buffers, stream)
        got = program.unload(buffers, stream)
        same = np.diagonal(got).min() < 0 if kind == "cycle" else (np.minimum(got, limit) == np.minimum(expected, limit)).all()
        if not same:
            return False
    return size is None or list(buffers[0].shape) == size


def assert_order(matrix: np.ndarray, cells: np.ndarray, shape: Shape) -> None:
    """Check that memory holds tiles one by one, and 4 x 4 blocks within a tile."""
    tile, side = shape.tile, shape.padded // shape.tile
    for q, cell in enumerate(cells):
        which, (i, j) = q // tile**2, divmod(place(q % tile**2, tile), tile)
        i, j = which // side * tile + i, which % side * tile + j
        assert i >= shape.n or j >= shape.n or cell == matrix[i, j]


def verdicts(case: dict[str, Any]) -> list[bool]:
    """Return a boolean per graph up to the first wrong one; the kernel is a rung's name or a file."""
    name = case.pop("kernel")
    kernel = registry()[name] if name in registry() else kernel_in(name)
    found: list[bool] = []
    for seed in range(case.pop("graphs", 1)):
        found.append(right(kernel, seed=seed, **case))
        if not found[-1]:
            break
    return found
