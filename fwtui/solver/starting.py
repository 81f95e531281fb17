"""A thread that prepares the GPU for `fwtui solve` while the other one imports the program and reads files."""

from __future__ import annotations

import argparse
import ctypes
import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Event, Thread

from fwtui.experiment.device import DeviceId

# bytes of a file from which it pays: smaller ones are read at once, or their graphs use no GPU
_TEXT, _ARRAYS = 4 << 20, 16 << 20


class GpuStart:
    """Prepares a GPU in its own thread; does nothing without a GPU number.

    The driver makes the context while this process imports the rest of the program; then it is the turn of what launches
    kernels, and of numba's import, if no kernel was compiled before.
    """

    def __init__(self, gpu: DeviceId | None):
        self.gpu = gpu
        self._imported = Event()
        self._unwanted = Event()
        self._thread = Thread(target=self._work, name="GPU", daemon=True)
        if gpu is not None:
            self._thread.start()

    def go_on(self) -> None:
        """Say that this thread has imported what it needs."""
        self._imported.set()

    def wait(self, n: int) -> None:
        """Wait until it is ready, or, if a graph of n vertices needs no GPU, until preparing has stopped."""
        from fwtui.solver.costs import WORTH

        if n < WORTH:
            self._unwanted.set()
        self.go_on()
        if self.gpu is not None and n >= WORTH:
            from fwtui.machine.hardware import driver_present

            if driver_present():
                _import_what_launches()  # while it still makes the context
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        if self.gpu is None:
            return
        with suppress(OSError, AttributeError):  # solving will say what is wrong with the driver
            _open_context(self.gpu.index)
        self._imported.wait()
        from fwtui.machine.hardware import driver_present
        from fwtui_kernels.compiled import cubin_cache

        if self._unwanted.is_set() or cubin_cache.some() or not driver_present():
            return
        with suppress(Exception):  # solving will report the reason
            import_module("fwtui_kernels.compiled.compiler")  # with numba, which takes as long as everything else
            from fwtui.solver.choose import cuda_engine

            if not self._unwanted.is_set():
                cuda_engine(self.gpu)


def _import_what_launches() -> None:
    from fwtui_kernels import registry

    for module in ("fwtui.engine.cuda_engine", "fwtui.solver.device_graph", "fwtui_kernels.parts.products"):
        import_module(module)
    registry()


def _open_context(gpu: int) -> None:
    """Make the context that all users of a GPU share in a process, by the driver itself: no package is imported for it."""
    driver = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), gpu) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def start_gpu(args: argparse.Namespace) -> GpuStart:
    """For a command that is likely to use a GPU, judged by the file's size."""
    least = _ARRAYS if Path(args.graph).suffix.lower() in (".npy", ".npz") else _TEXT
    with suppress(OSError, ValueError):  # the reader reports the error
        device_id = DeviceId.parse(args.device or "auto", "cpu")
        large = device_id.backend != "cpu" and not args.devices and os.stat(args.graph).st_size >= least
        if large and (args.kernel in ("", "auto") or _on_gpu(args.kernel)):
            return GpuStart(device_id.on("cuda"))
    return GpuStart(None)


def _on_gpu(kernel: str) -> bool:
    from fwtui_kernels import registry

    kernel_found = registry().get(kernel)
    return kernel_found is not None and kernel_found.backend == "cuda"
