"""The intrinsics of cuda_intrinsics.py in plain Python, for the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwtui_kernels.compiled.simulator import running
from fwtui_kernels.forms import FORMS


def load4(array: Any, at: int) -> tuple[Any, Any, Any, Any]:
    """Return four neighbouring cells; `at` counts cells from the start of the array, for any shape."""
    flat = array.reshape(-1)
    return flat[at], flat[at + 1], flat[at + 2], flat[at + 3]


def store4(array: Any, at: int, a: Any, b: Any, c: Any, d: Any) -> None:
    flat = array.reshape(-1)
    flat[at], flat[at + 1], flat[at + 2], flat[at + 3] = a, b, c, d


def _as_words(array: Any) -> Any:
    """Return the cells of an array as words."""
    flat = array.reshape(-1)
    return flat if flat.dtype.itemsize >= 4 else flat.view(np.int32)


def load_words(array: Any, at: int) -> tuple[Any, Any, Any, Any]:
    return load4(_as_words(array), at)


def store_words(array: Any, at: int, a: Any, b: Any, c: Any, d: Any) -> None:
    store4(_as_words(array), at, a, b, c, d)


def spread(cell: Any) -> Any:
    return np.array([cell, cell]).view(np.int32)[0] if cell.itemsize == 2 else cell


def copy_async(shared: Any, to: int, matrix: Any, at: int) -> None:
    # copied as late as possible, so that a missing wait shows
    running().copies[-1].append((shared.reshape(-1)[to : to + 4], _as_words(matrix)[at : at + 4]))


def commit_copies() -> None:
    running().copies.append([])


def wait_copies(still: int) -> None:
    groups = running().copies
    # the last group is not committed yet
    while len(groups) > still + 1:
        for near, far in groups.pop(0):
            near[:] = far


def rematerialize(number: Any) -> Any:
    return number


def clock() -> int:
    return 0


def relax_tile(best, to, to_at, middle, middle_at, rows, columns, high, wide, depth, form) -> None:
    def lines(array: Any, at: int, size: int, pitch: int) -> Any:
        groups = size // 4
        place = at + np.arange(groups)[:, None] * (pitch // groups) + np.arange(4)
        return array.reshape(-1)[np.arange(depth)[:, None] * pitch + place.reshape(-1)]

    relaxation = FORMS[form]
    cell = np.dtype(np.int16) if relaxation.lanes == 2 else best.dtype
    tos = lines(to, to_at, rows, high).view(cell).reshape(depth, rows, 1, relaxation.lanes)
    middles = lines(middle, middle_at, columns, wide).view(cell).reshape(depth, 1, columns, relaxation.lanes)
    # some forms compare float32 as integers
    compared = np.dtype(np.int32) if relaxation.two and cell == np.float32 else cell
    cells = best.view(compared).reshape(rows, columns, relaxation.lanes)
    cells[...] = np.minimum(cells, (tos + middles).view(compared).min(axis=0))
