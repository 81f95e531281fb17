"""Copies rectangles of a host matrix to a device and back by the driver, without an intermediate copy."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs


class CudaError(RuntimeError):
    """The driver refused or failed; a context that failed is lost, so a process that owns one ends after this."""


def checked(result: tuple[Any, ...]) -> Any:
    """The value of a driver call, or CudaError with the driver's own words."""
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(code)
        raise CudaError(f"{code.name}: {text.decode() if text else 'no description'}")
    return values[0] if values else None


def pinned(shape: tuple[int, int], dtype: Any) -> tuple[np.ndarray, Callable[[], object]]:
    """A pinned host array and the function that unpins it: ordinary memory, if the system can pin that."""
    matrix = np.empty(shape, dtype)
    address = matrix.ctypes.data
    if driver.cuMemHostRegister(address, matrix.nbytes, 0)[0] == driver.CUresult.CUDA_SUCCESS:
        return matrix, weakref.finalize(matrix, driver.cuMemHostUnregister, address)
    # some systems allocate pinned memory but cannot pin existing memory
    from numba import cuda

    return cuda.pinned_array(shape, dtype), lambda: None


def copy_in(there: Any, row: int, here: np.ndarray, stream: Any) -> None:
    """A rectangle of pinned host memory to as many rows of a device array as it has, from `row` on; asynchronous."""
    copy = _shape(there, here)
    copy.srcMemoryType, copy.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, here.ctypes.data
    copy.dstMemoryType, copy.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, _address(there, row)
    copy.srcPitch, copy.dstPitch = here.strides[0], there.strides[0]
    checked(driver.cuMemcpy2DAsync(copy, int(stream.handle)))


def copy_back(there: Any, row: int, here: np.ndarray, stream: Any) -> None:
    """The reverse of copy_in."""
    copy = _shape(there, here)
    copy.srcMemoryType, copy.srcDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, _address(there, row)
    copy.dstMemoryType, copy.dstHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, here.ctypes.data
    copy.srcPitch, copy.dstPitch = there.strides[0], here.strides[0]
    checked(driver.cuMemcpy2DAsync(copy, int(stream.handle)))


def _shape(there: Any, here: np.ndarray) -> Any:
    assert here.strides[1] == here.itemsize and there.dtype == here.dtype
    copy = driver.CUDA_MEMCPY2D()
    copy.WidthInBytes, copy.Height = here.shape[1] * here.itemsize, here.shape[0]
    return copy


def _address(there: Any, row: int) -> int:
    return there.__cuda_array_interface__["data"][0] + row * there.strides[0]
