"""Numba's njit with a lock per cached function: if several processes need the same code, one compiles it.

The others wait and load it from the cache. Plain numba lets each process compile, and two processes that compile a function for
different types at the same time may cache the code of one under the types of the other.
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
from fwtui_kernels.regular_file import open_at_once

_POLL_SECONDS = 0.02
_numba: Any = numba  # untyped, because its stubs lack `unliteral` and the option no_cfunc_wrapper


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        folder, uncached = _numba.config.CACHE_DIR, _numba.njit(**{**options, "cache": False}, **FOR_PYTHON)
        if not (folder and options.get("cache")) or _numba.config.DISABLE_JIT:  # numba could choose a folder open to others
            return uncached(function)
        try:
            dispatcher: Any = _numba.njit(**options, **FOR_PYTHON)(function)
        except RuntimeError:  # numba finds no writable folder
            return uncached(function)
        if not Path(dispatcher.stats.cache_path).is_relative_to(folder):
            return uncached(function)
        dispatcher.compile = partial(_compile, dispatcher, dispatcher.compile)
        return dispatcher

    return decorate


inner = partial(njit, no_cpython_wrapper=True)  # for functions that only compiled code calls; a call from Python would crash


def _compile(dispatcher: Any, compile_: Callable[[Any], Any], signature: tuple[Any, ...]) -> Any:
    # a file lock belongs to the process, so COMPILER_LOCK excludes its other threads; no such function is recursive, which would
    # release the file lock too early
    function = dispatcher.py_func
    folder, code = Path(dispatcher.stats.cache_path), function.__code__
    name = function.__qualname__.replace("<", "").replace(">", "")  # numba's file names
    prefix = f"{Path(code.co_filename).stem}.{name}-{code.co_firstlineno}."
    with COMPILER_LOCK, exclusive(folder / f"{prefix}lock"), sealed_function(folder, prefix):
        # compile once for all literals of a type, so no function here may depend on a literal, such as an index of a mixed tuple
        types = tuple(map(_numba.types.unliteral, signature))
        with suppress(OSError):  # the disk is full; numba has compiled the function before it writes the cache file
            return compile_(types)
        return compile_(types)


@contextmanager
def exclusive(path: Path, timeout: float = 30.0) -> Iterator[None]:
    """Hold a file lock during the block. Continue without it if the folder is not writable or after `timeout` seconds."""
    with ExitStack() as held:
        with suppress(OSError):
            _lock(held.enter_context(open(path, "a", opener=open_at_once)), timeout)
        yield


def _lock(file: IO[str], timeout: float) -> None:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        with suppress(BlockingIOError, PermissionError):
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_POLL_SECONDS)
