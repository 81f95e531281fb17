"""Device and pinned memory: arrays in cuda.core's buffers, with the interface of numba.cuda's arrays, and copies."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from functools import cache, cached_property
from math import prod
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from cuda import core

from fwtui_kernels.compiled import driver_calls
from fwtui_kernels.compiled.array_abi import array_words

cuda: Any = core  # a package of compiled modules
Order = Literal["C", "F", "A"]  # row by row, column by column, or neither
Size = int | tuple[int, ...]
DEFAULT = cuda.LEGACY_DEFAULT_STREAM


@cache
def _memory_of(device: int) -> Any:
    """Return the memory resource of a device: if supported, a pool that returns free memory at each synchronization."""
    here = cuda.Device(device)
    if here.properties.memory_pools_supported:
        return cuda.DeviceMemoryResource(device, cuda.DeviceMemoryResourceOptions())
    return here.memory_resource


class Array:
    """An array on the device, or a view of one.

    `layout` is a NumPy array at the device address, for shapes, strides and views. Its cells are never accessed.
    """

    def __init__(self, layout: np.ndarray, memory: Any):
        self._layout = layout
        self._memory = memory  # the Buffer, or another package's array
        self.shape, self.strides, self.dtype = layout.shape, layout.strides, layout.dtype
        self.ndim, self.size, self.nbytes = layout.ndim, layout.size, layout.nbytes
        # for an empty array NumPy would return another address
        self.address: int = layout.__array_interface__["data"][0] if layout.size else 0
        self.order: Order = _order(layout)

    @cached_property
    def type(self) -> str:
        """Numba's name of the array type."""
        return f"array({self.dtype.name}, {self.ndim}d, {self.order})"

    @cached_property
    def buffer(self) -> Any:
        """The memory of a contiguous array, for cuda.core."""
        return cuda.Buffer.from_handle(self.address, self.nbytes, owner=self._memory)

    @cached_property
    def launch_arguments(self) -> tuple[int, ...]:
        """The 8-byte arguments that pass the array to a kernel."""
        return array_words(self.address, self.dtype.itemsize, self.shape, self.strides)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._layout.__array_interface__

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """Return a view for integers and slices, like NumPy; copy a single cell to the host."""
        # operator.index rejects other kinds of indices, for which NumPy would read cells
        places = [i if isinstance(i, slice) else operator.index(i) for i in (index if isinstance(index, tuple) else (index,))]
        view = Array(self._layout[(*places, ...)], self._memory)
        return view if view.ndim else view.reshape(1).copy_to_host()[0]

    def reshape(self, *shape: int) -> Array:
        return Array(self._dense().reshape(shape), self._memory)

    def view(self, dtype: Any) -> Array:
        return Array(self._dense().view(dtype), self._memory)

    def _dense(self) -> np.ndarray:
        """Return the layout of a C-contiguous array, which NumPy reshapes without a copy. Raises ValueError for others."""
        if self.order != "C":
            raise ValueError(f"{self.type} {self.shape} is not C-contiguous")
        return self._layout

    def copy_to_device(self, source: Any, stream: Any = DEFAULT) -> None:
        """Copy an array from the host or the device; asynchronous if the driver supports it.

        Raises ValueError for another shape, data type or order.
        """
        if source.shape != self.shape or source.dtype != self.dtype or self.order == "A":
            raise ValueError(f"{source.dtype} {source.shape} cannot be copied to {self.type} {self.shape}")
        if isinstance(source, Array) and source.order != self.order:
            raise ValueError(f"{source.type} cannot be copied to {self.type}")
        if self.nbytes:
            origin = source if isinstance(source, Array) else np.asarray(source, order=self.order)
            self.buffer.copy_from(_buffer_of(origin), stream=stream)

    def copy_to_host(self, out: np.ndarray | None = None, stream: Any = DEFAULT) -> np.ndarray:
        """Copy to `out`, or to a new array. Raises ValueError for another shape, data type or order."""
        if self.order == "A":  # copy the whole range of memory, then take the cells
            length = sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides, strict=True)) + self.dtype.itemsize
            first = self.address + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0)
            whole = Array(_layout(first, (length,), np.uint8), self._memory).copy_to_host(stream=stream)
            stream.sync()
            here = np.ndarray(self.shape, self.dtype, whole, self.address - first, self.strides)
            if out is None:
                return here.copy()
            np.copyto(out, here)
            return out
        to = np.empty_like(self._layout) if out is None else out
        if to.shape != self.shape or to.dtype != self.dtype or _order(to) != self.order:
            raise ValueError(f"{self.type} {self.shape} cannot be copied to {to.dtype} {to.shape}")
        if self.nbytes:
            self.buffer.copy_to(_buffer_of(to), stream=stream)
        return to


def _order(array: np.ndarray) -> Order:
    """Return the order of an array; C if it has both orders."""
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


def _layout(
    address: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None, memory: Any = None
) -> np.ndarray:
    """Return a NumPy array at an address; it holds a reference to `memory`."""
    interface = {"data": (address, False), "shape": shape, "typestr": np.dtype(dtype).str, "strides": strides, "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__=interface, memory=memory))


def _extent(shape: Size, dtype: Any) -> tuple[tuple[int, ...], int]:
    """Return the shape of an array as a tuple, and its size in bytes."""
    lengths = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    return lengths, prod(lengths) * np.dtype(dtype).itemsize


def _buffer_of(array: Any) -> Any:
    """Return the memory of a contiguous device or host array as a Buffer."""
    return array.buffer if isinstance(array, Array) else cuda.Buffer.from_handle(array.ctypes.data, array.nbytes, owner=array)


def device_array(shape: Size, dtype: Any, order: Order = "C", stream: Any = DEFAULT) -> Array:
    """Return a new array on the current device, for later work on `stream`."""
    lengths, size = _extent(shape, dtype)
    memory: Any = _memory_of(cuda.Device().device_id).allocate(size, stream=stream) if size else None
    rows = _layout(int(memory.handle) if size else 0, lengths if order == "C" else lengths[::-1], dtype)
    return Array(rows if order == "C" else rows.T, memory)


def to_device(array: np.ndarray, stream: Any = DEFAULT) -> Array:
    there = device_array(array.shape, array.dtype, "C" if array.flags.c_contiguous else "F", stream)
    there.copy_to_device(array, stream)
    return there


def as_cuda_array(array: Any) -> Array:
    """Return another package's array without a copy, through `__cuda_array_interface__`; wait for the stream it names."""
    interface = array.__cuda_array_interface__
    if interface.get("stream"):
        # the interface numbers the default streams 1 and 2, as the driver does
        cuda.Stream.from_handle(int(interface["stream"])).sync()
    return Array(_layout(interface["data"][0], tuple(interface["shape"]), interface["typestr"], interface.get("strides")), array)


class SharedArray(np.ndarray):
    """An array that the host and the device access at one address."""

    @property
    def address(self) -> int:
        return self.ctypes.data

    @property
    def type(self) -> str:
        return f"array({self.dtype.name}, {self.ndim}d, C)"

    @property
    def launch_arguments(self) -> tuple[int, ...]:
        return array_words(self.address, self.itemsize, self.shape, self.strides)


def pinned_array(shape: Size, dtype: Any) -> np.ndarray:
    """Return an array in pinned host memory."""
    lengths, size = _extent(shape, dtype)
    memory = cuda.LegacyPinnedMemoryResource().allocate(max(1, size))
    return _layout(int(memory.handle), lengths, dtype, memory=memory)


def mapped_array(shape: Size, dtype: Any) -> SharedArray:
    """Return an array in pinned host memory, which kernels access over PCIe."""
    return pinned_array(shape, dtype).view(SharedArray)


class _ManagedMemory:
    """Managed memory, freed with its last reference; at process exit the driver frees it."""

    def __init__(self, size: int):
        self.address = driver_calls.allocate_managed(size)
        weakref.finalize(self, driver_calls.free_managed, self.address).atexit = False


def managed_array(shape: Size, dtype: Any) -> SharedArray:
    """Return an array in managed memory, whose pages migrate to the processor that touches them."""
    lengths, size = _extent(shape, dtype)
    memory = _ManagedMemory(max(1, size))
    return _layout(memory.address, lengths, dtype, memory=memory).view(SharedArray)


def copy_on_device(to: Any, source: Any, size: int, stream: Any) -> None:
    """Copy bytes between device or managed arrays, on the device."""
    there, here = (cuda.Buffer.from_handle(array.address, size, owner=array) for array in (to, source))
    there.copy_from(here, stream=stream)


def pinned(shape: tuple[int, int], dtype: Any) -> tuple[np.ndarray, Callable[[], object]]:
    """Return a pinned host array and the function that unpins it."""
    matrix = np.empty(shape, dtype)
    if driver_calls.pin(matrix):
        return matrix, weakref.finalize(matrix, driver_calls.unpin, matrix.ctypes.data)
    # some systems allocate pinned memory but cannot pin existing memory
    return pinned_array(shape, dtype), lambda: None


def copy_in(there: Array, row: int, here: np.ndarray, stream: Any) -> None:
    """Copy a rectangle of pinned host memory to the rows of a device array from `row` on; asynchronous."""
    _copy_rectangle(there, row, here, stream, back=False)


def copy_back(there: Array, row: int, here: np.ndarray, stream: Any) -> None:
    """Copy rows of a device array to a rectangle of pinned host memory; asynchronous."""
    _copy_rectangle(there, row, here, stream, back=True)


def _copy_rectangle(there: Array, row: int, here: np.ndarray, stream: Any, back: bool) -> None:
    assert here.strides[1] == here.itemsize and there.dtype == here.dtype
    driver_calls.copy_rectangle(here, there.address + row * there.strides[0], there.strides[0], stream, back)
