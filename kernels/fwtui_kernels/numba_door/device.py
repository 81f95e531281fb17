"""The one door to numba.cuda. Kernel files import from here inside build(), so that a change of compiler touches this file alone.
Behind it is numba, its simulator, or, where everything is compiled, the driver alone (loaded.py).

Numba's simulator swaps the *module global* `cuda` of a kernel's file while a kernel runs; that is why build() begins
with `global cuda`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fwtui_kernels.numba_door import kept_code

SIM = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
LOADED = kept_code.without_numba
cuda: Any
int32: Any
if LOADED:
    from fwtui_kernels.numba_door import loaded as cuda

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
        from fwtui_kernels.numba_door.kernel_cache import KernelCache

        made._cache = KernelCache(made.py_func, options)
    return made


def host_copy(array: Any, stream: Any) -> np.ndarray:
    """A device array on the host."""
    copied = array.copy_to_host(stream=stream)
    stream.synchronize()
    return copied


if SIM:
    from fwtui_kernels.numba_door import simulator as minplus
    from fwtui_kernels.numba_door import simulator as rectangles
    from fwtui_kernels.numba_door.block_threads import take_turns

    minplus.find_shared_arrays()
    take_turns()
elif LOADED:
    from fwtui_kernels.numba_door import rectangles
    from fwtui_kernels.numba_door import simulator as minplus  # names for what is compiled already
else:
    from fwtui_kernels.numba_door import minplus, rectangles
load4: Any = minplus.load4
store4: Any = minplus.store4
load_words: Any = minplus.load_words
store_words: Any = minplus.store_words
spread: Any = minplus.spread
copy_async: Any = minplus.copy_async
commit_copies: Any = minplus.commit_copies
wait_copies: Any = minplus.wait_copies
anew: Any = minplus.anew
clock: Any = minplus.clock
relax_tile: Any = minplus.relax_tile
pinned: Any = rectangles.pinned
copy_in: Any = rectangles.copy_in
copy_back: Any = rectangles.copy_back
# (to, source, bytes, stream): managed arrays lack what their own copy methods ask for
copy_on_device: Any = None if SIM or LOADED else cuda.cudadrv.driver.device_to_device
