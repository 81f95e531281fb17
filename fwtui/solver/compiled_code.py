"""Compiled code inside a caller's process: one thread at a time, with this program's cache folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

import numpy as np

from fwtui.common.environment import check_threads, code_cache
from fwtui.engine.engine import Engine, one_of_each_op
from fwtui.solver.call import Clock
from fwtui_kernels.compiled import SIMULATED, cubin_cache
from fwtui_kernels.plan import Buffers, Kernel, Program, Shape, Step

THREADS = 4 if SIMULATED else 256  # per block, a power of two; the simulator runs one after another
BLOCKS = 1024  # at most, if blocks stride over rows
_MAX_PROGRAMS = 8  # programs that are cached for the next graph of the same size
_programs: dict[tuple[str, Shape, Engine], tuple[Program, list[Step]]] = {}
_one_at_a_time = RLock()  # numba's simplest threading layer does not support two callers
_layers_before_fork: set[str] = set()


def _after_fork() -> None:
    """Record the threading layer that numba used before the fork, and replace a lock that a lost thread may hold."""
    global _one_at_a_time
    _one_at_a_time = RLock()
    numba = sys.modules.get("numba")
    with suppress(ValueError, AttributeError):  # there were no threads yet, or numba is being imported
        if numba is not None:
            _layers_before_fork.add(numba.threading_layer())


os.register_at_fork(after_in_child=_after_fork)


def threads_lost() -> bool:
    """Return whether numba's threads would end this process: OpenMP does not work after a fork."""
    return "omp" in _layers_before_fork


@contextmanager
def compiled(backend: str = "cpu") -> Iterator[None]:
    """Compile functions that are decorated or launched in the block, even if the caller has disabled numba's compiler.

    They are cached in this program's folder, unless the caller named another. A GPU's kernels import numba only if one of them
    is missing in the cache. Raises Refused for an invalid NUMBA_NUM_THREADS.
    """
    check_threads()
    with _one_at_a_time:
        named = os.environ.get("NUMBA_CACHE_DIR")
        if named and backend != "cpu":
            yield
            return
        cubin_cache.fallback = None if named else code_cache().folder
        folder = named or str(cubin_cache.fallback or "")
        if backend != "cpu" and "numba" not in sys.modules:
            os.environ["NUMBA_CACHE_DIR"] = folder  # for a numba that is imported within
            try:
                yield
            finally:
                del os.environ["NUMBA_CACHE_DIR"]
                if (numba := sys.modules.get("numba")) is not None:
                    numba.config.CACHE_DIR = ""
            return
        import numba

        config: Any = numba.config  # pyright: ignore[reportPrivateImportUsage]  # documented for all users
        before = config.CACHE_DIR, config.DISABLE_JIT
        config.CACHE_DIR, config.DISABLE_JIT = config.CACHE_DIR or folder, 0
        try:
            yield
        finally:
            config.CACHE_DIR, config.DISABLE_JIT = before


def ready_program(kernel: Kernel, shape: Shape, engine: Engine, clock: Clock) -> tuple[Program, list[Step], Buffers]:
    """Return the compiled program, its plan and new buffers. Programs of earlier graphs are reused."""
    key = kernel.id, shape, engine
    program, plan = _programs.get(key) or (engine.build(kernel, shape), list(kernel.plan(shape, False)))
    clock.lap("compile" if kernel.compiles else "set-up")  # without compiling, building imports a library
    buffers = program.allocate()
    clock.lap("allocate")
    if kernel.compiles and key not in _programs:
        program.compile(one_of_each_op(plan), buffers, engine.stream)
        engine.synchronize()
        if not engine.ranks and shape.order is None:  # neither ranks nor the order of one graph's vertices come again
            while len(_programs) >= _MAX_PROGRAMS:
                del _programs[next(iter(_programs))]
            _programs[key] = program, plan
        clock.lap("compile")
    return program, plan, buffers


def launch(function: Any, grid: int | tuple[int, int], stream: Any, *arguments: Any) -> None:
    """Launch the function on that many blocks, after compiling or loading it for these types if necessary."""
    compiled_before, begin = len(getattr(function, "overloads", ())), time.perf_counter()
    function[grid, THREADS, stream](*arguments)
    if len(getattr(function, "overloads", ())) > compiled_before:
        Clock.compiling += time.perf_counter() - begin


def on_device(array: Any, engine: Engine) -> Any:
    """Return a host array copied to the device, and anything else unchanged."""
    if not isinstance(array, np.ndarray):
        return array
    from fwtui_kernels.compiled.device import cuda

    return cuda.to_device(array, stream=engine.stream)


def on_host(array: Any, engine: Engine) -> np.ndarray:
    """Return a device array copied to the host, and anything else unchanged."""
    if isinstance(array, np.ndarray):
        return array
    from fwtui_kernels.compiled.device import host_copy

    return host_copy(array, engine.stream)
