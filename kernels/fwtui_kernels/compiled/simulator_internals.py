"""What the program needs of Numba's simulator, which documents none of it: each member is a row of NEEDS.

Importing this checks all of them, before any is taken: whatever uses one imports it from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fwtui_kernels.needs import Need, lacking, member, takes

_SIMULATOR = "numba.cuda.simulator"
_ARRAY = ("self", "shape", "dtype")  # what shared.array takes


def _in_kernels(path: str) -> Any:
    return member(_SIMULATOR, f"kernelapi.{path}")


def _has_manager() -> bool:
    manager = member(_SIMULATOR, "kernel.BlockManager")
    return takes(manager, "f", "grid_dim", "block_dim", "debug") and takes(manager.run, "self", "grid_point", "args")


def _has_arrays() -> bool:
    return hasattr(member(f"{_SIMULATOR}.cudadrv", "devicearray.FakeWithinKernelCUDAArray"), "__getitem__")


NEEDS = (
    Need("kernel.BlockManager", "the threads of a block cannot take turns", _has_manager),
    Need("kernelapi.threading", "a thread cannot be found out", lambda: bool(_in_kernels("threading"))),
    Need("FakeCUDAShared.array", "two threads may get two arrays", lambda: takes(_in_kernels("FakeCUDAShared.array"), *_ARRAY)),
    Need("kernelapi.Dim3", "a thread has no place in its block", lambda: takes(_in_kernels("Dim3"), "x", "y", "z")),
    Need(
        "kernelapi.FakeCUDAModule", "what only a GPU has is not told from a mistake", lambda: bool(_in_kernels("FakeCUDAModule"))
    ),
    Need("devicearray.FakeWithinKernelCUDAArray", "no array is looked at for races", _has_arrays),
)


def check() -> None:
    """Raises ImportError, naming the first member that the installed simulator lacks."""
    if sentence := lacking("Numba's simulator here", NEEDS, "numba-cuda>=0.30,<0.31"):
        raise ImportError(sentence)


check()
kernel: Any = import_module(f"{_SIMULATOR}.kernel")
kernelapi: Any = import_module(f"{_SIMULATOR}.kernelapi")
ArrayInKernel: Any = member(f"{_SIMULATOR}.cudadrv", "devicearray.FakeWithinKernelCUDAArray")
