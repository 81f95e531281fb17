"""Driver calls without a public function in cuda.core 1.2. Everything else goes through cuda.core."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs


class CudaError(RuntimeError):
    """A driver error. It invalidates the context, so the process that owns the context must end."""


def _checked(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a driver call. Raises CudaError with the driver's description."""
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(code)
        raise CudaError(f"{code.name}: {text.decode() if text else 'no description'}")
    return tuple(values)


def memory_sizes() -> tuple[int, int]:
    """Return the free and the total bytes of the current device.

    cuda.core reads them from NVML, whose free bytes include memory that this process cannot allocate.
    """
    free, total = _checked(driver.cuMemGetInfo())
    return free, total


def toolkit_version() -> tuple[int, int]:
    """Return the version of NVRTC. cuda.core reports only its version and the driver's."""
    from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]

    _, major, minor = nvrtc.nvrtcVersion()
    return major, minor


def most_urgent_priority() -> int:
    """Return the lowest (most urgent) stream priority of the current device. cuda.core only rejects lower ones."""
    _, most_urgent = _checked(driver.cuCtxGetStreamPriorityRange())
    return most_urgent


def record_at_each_launch(event: Any, stream: Any) -> None:
    """Add a node to the graph that `stream` captures, which records the event each time the graph runs.

    In a capture, cuda.core's Stream.record only makes the event a dependency, without a time.
    """
    external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
    _checked(driver.cuEventRecordWithFlags(event.handle, stream.handle, int(external)))


def allow_dynamic_shared_memory(kernel: Any, size: int, device: int) -> None:
    """Allow a kernel `size` bytes of dynamic shared memory per block. cuda.core only reads this attribute."""
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    _checked(driver.cuKernelSetAttribute(attribute, size, kernel.handle, device))


def pin(matrix: np.ndarray) -> bool:
    """Pin an existing host array; return False if the system cannot. cuda.core only allocates pinned memory."""
    return driver.cuMemHostRegister(matrix.ctypes.data, matrix.nbytes, 0)[0] == driver.CUresult.CUDA_SUCCESS


def unpin(address: int) -> None:
    driver.cuMemHostUnregister(address)


def allocate_managed(size: int) -> int:
    """Allocate managed memory and return its address. cuda.core allocates it from pools, which need a CUDA 13 driver."""
    (address,) = _checked(driver.cuMemAllocManaged(size, int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)))
    return int(address)


def free_managed(address: int) -> None:
    driver.cuMemFree(address)


def copy_rectangle(here: np.ndarray, address: int, pitch: int, stream: Any, back: bool) -> None:
    """Copy a rectangle of host memory to device memory with rows of `pitch` bytes, or `back` again; asynchronous if it is pinned.

    cuda.core copies only contiguous ranges.
    """
    host, device = ("dst", "src") if back else ("src", "dst")
    copy = driver.CUDA_MEMCPY2D()
    copy.WidthInBytes, copy.Height = here.shape[1] * here.itemsize, here.shape[0]
    for end, kind, at, stride in ((host, "Host", here.ctypes.data, here.strides[0]), (device, "Device", address, pitch)):
        setattr(copy, f"{end}MemoryType", getattr(driver.CUmemorytype, f"CU_MEMORYTYPE_{kind.upper()}"))
        setattr(copy, f"{end}{kind}", at)
        setattr(copy, f"{end}Pitch", stride)
    _checked(driver.cuMemcpy2DAsync(copy, stream.handle))


def start_profiler() -> None:
    """Start the range of launches that an attached profiler measures. cuda.core has no profiler control."""
    _checked(driver.cuProfilerStart())


def stop_profiler() -> None:
    _checked(driver.cuProfilerStop())
