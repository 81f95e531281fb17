"""Numba's njit, for functions that it keeps on the disk: of processes that need the same code at once, one compiles it.

The others wait and load what it has kept. Numba alone lets each compile, and two that compile one function for different
types at the same time may keep the code of one under the types of the other.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import numba

from fwtui_kernels.compiled.cache_files import sealed_function
from fwtui_kernels.compiled.numba_internals import COMPILER_LOCK, FOR_PYTHON

_SOON = 0.02
_numba: Any = numba  # whose types know neither the option that is added here nor `unliteral`


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def made(function: Callable[..., Any]) -> Any:
        folder, uncached = _numba.config.CACHE_DIR, _numba.njit(**{**options, "cache": False}, **FOR_PYTHON)
        if not (folder and options.get("cache")):  # numba would choose a folder that other users may be able to write to
            return uncached(function)
        try:
            dispatcher: Any = _numba.njit(**options, **FOR_PYTHON)(function)
        except RuntimeError:  # numba cannot write to any folder
            return uncached(function)
        if not hasattr(dispatcher, "compile"):  # with NUMBA_DISABLE_JIT
            return dispatcher
        if not Path(dispatcher.stats.cache_path).is_relative_to(folder):
            return uncached(function)
        dispatcher.compile = partial(_compile, dispatcher, dispatcher.compile)
        return dispatcher

    return made


def _compile(dispatcher: Any, compile_: Callable[[Any], Any], signature: tuple[Any, ...]) -> Any:
    # of the threads of a process one compiles at a time anyway, and a lock on a file is the whole process's; none of these
    # functions calls itself, which would give the lock up too early
    function = dispatcher.py_func
    folder, code = Path(dispatcher.stats.cache_path), function.__code__
    name = function.__qualname__.replace("<", "").replace(">", "")  # as numba names its files
    prefix = f"{Path(code.co_filename).stem}.{name}-{code.co_firstlineno}."
    with COMPILER_LOCK, alone(folder / f"{prefix}lock"), sealed_function(folder, prefix):
        # once for all constants of a type, too; so no function here may need one, as an index into a tuple of mixed types does
        return compile_(tuple(map(_numba.types.unliteral, signature)))


@contextmanager
def alone(path: Path, longest: float = 30.0) -> Iterator[None]:
    """In one process at a time; in several where the folder takes no lock, or another process keeps it for `longest` seconds."""
    with ExitStack() as held:
        with suppress(OSError):
            _lock(held.enter_context(path.open("a")), longest)
        yield


def _lock(file: IO[str], longest: float) -> None:
    end = time.monotonic() + longest
    while time.monotonic() < end:
        with suppress(BlockingIOError, PermissionError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_SOON)
