"""Numba's disk cache of CUDA kernels, but a kernel that is in it is loaded without preparing the compiler, which takes 0.4 s.

What it has is also kept for processes without numba (cubin_cache.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numba
from numba.cuda.cudadrv import devices
from numba.cuda.dispatcher import CUDACache

from fwtui_kernels.compiled import cubin_cache


class _Resting:
    """The compiler's target, left as it is: loading needs only to know for which GPU. Compiling itself prepares it."""

    def __init__(self, target: Any):
        self.codegen = target.codegen

    def refresh(self) -> None:
        pass


class KernelCache(CUDACache):
    """What is damaged is compiled again and replaced."""

    def __init__(self, function: Any, options: Mapping[str, Any]):
        super().__init__(function)
        self._options = options
        # without a folder of its own numba caches beside the sources
        folder = numba.config.CACHE_DIR  # type: ignore[attr-defined]
        self._place = cubin_cache.folder(folder) if folder else None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            found = super().load_overload(sig, _Resting(target_context))
        except Exception:  # whatever unpickling a damaged file raises
            with suppress(OSError):
                self.flush()
            return None
        if found is not None:
            self._keep(found)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        super().save_overload(sig, data)
        self._keep(data)

    def key(self, types: Any, cc: tuple[int, int]) -> str:
        """Of this kernel for numba's types of its arguments, as in cubin_cache."""
        return cubin_cache.key(self._py_func, self._options, list(map(str, types)), cc)

    def _keep(self, kernel: Any) -> None:
        # what takes more than a plain launch is left to numba
        if self._place is None or kernel.cooperative or kernel.launch_config_sensitive or kernel.extensions:
            return
        with suppress(cubin_cache.NotKept):
            name = self.key(kernel.argument_types, devices.get_context().device.compute_capability)
            cubin_cache.keep(self._place, name, cubin_cache.Code(kernel.entry_name, kernel.library.get_cubin().code))
