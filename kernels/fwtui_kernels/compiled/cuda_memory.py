"""Memory of a GPU and of the host beside it: arrays with the attributes and methods of numba.cuda's, and copies."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from math import prod
from typing import Any, Literal

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui_kernels.compiled.array_abi import array_words
from fwtui_kernels.compiled.cuda_driver import DEFAULT, Stream, checked

Order = Literal["C", "F"]
Size = int | tuple[int, ...]
_deferred: list[int] | None = None  # addresses to free later


class _Allocation:
    """Device memory until nobody refers to it; the driver waits for what is under way."""

    def __init__(self, size: int):
        self.address = int(checked(driver.cuMemAlloc(size))) if size else 0

    def __del__(self) -> None:
        if address := getattr(self, "address", 0):
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
    """An array on the device, or some of its rows."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, memory: Any, address: int):
        self.shape, self.strides, self.dtype, self.ndim = shape, strides, np.dtype(dtype), len(shape)
        self.size = prod(shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.address = address
        self._memory = memory  # whatever keeps it

    @cached_property
    def order(self) -> str:
        """C, F or A for neither; an array in both orders is of the first."""
        return next((o for o in ("C", "F") if _in_order(self.shape, self.strides, self.dtype.itemsize, o)), "A")

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
        return {
            "shape": self.shape,
            "strides": self.strides,
            "data": (self.address, False),
            "typestr": self.dtype.str,
            "version": 3,
        }

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """A view by whole numbers and slices, as of NumPy's arrays; a single cell is copied to the host."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > self.ndim:
            raise IndexError(f"{len(index)} indices for {self.ndim} dimensions")
        place, shape, strides = self.address, [], []
        for which, length, stride in zip(
            (*index, *[slice(None)] * (self.ndim - len(index))), self.shape, self.strides, strict=True
        ):
            if isinstance(which, slice):
                chosen = range(*which.indices(length))
                place += stride * chosen.start if len(chosen) else 0
                shape.append(len(chosen))
                strides.append(stride * chosen.step)
            else:
                place += stride * range(length)[which]
        view = Array(tuple(shape), tuple(strides), self.dtype, self._memory, place)
        return view if shape else view.reshape(1).copy_to_host()[0]

    def reshape(self, *shape: int) -> Array:
        if self.order != "C" or prod(shape) != self.size:
            raise ValueError(f"{self.type} {self.shape} does not have the shape {shape}")
        return Array(shape, _strides(shape, self.dtype.itemsize), self.dtype, self._memory, self.address)

    def view(self, dtype: Any) -> Array:
        length, rest = divmod(self.shape[-1] * self.dtype.itemsize, np.dtype(dtype).itemsize)
        if rest or self.order != "C":
            raise ValueError(f"rows of {self.type} are not made of {dtype}")
        shape = (*self.shape[:-1], length)
        return Array(shape, _strides(shape, np.dtype(dtype).itemsize), dtype, self._memory, self.address)

    def copy_to_device(self, source: Any, stream: Stream = DEFAULT) -> None:
        """From the host or the device; asynchronous as far as the driver allows."""
        if source.shape != self.shape or source.dtype != self.dtype or self.order == "A":
            raise ValueError(f"{source.dtype} {source.shape} is copied to {self.type} {self.shape}")
        if isinstance(source, Array):
            if source.strides != self.strides:
                raise ValueError(f"{source.type} is copied to {self.type}")
            checked(driver.cuMemcpyDtoDAsync(self.address, source.address, self.nbytes, stream.handle))
        elif self.nbytes:
            source = np.asarray(source, order=self.order)  # pyright: ignore[reportArgumentType, reportCallIssue]
            checked(driver.cuMemcpyHtoDAsync(self.address, source.ctypes.data, self.nbytes, stream.handle))

    def copy_to_host(self, given: np.ndarray | None = None, stream: Stream = DEFAULT) -> np.ndarray:
        if self.order == "A":  # with the cells between its own
            length = sum((n - 1) * abs(s) for n, s in zip(self.shape, self.strides, strict=True)) + self.dtype.itemsize
            first = self.address + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0)
            whole = Array((length,), (1,), np.uint8, self._memory, first).copy_to_host(stream=stream)
            stream.synchronize()
            here = np.ndarray(self.shape, self.dtype, whole, self.address - first, self.strides)
            if given is None:
                return here.copy()
            np.copyto(given, here)
            return given
        to: np.ndarray = np.empty(self.shape, self.dtype, order="F" if self.order == "F" else "C") if given is None else given
        if to.shape != self.shape or to.dtype != self.dtype or (self.size and to.strides != self.strides):
            raise ValueError(f"{self.type} {self.shape} is copied to {to.dtype} {to.shape}")
        if self.nbytes:
            checked(driver.cuMemcpyDtoHAsync(to.ctypes.data, self.address, self.nbytes, stream.handle))
        return to


def _strides(shape: tuple[int, ...], itemsize: int, order: str = "C") -> tuple[int, ...]:
    steps = [itemsize]
    for length in shape[:0:-1] if order == "C" else shape[:-1]:
        steps.append(steps[-1] * length)
    return tuple(steps[::-1] if order == "C" else steps)[: len(shape)]


def _in_order(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, order: str) -> bool:
    expected = zip(shape, strides, _strides(shape, itemsize, order), strict=True)
    return prod(shape) == 0 or all(length == 1 or own == dense for length, own, dense in expected)


def device_array(shape: Size, dtype: Any, order: Order = "C", stream: Stream | None = None) -> Array:
    lengths = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    itemsize = np.dtype(dtype).itemsize
    memory = _Allocation(prod(lengths) * itemsize)
    return Array(lengths, _strides(lengths, itemsize, order), dtype, memory, memory.address)


def to_device(array: np.ndarray, stream: Stream = DEFAULT) -> Array:
    there = device_array(array.shape, array.dtype, "C" if array.flags.c_contiguous else "F")
    there.copy_to_device(array, stream)
    return there


def as_cuda_array(given: Any) -> Array:
    """Another package's array, through `__cuda_array_interface__`, where it is; after what its stream still has to do."""
    told = given.__cuda_array_interface__
    dtype = np.dtype(told["typestr"])
    shape = tuple(told["shape"])
    if told.get("stream"):
        # 1 and 2 are the default streams, by the interface; the driver has the same numbers for them
        checked(driver.cuStreamSynchronize(int(told["stream"])))
    return Array(shape, tuple(told.get("strides") or _strides(shape, dtype.itemsize)), dtype, given, told["data"][0])


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
    copy = _rectangle(there, here)
    copy.srcMemoryType, copy.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, here.ctypes.data
    copy.dstMemoryType, copy.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, there.address + row * there.strides[0]
    copy.srcPitch, copy.dstPitch = here.strides[0], there.strides[0]
    checked(driver.cuMemcpy2DAsync(copy, stream.handle))


def copy_back(there: Array, row: int, here: np.ndarray, stream: Stream) -> None:
    """The reverse of copy_in."""
    copy = _rectangle(there, here)
    copy.srcMemoryType, copy.srcDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, there.address + row * there.strides[0]
    copy.dstMemoryType, copy.dstHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, here.ctypes.data
    copy.srcPitch, copy.dstPitch = there.strides[0], here.strides[0]
    checked(driver.cuMemcpy2DAsync(copy, stream.handle))


def _rectangle(there: Array, here: np.ndarray) -> Any:
    assert here.strides[1] == here.itemsize and there.dtype == here.dtype
    copy = driver.CUDA_MEMCPY2D()
    copy.WidthInBytes, copy.Height = here.shape[1] * here.itemsize, here.shape[0]
    return copy
