"""In place of numba.cuda where all kernels are on the disk (cubin_cache.py): what the host side asks of it, by the driver alone.

It has the names and the behaviour of numba.cuda, for one GPU and contiguous arrays. Whatever else is asked of it fails, and so
does a kernel that is not kept; then the process begins anew with numba.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from math import prod
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.compiled.rectangles import checked

# how a number fills the eight bytes that each argument gets, by the names that numba gives types
_LETTERS = {
    **{"int16": "h6x", "int32": "i4x", "int64": "q", "uint8": "B7x", "uint32": "I4x", "uint64": "Q"},
    **{"float32": "f4x", "float64": "d"},
}
_SLOT = 8
Order = Literal["C", "F"]
_ATTRIBUTE = "CU_DEVICE_ATTRIBUTE_"


class Stream:
    def __init__(self, handle: int):
        self.handle = handle

    def synchronize(self) -> None:
        checked(driver.cuStreamSynchronize(self.handle))


class Event:
    """One without a clock."""

    def __init__(self) -> None:
        self._event = checked(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))

    def record(self, stream: Stream) -> None:
        checked(driver.cuEventRecord(self._event, stream.handle))

    def wait(self, stream: Stream) -> None:
        checked(driver.cuStreamWaitEvent(stream.handle, self._event, 0))

    def __del__(self) -> None:
        if hasattr(self, "_event"):
            driver.cuEventDestroy(self._event)


class _Memory:
    """Device memory until nobody refers to it; the driver waits for what is under way."""

    def __init__(self, size: int):
        self.address = int(checked(driver.cuMemAlloc(size))) if size else 0

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            driver.cuMemFree(self.address)


class Array:
    """A contiguous array on the device, or some of its rows."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, order: Order, memory: _Memory, address: int):
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), len(shape)
        self.size = prod(shape)
        self.nbytes = self.size * self.dtype.itemsize
        # an array in both orders is of the first
        self._order: Order = order if sum(length > 1 for length in shape) > 1 else "C"
        steps = [self.dtype.itemsize]
        for length in shape[:0:-1] if order == "C" else shape[:-1]:
            steps.append(steps[-1] * length)
        self.strides = tuple(steps[::-1] if order == "C" else steps)[: self.ndim]
        self._memory, self._address = memory, address

    @cached_property
    def type(self) -> str:
        """As numba writes it."""
        return f"array({self.dtype.name}, {self.ndim}d, {self._order})"

    @cached_property
    def words(self) -> tuple[int, ...]:
        """A kernel's argument, as numba's code expects it: two pointers of its own come first."""
        return 0, 0, self.size, self.dtype.itemsize, self._address, *self.shape, *self.strides

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "data": (self._address, False),
            "typestr": self.dtype.str,
            "version": 3,
        }

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        first, end, step = rows.indices(len(self))
        if step != 1 or self._order != "C":
            raise NotImplementedError("only neighbouring rows")
        place = self._address + first * self.strides[0]
        return Array((max(0, end - first), *self.shape[1:]), self.dtype, "C", self._memory, place)

    def view(self, dtype: Any) -> Array:
        length, rest = divmod(self.shape[-1] * self.dtype.itemsize, np.dtype(dtype).itemsize)
        if rest or self._order != "C":
            raise ValueError(f"rows of {self.type} are not made of {dtype}")
        return Array((*self.shape[:-1], length), dtype, "C", self._memory, self._address)

    def copy_to_device(self, source: Any, stream: Stream) -> None:
        """From the host or the device; asynchronous as far as the driver allows."""
        if source.shape != self.shape or source.dtype != self.dtype:
            raise ValueError(f"{source.dtype} {source.shape} is copied to {self.type} {self.shape}")
        if isinstance(source, Array):
            if source.strides != self.strides:
                raise ValueError(f"{source.type} is copied to {self.type}")
            checked(driver.cuMemcpyDtoDAsync(self._address, source._address, self.nbytes, stream.handle))
        elif self.nbytes:
            source = np.asarray(source, order=self._order)
            checked(driver.cuMemcpyHtoDAsync(self._address, source.ctypes.data, self.nbytes, stream.handle))

    def copy_to_host(self, given: np.ndarray | None = None, *, stream: Stream) -> np.ndarray:
        to: np.ndarray = np.empty(self.shape, self.dtype, order=self._order) if given is None else given
        if to.shape != self.shape or to.dtype != self.dtype or (self.size and to.strides != self.strides):
            raise ValueError(f"{self.type} {self.shape} is copied to {to.dtype} {to.shape}")
        if self.nbytes:
            checked(driver.cuMemcpyDtoHAsync(to.ctypes.data, self._address, self.nbytes, stream.handle))
        return to


class _Function(NamedTuple):
    """A kernel in this process's context, and the room from which the driver takes its arguments."""

    handle: Any
    layout: struct.Struct
    values: Any
    places: Any  # pointers to them


class Kernel:
    """A kernel that is on the disk: `kernel[grid, block, stream](*arguments)` loads it first, for each list of types."""

    def __init__(self, function: Any, options: Mapping[str, Any]):
        self.py_func = function
        self._options = options
        self.overloads: dict[tuple[str, ...], _Function] = {}

    def __getitem__(self, configuration: tuple[Any, Any, Stream]) -> Callable[..., None]:
        grid, block, stream = configuration
        where = *_three(grid), *_three(block), 0, stream.handle

        def launch(*given: Any) -> None:
            types, words = [], []
            for argument in given:
                if isinstance(argument, Array):
                    types.append(argument.type)
                    words += argument.words
                else:
                    types.append(argument.dtype.name)
                    words.append(argument)
            function = self.overloads.get(tuple(types)) or self._loaded(tuple(types), given)
            function.layout.pack_into(function.values, 0, *words)
            checked(driver.cuLaunchKernel(function.handle, *where, ctypes.addressof(function.places), 0))

        return launch

    def _loaded(self, types: tuple[str, ...], given: tuple[Any, ...]) -> _Function:
        name = cubin_cache.key(self.py_func, self._options, types, get_current_device().compute_capability)
        code = cubin_cache.load(cubin_cache.here(), name)
        if code is None:
            raise cubin_cache.NotKept(f"{self.py_func.__name__} for {', '.join(types)} is not on the disk")
        module = checked(driver.cuModuleLoadData(code.cubin))
        handle = checked(driver.cuModuleGetFunction(module, code.entry.encode()))
        layout = struct.Struct("<" + "".join(_letters(*pair) for pair in zip(given, types, strict=True)))
        values = ctypes.create_string_buffer(layout.size)
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * (layout.size // _SLOT))(*range(first, first + layout.size, _SLOT))
        self.overloads[types] = _Function(handle, layout, values, places)
        return self.overloads[types]


class _Context:
    """The one that all users of a GPU share in a process."""

    memory_manager = SimpleNamespace(deallocations=SimpleNamespace(clear=lambda: None))  # nothing is freed later

    def get_memory_info(self) -> Any:
        code, free, total = driver.cuMemGetInfo()
        checked((code,))
        return SimpleNamespace(free=free, total=total)


class _Device:
    """Attributes by the driver's names."""

    def __init__(self, index: int):
        self._handle = checked(driver.cuDeviceGet(index))
        self.name = checked(driver.cuDeviceGetName(256, self._handle)).rstrip(b"\0")
        self.compute_capability = self.COMPUTE_CAPABILITY_MAJOR, self.COMPUTE_CAPABILITY_MINOR
        self._context = checked(driver.cuDevicePrimaryCtxRetain(self._handle))

    def take(self) -> None:
        """Make it the one of this thread."""
        checked(driver.cuCtxSetCurrent(self._context))

    def __getattr__(self, name: str) -> int:
        return checked(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, _ATTRIBUTE + name), self._handle))


@cache
def _device(index: int) -> _Device:
    return _Device(index)


_current: list[_Device] = []


def select_device(index: int) -> None:
    checked(driver.cuInit(0))
    _current[:] = [_device(index)]
    _current[0].take()


def get_current_device() -> _Device:
    return _current[0]


def current_context() -> _Context:
    return _Context()


def stream() -> Stream:
    return Stream(int(checked(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_DEFAULT)))))


external_stream = Stream


def event(timing: bool) -> Event:
    assert not timing
    return Event()


def device_array(shape: int | tuple[int, ...], dtype: Any, order: Order = "C", stream: Stream | None = None) -> Array:
    lengths = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    memory = _Memory(prod(lengths) * np.dtype(dtype).itemsize)
    return Array(lengths, dtype, order, memory, memory.address)


def to_device(array: np.ndarray, stream: Stream) -> Array:
    there = device_array(array.shape, array.dtype, "C" if array.flags.c_contiguous else "F")
    there.copy_to_device(array, stream)
    return there


def _three(sizes: int | tuple[int, ...]) -> tuple[int, ...]:
    sizes = (sizes,) if isinstance(sizes, int) else sizes
    return *sizes, *[1] * (3 - len(sizes))


def _letters(argument: Any, kind: str) -> str:
    return "q" * len(argument.words) if isinstance(argument, Array) else _LETTERS[kind]
