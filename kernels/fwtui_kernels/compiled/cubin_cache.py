"""The disk cache of cubins, from which a process launches kernels without numba.

A file holds one kernel for one list of argument types and one compute capability. Its name is a digest of everything that affects
the compiled code. The folder is inside numba's cache folder, which changes whenever a kernel source changes.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from fwtui_kernels.compiled import SIMULATED
from fwtui_kernels.compiled.cache_files import replace_file, sealed, unsealed

fallback: Path | None = None  # numba's cache folder if NUMBA_CACHE_DIR is not set
MAX_BYTES = 64 << 20  # size of all files; beyond it the least recently used ones are deleted
_FORM = 2  # version of the file format
_COMPILER = re.compile(r"(numba|llvmlite|numpy|cuda_|nvidia_).*-info")


class NoKey(TypeError):
    """A kernel depends on values that no key can contain, so each process compiles it."""


class CompiledCode(NamedTuple):
    """A function in a cubin."""

    entry: str  # the function's name in the cubin
    cubin: bytes
    cooperative: bool = False  # True if it uses a grid-wide barrier


def folder(numba_s: str) -> Path:
    """Return the folder of cubins in a cache folder of numba."""
    return Path(numba_s, "loaded")


def here() -> Path | None:
    """Return the folder of cubins in NUMBA_CACHE_DIR or else in `fallback`; None if neither is set."""
    numba_s = os.environ.get("NUMBA_CACHE_DIR") or fallback
    return folder(str(numba_s)) if numba_s else None


def some() -> bool:
    """Return True if the cache has a cubin, so that this machine has compiled for a GPU before."""
    place = here()
    with suppress(OSError):
        return not SIMULATED and place is not None and any(os.scandir(place))
    return False


def found_or_compiled(kernel: Any, types: tuple[Any, ...], cc: tuple[int, int]) -> CompiledCode:
    """Return the code of a DeviceKernel for these argument types, from the cache or else compiled."""
    place, name = here() if kernel.cached else None, ""
    if place is not None:
        with suppress(NoKey):
            name = key(kernel.py_func, kernel.targetoptions, types, cc)
    code = load(place, name) if place is not None and name else None
    if code is not None:
        return code
    from fwtui_kernels.compiled.compiler import compiled  # imports numba

    fresh = compiled(kernel.py_func, types, cc, kernel.targetoptions)
    code = CompiledCode(fresh.entry, fresh.cubin, fresh.cooperative)
    if place is not None and name:
        store(place, name, code)
    return code


def key(function: Any, options: Mapping[str, Any], types: Sequence[Any], cc: tuple[int, int]) -> str:
    """Return the key of a kernel with these options, argument types and compute capability.

    Raises NoKey if its closure holds more than numbers, their types, functions and the names of device.py.
    """
    identity = repr((_FORM, _function(function), sorted(options.items()), tuple(types), tuple(cc), compiler_versions()))
    return hashlib.sha256(identity.encode()).hexdigest()


def load(place: Path, name: str) -> CompiledCode | None:
    """Return a cached kernel; None if it is missing or damaged, or if another user could have written it."""
    data = unsealed(place / name, name, private=True)
    if data is None:
        return None
    with suppress(OSError):
        os.utime(place / name)
    entry, _, cubin = data[1:].partition(b"\0")
    return CompiledCode(entry.decode(), cubin, data[:1] == b"1")


def store(place: Path, name: str, code: CompiledCode, max_bytes: int = MAX_BYTES) -> None:
    """Write a kernel to the cache, unless it is already there. Errors are ignored: the next process compiles it again."""
    if load(place, name) is not None:
        return
    data = b"%d" % code.cooperative + code.entry.encode() + b"\0" + code.cubin
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(place / name, sealed(name, data))
        _limit(place, max_bytes)


def _limit(place: Path, max_bytes: int) -> None:
    files = sorted(((file.stat(), file.path) for file in os.scandir(place)), key=lambda file: -file[0].st_mtime_ns)
    used = 0
    for state, path in files:
        used += state.st_size
        if used > max_bytes:
            with suppress(OSError):  # another process may have deleted it
                os.unlink(path)


def _function(function: Any) -> tuple[Any, ...]:
    """Return values that distinguish a function from all other functions of the same sources."""
    plain = getattr(function, "py_func", function)
    code = plain.__code__
    cells = [_value(cell.cell_contents) for cell in plain.__closure__ or ()]
    return plain.__module__, plain.__qualname__, code.co_firstlineno, code.co_code, cells


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.dtype.name, value.item()
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, FunctionType) or hasattr(value, "py_func"):
        return _function(value)
    if type(value).__module__ == "fwtui_kernels.compiled.device":
        return getattr(value, "__name__", "cuda")
    if type(value).__module__.startswith(("numba.core.types", "numba.cuda.types")):
        return str(value)
    raise NoKey(f"a closure holds a {type(value).__name__}")


@cache
def compiler_versions() -> tuple[str, ...]:
    """Return the versions of Python and of the compiling packages, from the names of their metadata folders, which is fast."""
    names: set[str] = set()
    for entry in sys.path:
        with suppress(OSError):
            names.update(filter(_COMPILER.fullmatch, os.listdir(entry or os.curdir)))
    return str(sys.implementation.cache_tag), *sorted(names)
