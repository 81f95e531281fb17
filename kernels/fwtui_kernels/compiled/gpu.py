"""Kernels on a GPU: cubins loaded and launched by the driver."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

from fwtui_kernels.compiled.array_abi import array_words
from fwtui_kernels.compiled.cubin_cache import CompiledCode, found_or_compiled
from fwtui_kernels.compiled.cuda_driver import DEFAULT, Stream, checked, get_current_device
from fwtui_kernels.compiled.cuda_memory import Array, SharedArray, Size

_SLOT = 8  # bytes that each argument gets
# how a number fills its slot, by the names that numba gives types
_LETTERS = {
    **{"bool": "?7x", "int8": "b7x", "int16": "h6x", "int32": "i4x", "int64": "q"},
    **{"uint8": "B7x", "uint16": "H6x", "uint32": "I4x", "uint64": "Q", "float32": "f4x", "float64": "d"},
}
_NUMBERS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", np.bool_: "bool"}
_NUMBERS |= {np.dtype(name).type: name for name in _LETTERS if name != "bool"}


class LoadedFunction:
    """A kernel in this process's context, and the room from which the driver takes its arguments, in the form of `layout`."""

    def __init__(self, handle: Any, layout: str, code: CompiledCode, dynamic: int = 0):
        self.code = code
        self._handle, self._dynamic = handle, dynamic
        self.regs_per_thread, self.local_mem_per_thread = self._attribute("NUM_REGS"), self._attribute("LOCAL_SIZE_BYTES")
        self.shared_mem_per_block = self._attribute("SHARED_SIZE_BYTES") + dynamic
        self._layout = struct.Struct(f"<{layout}")
        self._values = ctypes.create_string_buffer(self._layout.size)
        first = ctypes.addressof(self._values)
        self._places = (ctypes.c_void_p * (self._layout.size // _SLOT))(*range(first, first + self._layout.size, _SLOT))
        self._arguments = ctypes.addressof(self._places)
        self._launch = driver.cuLaunchCooperativeKernel if code.cooperative else driver.cuLaunchKernel
        self._extra = () if code.cooperative else (0,)
        functions.add(self)

    def launch(self, where: tuple[int, ...], stream: int, words: Any) -> None:
        """`where` are the lengths of the grid and of the block."""
        self._layout.pack_into(self._values, 0, *words)
        checked(self._launch(self._handle, *where, self._dynamic, stream, self._arguments, *self._extra))

    def blocks_per_multiprocessor(self, threads: int) -> int:
        """How many blocks of that many threads there is room for at a time."""
        return checked(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(self._handle, threads, self._dynamic))

    def _attribute(self, name: str) -> int:
        kind = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return checked(driver.cuFuncGetAttribute(kind, self._handle))


functions: WeakSet[LoadedFunction] = WeakSet()  # all that are loaded in this process


def configured(kernel: Any, grid: Size, block: Size, stream: Stream = DEFAULT) -> Callable[..., None]:
    """What launches a kernel of fwtui_kernels.compiled.device so, after loading or compiling it for the arguments' types."""
    where, handle, overloads = (*three(grid), *three(block)), stream.handle, kernel.overloads

    def launch(*arguments: Any) -> None:
        types: list[Any] = []
        words: list[Any] = []
        for argument in arguments:
            number = _NUMBERS.get(type(argument))
            if number is not None:
                types.append(number)
                words.append(argument)
            elif isinstance(argument, Array | SharedArray):
                types.append(argument.type)
                words += argument.words
            else:
                types.append(_flattened(argument, words))
        key = tuple(types)
        function = overloads.get(key)
        if function is None:
            function = overloads[key] = load(kernel, key)
        function.launch(where, handle, words)

    return launch


def load(kernel: Any, types: tuple[Any, ...]) -> LoadedFunction:
    """The kernel for arguments of these types, from the disk or else from the compiler."""
    code = found_or_compiled(kernel, types, get_current_device().compute_capability)
    module = checked(driver.cuModuleLoadData(code.cubin))
    handle = checked(driver.cuModuleGetFunction(module, code.entry.encode()))
    return LoadedFunction(handle, "".join(map(_letters, types)), code)


def three(sizes: Size) -> tuple[int, ...]:
    sizes = (sizes,) if isinstance(sizes, int | np.integer) else sizes
    return *sizes, *[1] * (3 - len(sizes))


def _flattened(argument: Any, words: list[Any]) -> Any:
    """The type of a named tuple, whose members are passed one by one."""
    if not isinstance(argument, tuple):
        raise TypeError(f"a kernel takes numbers, named tuples and arrays that are on the device, no {type(argument).__name__}")
    parts = []
    for part in argument:
        number = _NUMBERS.get(type(part))
        words += [part] if number else []
        parts.append(number or _flattened(part, words))
    return type(argument), tuple(parts)


def _letters(kind: Any) -> str:
    if isinstance(kind, tuple):
        return "".join(map(_letters, kind[1]))
    if kind.startswith("array"):
        return "q" * len(array_words(0, 0, *[(0,) * int(kind.split(", ")[1][:-1])] * 2))
    return _LETTERS[kind]
