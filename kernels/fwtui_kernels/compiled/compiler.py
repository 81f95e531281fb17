"""Numba-cuda, which only compiles here: a kernel to a cubin, for a GPU that need not be in this machine.

It meets what fwtui_kernels.compiled.device has in place of numba.cuda by their `_numba_type_`, for which numba asks any object.
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

ARCHITECTURE_SPECIFIC = (9, 0)  # from this one on a cubin is for sm_90a and the like, as numba itself asks for
_DEVICE_OPTIONS = frozenset({"inline", "lineinfo"})
_GRID_BARRIER = "cudaCG"  # how the names begin that only the library of a cooperative launch defines
# with line information NVVM 13.0 fails so on correct functions that copy integers from shared memory into a local array
_LINES_FAIL = "Symbol name with unsupported characters"
_ARRAY = re.compile(r"array\((\w+), (\d+)d, (\w)\)")
_toolkit: Any = core
# without the types of numba's own numba.cuda, which numba-cuda replaces
cuda: Any = import_module("numba.cuda")
types: Any = cuda.types
_NO_INSTRUCTIONS = "a kernel could use no instruction that Python has no words for"
# of numba-cuda, which documents none of them
NEEDS = (
    member_needed("numba.cuda", "dispatcher.get_current_device", "it compiles for another GPU"),
    member_needed("numba.cuda", "descriptor.cuda_target", _NO_INSTRUCTIONS),
    member_needed("numba.cuda", "descriptor.CUDATarget.typing_context", _NO_INSTRUCTIONS),
    member_needed("numba.cuda", "types.Module", "a kernel could not say cuda.grid"),
)


def check() -> None:
    """Raises ImportError, naming the first member that the installed numba-cuda lacks."""
    if sentence := lacking("numba-cuda here", NEEDS, "numba-cuda>=0.30,<0.31"):
        raise ImportError(sentence)


check()
dispatcher: Any = import_module("numba.cuda.dispatcher")
cuda_target: Any = member("numba.cuda", "descriptor.cuda_target")


class CompiledKernel(NamedTuple):
    """A kernel for a GPU."""

    cubin: bytes
    entry: str  # the function's name in it
    cooperative: bool  # whether its blocks wait for each other, so that all must be there at a time
    used: KernelUse
    ptx: Callable[[], str]  # from another compilation


def compiled(
    function: Any, arguments: Sequence[Any], cc: tuple[int, int], options: Mapping[str, Any] | None = None
) -> CompiledKernel:
    """A kernel for arguments of these types: numba's own, or as fwtui_kernels.compiled.gpu names them."""
    compile_options = {name: value for name, value in (options or {}).items() if name in COMPILED}
    arch = f"sm_{cc[0]}{cc[1]}{'a' if cc >= ARCHITECTURE_SPECIFIC else ''}"

    def unlinked_module() -> Any:
        return _toolkit.ObjectCode.from_ltoir(unlinked(function, arguments, cc, compile_options))

    def linked(kind: str, **more: Any) -> tuple[bytes, str]:
        # what comes from the linker's cache has no log, which is where registers and spills are
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
        raise RuntimeError(f"the linker tells no function's name: {log.strip()[:200]}")

    return CompiledKernel(cubin, entry[1], len(modules) > 1, used_in(log, entry[1]), lambda: linked("ptx", ptx=True)[0].decode())


def unlinked(function: Any, arguments: Sequence[Any], cc: tuple[int, int], options: Mapping[str, Any] | None = None) -> bytes:
    """The kernel before it is linked, as LTO-IR: what numba itself makes of it."""
    with _compiling_for(cc):
        kinds = tuple(map(numba_type, arguments))
        return cuda.compile(function, kinds, cc=cc, device=False, abi="numba", output="ltoir", **(options or {}))[0]


def numba_type(argument: Any) -> Any:
    """Numba's type for what fwtui_kernels.compiled.gpu calls one: the name of a number or an array, or a named tuple's class and
    parts.
    """
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
    """Return the type by which numba takes the facade of device.py for numba.cuda."""
    return types.Module(cuda)


def intrinsic_type(name: str) -> Any:
    """Return the type by which numba takes an intrinsic of device.py for the one of that name."""
    return cuda_target.typing_context.resolve_value_type(getattr(cuda_intrinsics, name))


def device_function(function: Any, options: Mapping[str, Any]) -> Any:
    """Return numba's dispatcher of a function that kernels call. Keep it: its type does not outlive it."""
    return cuda.jit(device=True, **{name: value for name, value in options.items() if name in _DEVICE_OPTIONS})(function)


@contextmanager
def _compiling_for(cc: tuple[int, int]) -> Iterator[None]:
    """Numba compiles the functions that a kernel calls for the GPU that is in use; that is this one, wherever it is."""
    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    try:
        yield
    finally:
        dispatcher.get_current_device = before
