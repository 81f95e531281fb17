"""Graphs that are larger than the memory of the GPU."""

from __future__ import annotations

from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel
from fwtui_kernels.streaming import out_of_core


def streaming_kernel() -> Kernel:
    """The kernel for a matrix larger than device memory: the first one that streams tiles."""
    return next(kernel for kernel in (*registry().values(), out_of_core.KERNEL) if kernel.streams is not None)
