"""Graphs that are larger than the memory of the GPU."""

from __future__ import annotations

from kernels import registry
from kernels.plan import Kernel
from kernels.streaming import out_of_core


def streaming_kernel() -> Kernel:
    """The kernel for a matrix larger than device memory: the first one that streams tiles."""
    return next(kernel for kernel in (*registry().values(), out_of_core.KERNEL) if kernel.streams is not None)
