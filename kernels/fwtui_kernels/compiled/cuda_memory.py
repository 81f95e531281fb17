"""Memory of a GPU and of the host beside it: arrays with the attributes and methods of numba.cuda's, and copies."""

from __future__ import annotations

import ctypes
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from math import prod
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui_kernels.compiled.array_abi import array_words
from fwtui_kernels.compiled.cuda_driver import DEFAULT, Stream, checked

Order = Literal["C", "F", "A"]  # row by row, column by column, or neither
Size = int | tuple[int, ...]
_deferred: list[int] | None = None  # addresses to free later


class _Allocation:
    """Device memory until nobody refers to it; the driver waits for what is under way."""

    def __init__(self, size: int):
        self.address = int(checked(driver.cuMemAlloc(size))) if size else 0
        if size:
            weakref.finalize(self, _free, self.address).atexit = False  # what ends with its process is freed by the driver


def _free(address: int) -> None:
    if _deferred is None:
        driver.cuMemFree(address)
    else:
        _deferred.append(address)


@contextmanager
def defer_cleanup() -> Iterator[None]:
    """Free no memory within: that would end a capture."""
    global _deferred
    _deferred = []
    try:
        yield
    finally:
        addresses, _deferred = _deferred, None
        for address in addresses:
            driver.cuMemFree(address)


class Array:
    """An array on the device, or some of its cells.

    `layout` is NumPy's idea of it, at its address: for shapes, strides and views, but never for a cell.
    """

    def __init__(self, layout: np.ndarray, memory: Any):
        self._layout = layout
        self._memory = memory  # whatever keeps it
        self.shape, self.strides, self.dtype = layout.shape, layout.strides, layout.dtype
        self.ndim, self.size, self.nbytes = layout.ndim, layout.size, layout.nbytes
        self.address: int = layout.__array_interface__["data"][0] if layout.size else 0  # NumPy gives no cells a place of its own
        self.order: Order = _order(layout)

    @cached_property
    def type(self) -> str:
        """As numba writes it."""
        return f"array({self.dtype.name}, {self.ndim}d, {self.order})"

    @cached_property
    def words(self) -> tuple[int, ...]:
        """A kernel's argument."""
        return array_words(self.address, self.dtype.itemsize, self.shape, self.strides)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._layout.__array_interface__

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """A view by whole numbers and slices, as of NumPy's arrays; a single cell is copied to the host."""
        # NumPy would read cells for any other kind of index
        places = [i if isinstance(i, slice) else operator.index(i) for i in (index if isinstance(index, tuple) else (index,))]
        view = Array(self._layout[(*places, ...)], self._memory)
        return view if view.ndim else view.reshape(1).copy_to_host()[0]

    def reshape(self, *shape: int) -> Array:
        return Array(self._dense().reshape(shape), self._memory)

    def view(self, dtype: Any) -> Array:
        return Array(self._dense().view(dtype), self._memory)

    def _dense(self) -> np.ndarray:
        """The layout, where NumPy would copy no cell for another one."""
        if self.order != "C":
            raise ValueError(f"the cells of {self.type} {self.shape} are not one after the other")
        return self._layout

    def copy_to_device(self, source: Any, stream: Stream = DEFAULT) -> None:
        """From the host or the device; asynchronous as far as the driver allows."""
        if source.shape != self.shape or source.dtype != self.dtype or self.order == "A":
            raise ValueError(f"{source.dtype} {source.shape} is copied to {self.type} {self.shape}")
        if isinstance(source, Array):
            if source.order != self.order:
                raise ValueError(f"{source.type} is copied to {self.type}")
            checked(driver.cuMemcpyDtoDAsync(self.address, source.address, self.nbytes, stream.handle))
        elif self.nbytes:
            source = np.asarray(source, order=self.order)
            checked(driver.cuMemcpyHtoDAsync(self.address, source.ctypes.data, self.nbytes, stream.handle))

    def copy_to_host(self, out: np.ndarray | None = None, stream: Stream = DEFAULT) -> np.ndarray:
        if self.order == "A":  # with the cells between its own
            length = sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides, strict=True)) + self.dtype.itemsize
            first = self.address + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0)
            whole = Array(_layout(first, (length,), np.uint8), self._memory).copy_to_host(stream=stream)
            stream.synchronize()
            here = np.ndarray(self.shape, self.dtype, whole, self.address - first, self.strides)
            if out is None:
                return here.copy()
            np.copyto(out, here)
            return out
        to = np.empty_like(self._layout) if out is None else out
        if to.shape != self.shape or to.dtype != self.dtype or _order(to) != self.order:
            raise ValueError(f"{self.type} {self.shape} is copied to {to.dtype} {to.shape}")
        if self.nbytes:
            checked(driver.cuMemcpyDtoHAsync(to.ctypes.data, self.address, self.nbytes, stream.handle))
        return to


def _order(array: np.ndarray) -> Order:
    """That of its cells; an array in both is of the first."""
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


def _layout(address: int, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> np.ndarray:
    interface = {"data": (address, False), "shape": shape, "typestr": np.dtype(dtype).str, "strides": strides, "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def device_array(shape: Size, dtype: Any, order: Order = "C", stream: Stream | None = None) -> Array:
    lengths = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    memory = _Allocation(prod(lengths) * np.dtype(dtype).itemsize)
    rows = _layout(memory.address, lengths if order == "C" else lengths[::-1], dtype)
    return Array(rows if order == "C" else rows.T, memory)


def to_device(array: np.ndarray, stream: Stream = DEFAULT) -> Array:
    there = device_array(array.shape, array.dtype, "C" if array.flags.c_contiguous else "F")
    there.copy_to_device(array, stream)
    return there


def as_cuda_array(array: Any) -> Array:
    """Another package's array, through `__cuda_array_interface__`, where it is; after what its stream still has to do."""
    interface = array.__cuda_array_interface__
    if interface.get("stream"):
        # 1 and 2 are the default streams, by the interface; the driver has the same numbers for them
        checked(driver.cuStreamSynchronize(int(interface["stream"])))
    return Array(_layout(interface["data"][0], tuple(interface["shape"]), interface["typestr"], interface.get("strides")), array)


class SharedArray(np.ndarray):
    """Memory that the host and the device reach by one address."""

    @property
    def address(self) -> int:
        return self.ctypes.data

    @property
    def type(self) -> str:
        return f"array({self.dtype.name}, {self.ndim}d, C)"

    @property
    def words(self) -> tuple[int, ...]:
        return array_words(self.address, self.itemsize, self.shape, self.strides)


def _host_array(allocate: Callable[[int], Any], free: Callable[[Any], Any], shape: Size, dtype: Any) -> np.ndarray:
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    size = prod(lengths) * np.dtype(dtype).itemsize
    address = checked(allocate(max(1, size)))
    room: Any = (ctypes.c_char * size).from_address(int(address))
    weakref.finalize(room, free, address).atexit = False
    return np.frombuffer(room, dtype).reshape(lengths)


def pinned_array(shape: Size, dtype: Any) -> np.ndarray:
    """Host memory that the copy engines read and write."""
    return _host_array(partial(driver.cuMemHostAlloc, Flags=0), driver.cuMemFreeHost, shape, dtype)


def mapped_array(shape: Size, dtype: Any) -> SharedArray:
    """Host memory that kernels reach across the link."""
    allocate = partial(driver.cuMemHostAlloc, Flags=driver.CU_MEMHOSTALLOC_DEVICEMAP)
    return _host_array(allocate, driver.cuMemFreeHost, shape, dtype).view(SharedArray)


def managed_array(shape: Size, dtype: Any) -> SharedArray:
    """Memory whose pages move to the processor that touches them."""
    allocate = partial(driver.cuMemAllocManaged, flags=int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL))
    return _host_array(allocate, driver.cuMemFree, shape, dtype).view(SharedArray)


def copy_on_device(to: Any, source: Any, size: int, stream: Stream) -> None:
    """Bytes from device memory to device memory, managed memory too."""
    checked(driver.cuMemcpyDtoDAsync(to.address, source.address, size, stream.handle))


def pinned(shape: tuple[int, int], dtype: Any) -> tuple[np.ndarray, Callable[[], object]]:
    """A pinned host array and the function that unpins it: ordinary memory, if the system can pin that."""
    matrix = np.empty(shape, dtype)
    address = matrix.ctypes.data
    if driver.cuMemHostRegister(address, matrix.nbytes, 0)[0] == driver.CUresult.CUDA_SUCCESS:
        return matrix, weakref.finalize(matrix, driver.cuMemHostUnregister, address)
    # some systems allocate pinned memory but cannot pin existing memory
    return pinned_array(shape, dtype), lambda: None


def copy_in(there: Array, row: int, here: np.ndarray, stream: Stream) -> None:
    """A rectangle of pinned host memory to as many rows of a device array as it has, from `row` on; asynchronous."""
    _copy_rectangle(there, row, here, stream, "src", "dst")


def copy_back(there: Array, row: int, here: np.ndarray, stream: Stream) -> None:
    """The reverse of copy_in."""
    _copy_rectangle(there, row, here, stream, "dst", "src")


def _copy_rectangle(there: Array, row: int, here: np.ndarray, stream: Stream, host: str, device: str) -> None:
    assert here.strides[1] == here.itemsize and there.dtype == here.dtype
    copy = driver.CUDA_MEMCPY2D()
    copy.WidthInBytes, copy.Height = here.shape[1] * here.itemsize, here.shape[0]
    ends = (
        (host, "Host", here.ctypes.data, here.strides[0]),
        (device, "Device", there.address + row * there.strides[0], there.strides[0]),
    )
    for end, kind, address, pitch in ends:
        setattr(copy, f"{end}MemoryType", getattr(driver.CUmemorytype, f"CU_MEMORYTYPE_{kind.upper()}"))
        setattr(copy, f"{end}{kind}", address)
        setattr(copy, f"{end}Pitch", pitch)
    checked(driver.cuMemcpy2DAsync(copy, stream.handle))
