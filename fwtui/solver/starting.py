"""The request of `fwtui solve`, and a thread that prepares the GPU while the graph is read: one waits for the driver, the
other for files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from msgspec import Struct

from fwtui.experiment.device import DeviceId

# bytes of a file from which it pays: smaller ones are read at once, or their graphs use no GPU
_TEXT, _ARRAYS = 4 << 20, 16 << 20


class Request(Struct, frozen=True, kw_only=True):
    """The request of `fwtui solve` to its child process. Empty text means not requested."""

    file: str
    out: str = ""
    paths: bool = False
    undirected: bool = False
    pairs: str = ""
    source: str = ""
    target: str = ""
    summary: bool = False
    dtype: str = ""
    kernel: str = ""
    device: str = ""
    devices: str = ""
    begun: float | None = None  # time.monotonic() when the command began, in any process


class Start:
    """Prepares a GPU in its own thread; does nothing without a GPU number."""

    def __init__(self, gpu: DeviceId | None):
        self._gpu = gpu
        self._unwanted = Event()
        self._thread = Thread(target=self._work, name="GPU", daemon=True)
        if gpu is not None:
            self._thread.start()

    def wait(self, n: int) -> None:
        """Wait until it is ready, or, if a graph of n vertices needs no GPU, until preparing has stopped."""
        from fwtui.solver.picking import WORTH

        if n < WORTH:
            self._unwanted.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        with suppress(Exception):  # solving will report the reason
            import fwtui.solver.device_graph  # noqa: F401 with numba, which takes as long as everything else
            from fwtui.solver.picking import cuda_engine

            if self._gpu is not None and not self._unwanted.is_set():
                cuda_engine(self._gpu)


def start_gpu(request: Request) -> Start:
    """For a command that is likely to use a GPU, judged by the file's size."""
    least = _ARRAYS if Path(request.file).suffix.lower() in (".npy", ".npz") else _TEXT
    with suppress(OSError, ValueError):  # the reader reports the error
        wanted = DeviceId.parse(request.device or "auto", "cpu")
        if wanted.backend != "cpu" and not request.devices and os.stat(request.file).st_size >= least:
            from fwtui.machine.hardware import driver_present
            from kernels import registry

            kernel = registry().get(request.kernel)
            asked = kernel.backend == "cuda" if kernel is not None else request.kernel in ("", "auto")
            if asked and driver_present():
                return Start(wanted.on("cuda"))
    return Start(None)
