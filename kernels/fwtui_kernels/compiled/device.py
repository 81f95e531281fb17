"""Names that kernel files import: `cuda`, `jit`, data types, and intrinsics for instructions that Python cannot express.

With a GPU, `cuda` offers the arrays of cuda_memory.py to the host, and numba is imported only to compile a kernel (compiler.py),
so that this module imports fast. In a simulator process `cuda` is simulator.py, also for files that import numba.cuda.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.source_lines import tagged

# NumPy's types instead of numba's: they do not import numba, and the simulator uses them too
NUMBER: dict[str, Any] = {"float32": np.float32, "int32": np.int32, "int16": np.int16, "float64": np.float64}
# the type of a word by data type: a word holds two int16 cells
WORD: dict[str, Any] = {**NUMBER, "int16": np.int32}
int32: Any = np.int32
uint32: Any = np.uint32
ALIGN16 = 16  # alignment of shared arrays for load4 and store4
# the options of numba.cuda.jit that affect the compiled code
COMPILED = frozenset({"debug", "fastmath", "launch_bounds", "lineinfo", "opt"})


class _Facade:
    """`cuda`: arrays for the host, and numba.cuda for the compiler."""

    @cached_property
    def _numba_type_(self) -> Any:
        return _part("compiler").facade_type()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(_part("cuda_memory"), name)


class _Intrinsic:
    """An intrinsic by name; only the compiler imports its implementation."""

    def __init__(self, name: str):
        self.__name__ = name

    @cached_property
    def _numba_type_(self) -> Any:
        return _part("compiler").intrinsic_type(self.__name__)


class DeviceFunction:
    """A function that kernels call."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]):
        self.py_func, self.targetoptions = tagged(function), options
        self.__name__ = function.__name__

    @cached_property
    def _compiled(self) -> Any:
        return _part("compiler").device_function(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        return self._compiled._numba_type_


class DeviceKernel:
    """A kernel function: `kernel[grid, block, stream](*arguments)` loads it once per list of argument types."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], cached: bool):
        self.py_func, self.targetoptions, self.cached = function, options, cached
        self.__name__ = function.__name__
        self._loaded: dict[int, dict[tuple[Any, ...], Any]] = {}  # for each GPU

    @property
    def overloads(self) -> dict[tuple[Any, ...], Any]:
        """The functions that are loaded on the current GPU: a gpu.LoadedFunction by its argument types."""
        return self._loaded.setdefault(_part("gpu").current_device(), {})

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., None]:
        return _part("gpu").configured(self, *configuration)


def jit(function: Any = None, **options: Any) -> Any:
    """Decorate a kernel, or with device=True a device function, like cuda.jit; compiled kernels are cached on disk."""
    if function is None:
        return lambda function: jit(function, **options)
    if SIMULATED:
        return cuda.jit(function, **options)
    cached = options.pop("cache", True)
    options["lineinfo"] = not options.get("debug")  # line information does not change the instructions
    if options.pop("device", False):
        return DeviceFunction(function, options)
    return DeviceKernel(function, options, cached)


def kernel_of(function: Any) -> Any:
    """Convert a kernel that a user's file has decorated with numba.cuda.jit to a DeviceKernel; return others unchanged."""
    if isinstance(function, DeviceKernel) or not hasattr(function, "targetoptions"):
        return function
    options = {name: value for name, value in function.targetoptions.items() if name in COMPILED and value is not None}
    return DeviceKernel(function.py_func, {**options, "lineinfo": not options.get("debug")}, cached=True)


def host_copy(array: Any, stream: Any) -> np.ndarray:
    """Return a copy of a device array on the host."""
    copied = array.copy_to_host(stream=stream)
    stream.sync()
    return copied


def _part(name: str) -> Any:
    return import_module(f"fwtui_kernels.compiled.{name}")


cuda: Any
if SIMULATED:
    from fwtui_kernels.compiled import simulator as cuda
    from fwtui_kernels.compiled import simulator_intrinsics as _instructions
    from fwtui_kernels.compiled import simulator_memory as _memory

    sys.modules["numba.cuda"] = cuda
else:
    cuda = _Facade()
    _instructions: Any = None
    _memory: Any = None


def _intrinsic(name: str) -> Any:
    return getattr(_instructions, name) if SIMULATED else _Intrinsic(name)


load4, store4, load_words, store_words = map(_intrinsic, ("load4", "store4", "load_words", "store_words"))
copy_async, commit_copies, wait_copies = map(_intrinsic, ("copy_async", "commit_copies", "wait_copies"))
spread, rematerialize, clock, relax_tile = map(_intrinsic, ("spread", "rematerialize", "clock", "relax_tile"))


def _host(name: str) -> Any:
    """Return a function of cuda_memory.py, or its counterpart in simulator_memory.py."""
    return getattr(_memory, name) if SIMULATED else lambda *arguments: getattr(_part("cuda_memory"), name)(*arguments)


pinned, copy_in, copy_back = map(_host, ("pinned", "copy_in", "copy_back"))
