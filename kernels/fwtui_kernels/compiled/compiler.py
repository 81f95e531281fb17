"""The adapter to numba-cuda, which compiles a kernel to a cubin, also for a GPU that is not in this machine.

Numba reads the attribute `_numba_type_` of any object, which gives the objects of fwtui_kernels.compiled.device their types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

from cuda import core, pathfinder

from fwtui_kernels.compiled import cuda_intrinsics
from fwtui_kernels.compiled.device import COMPILED
from fwtui_kernels.compiled.ptxas import KernelUse, used_in
from fwtui_kernels.needs import lacking, member, member_needed

ARCHITECTURE_SPECIFIC = (9, 0)  # newer GPUs get architecture-specific code (sm_90a), like from numba
_DEVICE_OPTIONS = frozenset({"inline", "lineinfo"})
_GRID_BARRIER = "cudaCG"  # prefix of the symbols in the device runtime that a grid-wide barrier needs
# NVVM 13.0 fails with this error on correct functions with line information that copy integers from shared to local arrays
_LINES_FAIL = "Symbol name with unsupported characters"
_ARRAY = re.compile(r"array\((\w+), (\d+)d, (\w)\)")
_toolkit: Any = core
# untyped, because the stubs describe the numba.cuda that numba-cuda replaces
cuda: Any = import_module("numba.cuda")
types: Any = cuda.types
_NO_INSTRUCTIONS = "kernels could not use intrinsics"
# undocumented members of numba-cuda
NEEDS = (
    member_needed("numba.cuda", "dispatcher.get_current_device", "it compiles for another GPU"),
    member_needed("numba.cuda", "descriptor.cuda_target", _NO_INSTRUCTIONS),
    member_needed("numba.cuda", "descriptor.CUDATarget.typing_context", _NO_INSTRUCTIONS),
    member_needed("numba.cuda", "types.Module", "kernels could not use cuda.grid"),
)


def check() -> None:
    """Raise ImportError with the first member that the installed numba-cuda lacks."""
    if sentence := lacking("numba-cuda here", NEEDS, "numba-cuda>=0.30.2,<0.31"):
        raise ImportError(sentence)


check()
dispatcher: Any = import_module("numba.cuda.dispatcher")
cuda_target: Any = member("numba.cuda", "descriptor.cuda_target")


class CompiledKernel(NamedTuple):
    """A compiled kernel."""

    cubin: bytes
    entry: str  # the function's name in the cubin
    cooperative: bool  # True if it uses a grid-wide barrier, so that all blocks must be resident
    used: KernelUse
    ptx: Callable[[], str]  # result of another compilation


def compiled(
    function: Any, arguments: Sequence[Any], cc: tuple[int, int], options: Mapping[str, Any] | None = None
) -> CompiledKernel:
    """Compile a kernel for these argument types, which are numba's types or the names of fwtui_kernels.compiled.gpu."""
    compile_options = {name: value for name, value in (options or {}).items() if name in COMPILED}
    arch = f"sm_{cc[0]}{cc[1]}{'a' if cc >= ARCHITECTURE_SPECIFIC else ''}"

    def unlinked_module() -> Any:
        return _toolkit.ObjectCode.from_ltoir(unlinked(function, arguments, cc, compile_options))

    def linked(kind: str, **more: Any) -> tuple[bytes, str]:
        # no_cache, because a cached result has no log, and the log has the registers and spills
        link_options = {"link_time_optimization": True, "lineinfo": compile_options.get("lineinfo"), "no_cache": True, **more}
        linking = _toolkit.Linker(*modules, options=_toolkit.LinkerOptions(arch=arch, **link_options))
        return bytes(linking.link(kind).code), linking.get_info_log()

    modules = [unlinked_module()]
    while True:
        try:
            cubin, log = linked("cubin", ptxas_options=["-v"])
            break
        except Exception as error:
            if _GRID_BARRIER in str(error) and len(modules) == 1:
                modules.append(_toolkit.ObjectCode.from_library(pathfinder.find_static_lib("cudadevrt")))
            elif _LINES_FAIL in str(error) and compile_options.pop("lineinfo", False):
                modules = [unlinked_module(), *modules[1:]]
            else:
                raise
    entry = re.search(r"Compiling entry function '([^']+)'", log)
    if entry is None:
        raise RuntimeError(f"the log of the linker names no function: {log.strip()[:200]}")

    return CompiledKernel(cubin, entry[1], len(modules) > 1, used_in(log, entry[1]), lambda: linked("ptx", ptx=True)[0].decode())


def unlinked(function: Any, arguments: Sequence[Any], cc: tuple[int, int], options: Mapping[str, Any] | None = None) -> bytes:
    """Compile a kernel with numba to LTO-IR, without linking it."""
    with _compiling_for(cc):
        kinds = tuple(map(numba_type, arguments))
        return cuda.compile(function, kinds, cc=cc, device=False, abi="numba", output="ltoir", **(options or {}))[0]


def numba_type(argument: Any) -> Any:
    """Return numba's type for a name of fwtui_kernels.compiled.gpu: a scalar, an array, or a named tuple's class and parts."""
    if isinstance(argument, str):
        array = _ARRAY.fullmatch(argument)
        if array is None:
            return types.boolean if argument == "bool" else getattr(types, argument)
        return types.Array(getattr(types, array[1]), int(array[2]), array[3])
    if isinstance(argument, tuple):
        kind, parts = argument
        return types.NamedTuple([numba_type(part) for part in parts], kind)
    return argument


def facade_type() -> Any:
    """Return the type that makes numba treat the facade of device.py as numba.cuda."""
    return types.Module(cuda)


def intrinsic_type(name: str) -> Any:
    """Return the type that makes numba treat an intrinsic of device.py as the implementation of that name."""
    return cuda_target.typing_context.resolve_value_type(getattr(cuda_intrinsics, name))


def device_function(function: Any, options: Mapping[str, Any]) -> Any:
    """Return numba's dispatcher of a device function. The caller must hold it, because its type refers to it weakly."""
    return cuda.jit(device=True, **{name: value for name, value in options.items() if name in _DEVICE_OPTIONS})(function)


@contextmanager
def _compiling_for(cc: tuple[int, int]) -> Iterator[None]:
    """Make numba compile device functions for this compute capability instead of that of the current GPU."""
    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    try:
        yield
    finally:
        dispatcher.get_current_device = before
