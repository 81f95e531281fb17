"""A GPU by its driver: devices, streams and events, with the names and the behaviour of numba.cuda.

Whatever uses the same GPU in this process shares its context.
"""

from __future__ import annotations

import threading
from functools import cache
from types import SimpleNamespace
from typing import Any

from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

_ATTRIBUTE = "CU_DEVICE_ATTRIBUTE_"


class CudaError(RuntimeError):
    """The driver refused or failed; a context that failed is lost, so a process that owns one ends after this."""


def checked(result: tuple[Any, ...]) -> Any:
    """The value of a driver call, or CudaError with the driver's own words."""
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(code)
        raise CudaError(f"{code.name}: {text.decode() if text else 'no description'}")
    return values[0] if values else None


class _CudaDevice:
    """Attributes by the driver's names."""

    def __init__(self, index: int):
        self.index = index
        self._handle = checked(driver.cuDeviceGet(index))
        self.name = checked(driver.cuDeviceGetName(256, self._handle)).split(b"\0")[0].strip()
        self.compute_capability = self.COMPUTE_CAPABILITY_MAJOR, self.COMPUTE_CAPABILITY_MINOR
        self._context = checked(driver.cuDevicePrimaryCtxRetain(self._handle))

    def activate(self) -> None:
        """Make it the one of this thread."""
        checked(driver.cuCtxSetCurrent(self._context))

    def __getattr__(self, name: str) -> int:
        return checked(driver.cuDeviceGetAttribute(getattr(driver.CUdevice_attribute, _ATTRIBUTE + name), self._handle))


_device = cache(_CudaDevice)
_thread = threading.local()  # with the thread's own `device`


def select_device(index: int) -> None:
    """Make it this thread's."""
    checked(driver.cuInit(0))
    _thread.device = _device(index)
    _thread.device.activate()


def get_current_device() -> _CudaDevice:
    """This thread's; the first one, if it has selected none."""
    if not hasattr(_thread, "device"):
        select_device(0)
    return _thread.device


def memory_info() -> Any:
    """Bytes that are `free`, and `total`."""
    code, free, total = driver.cuMemGetInfo()
    checked((code,))
    return SimpleNamespace(free=free, total=total)


def toolkit_version() -> tuple[int, int]:
    """Of the CUDA toolkit that compiles here."""
    from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]

    _, major, minor = nvrtc.nvrtcVersion()
    return major, minor


class Stream:
    def __init__(self, handle: int):
        self.handle = handle

    def synchronize(self) -> None:
        checked(driver.cuStreamSynchronize(self.handle))

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class CudaEvent:
    """A point in a stream's work; with `timing` it notes when that is reached."""

    def __init__(self, timing: bool) -> None:
        flags = driver.CUevent_flags
        self._event = checked(driver.cuEventCreate(flags.CU_EVENT_DEFAULT if timing else flags.CU_EVENT_DISABLE_TIMING))

    def record(self, stream: Stream, inside_graph: bool = False) -> None:
        # external: the capturing graph gets a node that records this event each time it runs
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL if inside_graph else 0
        checked(driver.cuEventRecordWithFlags(self._event, stream.handle, int(external)))

    def wait(self, stream: Stream) -> None:
        checked(driver.cuStreamWaitEvent(stream.handle, self._event, 0))

    def synchronize(self) -> None:
        checked(driver.cuEventSynchronize(self._event))

    def elapsed_time(self, later: CudaEvent) -> float:
        """In milliseconds."""
        return checked(driver.cuEventElapsedTime(self._event, later._event))

    def __del__(self) -> None:
        if hasattr(self, "_event"):
            driver.cuEventDestroy(self._event)


DEFAULT = Stream(0)
external_stream = Stream
event = CudaEvent


def stream() -> Stream:
    return Stream(int(checked(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_DEFAULT)))))


def synchronize() -> None:
    checked(driver.cuCtxSynchronize())
