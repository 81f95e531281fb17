"""Memory and streams of a simulated GPU, with the interface of cuda_memory.py and cuda.core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np


class DeviceArray:
    """A device array. Kernels access its `cells`; the host must copy it, as from a GPU."""

    def __init__(self, cells: np.ndarray):
        self.cells = cells
        self.shape, self.dtype, self.ndim, self.nbytes = cells.shape, cells.dtype, cells.ndim, cells.nbytes

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, index: Any) -> Any:
        part = self.cells[index]
        return DeviceArray(part) if isinstance(part, np.ndarray) else part

    def __setitem__(self, index: Any, value: Any) -> None:
        self.cells[index] = value

    def reshape(self, *shape: int) -> DeviceArray:
        return DeviceArray(self.cells.reshape(shape))

    def view(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self.cells.view(dtype))

    def copy_to_device(self, source: Any, stream: Any = None) -> None:
        """Copy an array from the host or the device. Raises ValueError for another shape or data type."""
        if source.shape != self.shape or source.dtype != self.dtype:
            raise ValueError(f"{source.dtype} {source.shape} cannot be copied to {self.dtype} {self.shape}")
        self.cells[...] = cells_of(source)

    def copy_to_host(self, out: np.ndarray | None = None, stream: Any = None) -> np.ndarray:
        if out is None:
            return self.cells.copy("K")
        if out.shape != self.shape or out.dtype != self.dtype:
            raise ValueError(f"{self.dtype} {self.shape} cannot be copied to {out.dtype} {out.shape}")
        out[...] = self.cells
        return out


def cells_of(argument: Any) -> Any:
    """Return the cells of a device array; other arguments unchanged."""
    return argument.cells if isinstance(argument, DeviceArray) else argument


def device_array(shape: Any, dtype: Any, order: Literal["C", "F"] = "C", stream: Any = None) -> DeviceArray:
    return DeviceArray(np.empty(shape, dtype, order))


def to_device(array: np.ndarray, stream: Any = None) -> DeviceArray:
    return DeviceArray(array.copy("K"))


def host_array(shape: Any, dtype: Any) -> np.ndarray:
    """Return host memory, which simulated kernels can access."""
    return np.empty(shape, dtype)


def copy_on_device(to: Any, source: Any, size: int, stream: Any) -> None:
    cells_of(to)[...] = cells_of(source)


def pinned(shape: tuple[int, int], dtype: Any) -> tuple[np.ndarray, Callable[[], object]]:
    return host_array(shape, dtype), lambda: None


def copy_in(there: DeviceArray, row: int, here: np.ndarray, stream: Any) -> None:
    there.cells[row : row + len(here)] = here


def copy_back(there: DeviceArray, row: int, here: np.ndarray, stream: Any) -> None:
    here[...] = there.cells[row : row + len(here)]


class Stream:
    """A stream on which nothing runs asynchronously."""

    def sync(self) -> None:
        pass
