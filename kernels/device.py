"""The one door to numba.cuda. Kernel files import from here inside build(), so that a change of compiler touches this file alone.

Numba's simulator swaps the *module global* `cuda` of a kernel's file while a kernel runs; that is why build() begins
with `global cuda`.
"""

from __future__ import annotations

import os
from typing import Any

import numba
from numba import cuda as _cuda

SIM = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
cuda: Any = _cuda
NUMBER: dict[str, Any] = {"float32": numba.float32, "int32": numba.int32, "int16": numba.int16}
int32: Any = numba.int32
# the options that the simulator's jit() takes; it raises on all others
_SIMULATED = frozenset({"device", "fastmath", "inline", "opt", "cache", "debug"})


def jit(function: Any = None, **options: Any) -> Any:
    """cuda.jit without the options that the simulator does not know."""
    if SIM:
        options = {name: value for name, value in options.items() if name in _SIMULATED}
    return cuda.jit(**options)(function) if function is not None else cuda.jit(**options)


if SIM:
    from kernels.simulator import mend_shared_arrays

    mend_shared_arrays()
