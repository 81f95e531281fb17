"""The one door to numba.cuda. Kernel files import from here, so that a change of compiler touches this file alone.
Behind it is numba, its simulator, or, where everything is compiled, the driver alone (loaded.py).

Numba's simulator swaps the *module global* `cuda` of a kernel's file while a kernel runs, so the file has to call it that.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fwtui_kernels.compiled import cubin_cache

SIM = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
LOADED = cubin_cache.without_numba
cuda: Any
int32: Any
if LOADED:
    from fwtui_kernels.compiled import loaded as cuda

    int32 = np.int32
else:
    import numba
    from numba import cuda

    int32 = numba.int32
# NumPy's types, not numba's: they are part of numba's disk cache key, and only these pickle alike in every process
NUMBER: dict[str, Any] = {"float32": np.float32, "int32": np.int32, "int16": np.int16}
# contents of a 32-bit register by type: two int16 cells share one
WORD: dict[str, Any] = {"float32": np.float32, "int32": np.int32, "int16": np.int32}
uint32: Any = np.uint32
# alignment of shared arrays for load4 and store4; the simulator ignores it
ALIGN16 = None if SIM else 16
# whether what is compiled from now on has the lines of its source, for tools that tell them; it is not cached then
line_info = False
# the options that the simulator's jit() takes; it raises on all others
_SIMULATED = frozenset({"device", "fastmath", "inline", "opt", "debug"})


def jit(function: Any = None, **options: Any) -> Any:
    """cuda.jit with a disk cache, and without options unknown to the simulator."""
    if function is None:
        return lambda function: jit(function, **options)
    options = {"cache": True, **options}
    if line_info:
        options |= {"cache": False, "lineinfo": True}
    if SIM:
        options = {name: value for name, value in options.items() if name in _SIMULATED}
    elif "launch_bounds" in options:
        # numba's disk cache distinguishes functions by name, code and closure, but not by launch bounds
        bounds = options["launch_bounds"]
        function.__qualname__ += "".join(f"_{bound}" for bound in (bounds if isinstance(bounds, tuple) else (bounds,)))
    if LOADED:
        return function if options.get("device") else cuda.Kernel(function, options)
    made = cuda.jit(**options)(function)
    if not SIM and options["cache"] and not options.get("device"):
        from fwtui_kernels.compiled.kernel_cache import KernelCache

        made._cache = KernelCache(made.py_func, options)
    return made


def host_copy(array: Any, stream: Any) -> np.ndarray:
    """A device array on the host."""
    copied = array.copy_to_host(stream=stream)
    stream.synchronize()
    return copied


if SIM:
    from fwtui_kernels.compiled import simulator as cuda_intrinsics
    from fwtui_kernels.compiled import simulator as rectangles
    from fwtui_kernels.compiled.simulator_threads import take_turns

    cuda_intrinsics.find_shared_arrays()
    take_turns()
elif LOADED:
    from fwtui_kernels.compiled import rectangles
    from fwtui_kernels.compiled import simulator as cuda_intrinsics  # names for what is compiled already
else:
    from fwtui_kernels.compiled import cuda_intrinsics, rectangles
load4: Any = cuda_intrinsics.load4
store4: Any = cuda_intrinsics.store4
load_words: Any = cuda_intrinsics.load_words
store_words: Any = cuda_intrinsics.store_words
spread: Any = cuda_intrinsics.spread
copy_async: Any = cuda_intrinsics.copy_async
commit_copies: Any = cuda_intrinsics.commit_copies
wait_copies: Any = cuda_intrinsics.wait_copies
anew: Any = cuda_intrinsics.anew
clock: Any = cuda_intrinsics.clock
relax_tile: Any = cuda_intrinsics.relax_tile
pinned: Any = rectangles.pinned
copy_in: Any = rectangles.copy_in
copy_back: Any = rectangles.copy_back
# (to, source, bytes, stream): managed arrays lack what their own copy methods ask for
copy_on_device: Any = None if SIM or LOADED else cuda.cudadrv.driver.device_to_device
