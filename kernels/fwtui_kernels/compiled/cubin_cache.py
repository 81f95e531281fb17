"""Compiled kernels on the disk, as the driver takes them: a process launches them without numba.

A file is one kernel for one list of argument types and one kind of GPU. Its name is a digest of all that decides what numba
compiles; the folder is that of numba's own cache, which its owner replaces when any source of a kernel changes.
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
from fwtui_kernels.compiled.cache_files import sealed, unsealed

fallback: Path | None = None  # numba's folder where the environment names none
MAX_BYTES = 64 << 20  # of all files: those that were not used for longest go
_FORM = 2  # of the files
_COMPILER = re.compile(r"(numba|llvmlite|numpy|cuda_|nvidia_).*-info")


class NoKey(TypeError):
    """A kernel depends on what no key can tell, so it is compiled in each process."""


class CompiledCode(NamedTuple):
    """A function in a cubin."""

    entry: str  # its name there
    cubin: bytes
    cooperative: bool = False  # whether its blocks wait for each other


def folder(numba_s: str) -> Path:
    """Return the folder of the files, in the folder of numba's own cache."""
    return Path(numba_s, "loaded")


def here() -> Path | None:
    """Return the folder in the one that this process's environment names, or in `fallback`; None if there is neither."""
    numba_s = os.environ.get("NUMBA_CACHE_DIR") or fallback
    return folder(str(numba_s)) if numba_s else None


def some() -> bool:
    """Return whether the folder has any file, which tells that this machine has compiled for a GPU before."""
    place = here()
    with suppress(OSError):
        return not SIMULATED and place is not None and any(os.scandir(place))
    return False


def found_or_compiled(kernel: Any, types: tuple[Any, ...], cc: tuple[int, int]) -> CompiledCode:
    """A kernel of fwtui_kernels.compiled.device for arguments of these types, from the disk if it is there."""
    place, name = here() if kernel.cached else None, ""
    if place is not None:
        with suppress(NoKey):
            name = key(kernel.py_func, kernel.targetoptions, types, cc)
    code = load(place, name) if place is not None and name else None
    if code is not None:
        return code
    from fwtui_kernels.compiled.compiler import compiled  # which brings numba

    fresh = compiled(kernel.py_func, types, cc, kernel.targetoptions)
    code = CompiledCode(fresh.entry, fresh.cubin, fresh.cooperative)
    if place is not None and name:
        keep(place, name, code)
    return code


def key(function: Any, options: Mapping[str, Any], types: Sequence[Any], cc: tuple[int, int]) -> str:
    """Return the key of a kernel with these options, for these types of its arguments and that compute capability.

    Raises NoKey if its closure holds more than numbers, their types, functions and the names of device.py.
    """
    identity = repr((_FORM, _function(function), sorted(options.items()), tuple(types), tuple(cc), compiler_versions()))
    return hashlib.sha256(identity.encode()).hexdigest()


def load(place: Path, name: str) -> CompiledCode | None:
    """Return the code; None if there is none, if it is damaged, or if another user could have written it."""
    data = unsealed(place / name, name, private=True)
    if data is None:
        return None
    with suppress(OSError):
        os.utime(place / name)
    entry, _, cubin = data[1:].partition(b"\0")
    return CompiledCode(entry.decode(), cubin, data[:1] == b"1")


def keep(place: Path, name: str, code: CompiledCode, max_bytes: int = MAX_BYTES) -> None:
    """Write it, unless it is there already or cannot be written; then it is compiled again some time."""
    if load(place, name) is not None:
        return
    import tempfile

    data = b"%d" % code.cooperative + code.entry.encode() + b"\0" + code.cubin
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=place)  # readable and writable by this user alone
        try:
            with open(number, "wb") as file:
                file.write(sealed(name, data))
            os.replace(temporary, place / name)
        except OSError:
            os.unlink(temporary)
            raise
        _limit(place, max_bytes)


def _limit(place: Path, max_bytes: int) -> None:
    files = sorted(((file.stat(), file.path) for file in os.scandir(place)), key=lambda file: -file[0].st_mtime_ns)
    used = 0
    for state, path in files:
        used += state.st_size
        if used > max_bytes:
            with suppress(OSError):  # another process does the same
                os.unlink(path)


def _function(function: Any) -> tuple[Any, ...]:
    """Return values that distinguish a function from all others of the same sources."""
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
    raise NoKey(f"no key tells {type(value).__name__}")


@cache
def compiler_versions() -> tuple[str, ...]:
    """Python and the packages that compile, as the folders with their metadata are named: asking for versions takes longer."""
    names: set[str] = set()
    for entry in sys.path:
        with suppress(OSError):
            names.update(filter(_COMPILER.fullmatch, os.listdir(entry or os.curdir)))
    return str(sys.implementation.cache_tag), *sorted(names)
