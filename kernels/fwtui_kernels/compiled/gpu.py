"""Loading and launching of cubins through cuda.core."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np
from cuda import core

from fwtui_kernels.compiled.cubin_cache import CompiledCode, found_or_compiled
from fwtui_kernels.compiled.cuda_memory import DEFAULT, Array, SharedArray, Size
from fwtui_kernels.plan import Resources

cuda: Any = core  # a package of compiled modules
# numba's names of scalar types
_NUMBERS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", np.bool_: "bool"}
_NUMBERS |= {np.dtype(name).type: name for name in ("int8", "int16", "int32", "int64", "float32", "float64")}
_NUMBERS |= {np.dtype(name).type: name for name in ("uint8", "uint16", "uint32", "uint64")}


class LoadedFunction:
    """A kernel function that is loaded in this process, with `dynamic` bytes of dynamic shared memory per block."""

    def __init__(self, kernel: Any, code: CompiledCode, dynamic: int = 0):
        self.code = code
        self._kernel, self._dynamic = kernel, dynamic
        functions.add(self)

    def launcher(self, grid: Size, block: Size, stream: Any) -> Callable[..., None]:
        """Return a function that launches the kernel with this configuration and its parameters as arguments."""
        config = cuda.LaunchConfig(
            grid=_lengths(grid), block=_lengths(block), shmem_size=self._dynamic, is_cooperative=self.code.cooperative
        )
        return partial(cuda.launch, stream, config, self._kernel)

    def resources(self, threads: int, occupancy: bool) -> Resources:
        """Return the compiled resources for blocks of that many threads; with `occupancy`, also the resident blocks."""
        used, dynamic = self._kernel.attributes, self._dynamic
        resident = self._kernel.occupancy.max_active_blocks_per_multiprocessor(threads, dynamic) if occupancy else None
        return Resources(threads, used.num_regs, used.shared_size_bytes + dynamic, used.local_size_bytes, resident)


functions: WeakSet[LoadedFunction] = WeakSet()  # all functions that this process has loaded


def configured(kernel: Any, grid: Size, block: Size, stream: Any = DEFAULT) -> Callable[..., None]:
    """Return a function that launches a DeviceKernel with this configuration, for arguments of any types.

    For new argument types, the kernel is loaded from the cache or compiled.
    """
    overloads, launchers = kernel.overloads, dict[tuple[Any, ...], Callable[..., None]]()

    def launch(*arguments: Any) -> None:
        types: list[Any] = []
        flat: list[Any] = []
        for argument in arguments:
            number = _NUMBERS.get(type(argument))
            if number is not None:
                types.append(number)
                flat.append(argument)
            elif isinstance(argument, Array | SharedArray):
                types.append(argument.type)
                flat += argument.launch_arguments
            else:
                types.append(_flattened(argument, flat))
        key = tuple(types)
        launcher = launchers.get(key)
        if launcher is None:
            function = overloads.get(key)
            if function is None:
                function = overloads[key] = load(kernel, key)
            launcher = launchers[key] = function.launcher(grid, block, stream)
        launcher(*flat)

    return launch


def current_device() -> int:
    """Return the index of this thread's GPU."""
    return cuda.Device().device_id


def load(kernel: Any, types: tuple[Any, ...]) -> LoadedFunction:
    """Load a kernel for these argument types, from the cache or else from the compiler."""
    code = found_or_compiled(kernel, types, tuple(cuda.Device().compute_capability))
    return LoadedFunction(cuda.ObjectCode.from_cubin(code.cubin).get_kernel(code.entry), code)


def _lengths(sizes: Size) -> tuple[int, ...]:
    return tuple(map(int, sizes)) if isinstance(sizes, tuple) else (int(sizes),)


def _flattened(argument: Any, flat: list[Any]) -> Any:
    """Return the type of a named tuple, and append its members to `flat`."""
    if not isinstance(argument, tuple):
        raise TypeError(f"a kernel takes numbers, named tuples and device arrays, not {type(argument).__name__}")
    parts = []
    for part in argument:
        number = _NUMBERS.get(type(part))
        flat += [part] if number else []
        parts.append(number or _flattened(part, flat))
    return type(argument), tuple(parts)
