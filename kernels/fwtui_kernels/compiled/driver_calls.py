"""Calls of the CUDA driver that cuda.core 1.2 has no public function for. Everything else goes through cuda.core."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs


class CudaError(RuntimeError):
    """An error that the driver reports. The context is lost, so the process that owns it ends."""


def _checked(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a driver call. Raises CudaError with the driver's own description."""
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(code)
        raise CudaError(f"{code.name}: {text.decode() if text else 'no description'}")
    return tuple(values)


def memory_sizes() -> tuple[int, int]:
    """Return the free and the total bytes of the current device.

    cuda.core reads them from NVML, which also counts as free what this process cannot allocate.
    """
    free, total = _checked(driver.cuMemGetInfo())
    return free, total


def toolkit_version() -> tuple[int, int]:
    """Return the version of the CUDA toolkit that compiles here. cuda.core reports only its own version and the driver's."""
    from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]

    _, major, minor = nvrtc.nvrtcVersion()
    return major, minor


def most_urgent_priority() -> int:
    """Return the lowest priority number of a stream on the current device. cuda.core only refuses lower ones."""
    _, most_urgent = _checked(driver.cuCtxGetStreamPriorityRange())
    return most_urgent


def record_at_each_launch(event: Any, stream: Any) -> None:
    """Add a node to the graph that `stream` captures: it records the event each time the graph runs.

    cuda.core's Stream.record makes the event a dependency inside the capture, which then has no time.
    """
    external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
    _checked(driver.cuEventRecordWithFlags(event.handle, stream.handle, int(external)))


def allow_dynamic_shared_memory(kernel: Any, size: int, device: int) -> None:
    """Let each block of a kernel have `size` bytes of dynamic shared memory. cuda.core only reads this attribute."""
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _checked(driver.cuKernelSetAttribute(attribute, size, kernel.handle, device))


def pin(matrix: np.ndarray) -> bool:
    """Pin an existing host array, if the system can. cuda.core only allocates pinned memory."""
    return driver.cuMemHostRegister(matrix.ctypes.data, matrix.nbytes, 0)[0] == driver.CUresult.CUDA_SUCCESS


def unpin(address: int) -> None:
    driver.cuMemHostUnregister(address)


def allocate_managed(size: int) -> int:
    """Return the address of managed memory. cuda.core allocates it from pools, which drivers before CUDA 13 do not have."""
    (address,) = _checked(driver.cuMemAllocManaged(size, int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)))
    return int(address)


def free_managed(address: int) -> None:
    driver.cuMemFree(address)


def copy_rectangle(here: np.ndarray, address: int, pitch: int, stream: Any, back: bool) -> None:
    """Copy a rectangle of host memory to rows of device memory `pitch` bytes apart, or `back`; asynchronous if it is pinned.

    cuda.core copies one range of bytes after the other.
    """
    host, device = ("dst", "src") if back else ("src", "dst")
    copy = driver.CUDA_MEMCPY2D()
    copy.WidthInBytes, copy.Height = here.shape[1] * here.itemsize, here.shape[0]
    for end, kind, at, apart in ((host, "Host", here.ctypes.data, here.strides[0]), (device, "Device", address, pitch)):
        setattr(copy, f"{end}MemoryType", getattr(driver.CUmemorytype, f"CU_MEMORYTYPE_{kind.upper()}"))
        setattr(copy, f"{end}{kind}", at)
        setattr(copy, f"{end}Pitch", apart)
    _checked(driver.cuMemcpy2DAsync(copy, stream.handle))


def start_profiler() -> None:
    """Begin the range of launches that an attached profiler measures. cuda.core has no profiler control."""
    _checked(driver.cuProfilerStart())


def stop_profiler() -> None:
    _checked(driver.cuProfilerStop())
