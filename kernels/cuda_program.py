"""The host side that every CUDA kernel shares: buffers, copies, launches, resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from kernels.device import SIM, cuda, int32
from kernels.plan import NO_EDGE, Buffers, Resources, Shape, Step, Target


@dataclass(frozen=True, slots=True)
class Op:
    """A compiled function and how it is launched: its block, and its grid as a function of the step's args.

    The function takes the matrix (padded x padded, row-major) and then the step's args as int32.
    """

    function: Any
    block: tuple[int, int]
    grid: Callable[[tuple[int, ...]], tuple[int, int]]


class CudaProgram:
    """Keeps two device buffers, the matrix and its input, so that a run can be repeated without copying over PCIe."""

    def __init__(self, shape: Shape, target: Target, ops: Mapping[str, Op]):
        self.shape = shape
        self.ops = ops
        self._target = target
        self._host: Any = None
        self._configured: dict[tuple[Any, ...], Any] = {}

    def allocate(self) -> Buffers:
        size = (self.shape.padded, self.shape.padded)
        dtype = np.dtype(self.shape.dtype)
        # a pinned host copy is what the copy engine reads and writes without an extra hop
        if self.shape.memory == "pinned":
            self._host = cuda.pinned_array(size, dtype)
        return [cuda.device_array(size, dtype), cuda.device_array(size, dtype)]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        n, padded = self.shape.n, self.shape.padded
        host = self._host
        if host is None and n == padded:
            host = np.ascontiguousarray(matrix)
        else:
            host = np.empty((padded, padded), self.shape.dtype) if host is None else host
            host[:n, :n] = matrix
            host[n:, :] = host[:, n:] = NO_EDGE[self.shape.dtype]
            extra = np.arange(n, padded)
            host[extra, extra] = 0
        buffers[1].copy_to_device(host, stream=stream)
        self.restore(buffers, stream)
        # the host array may be freed once this returns
        stream.synchronize()

    def restore(self, buffers: Buffers, stream: Any) -> None:
        buffers[0].copy_to_device(buffers[1], stream=stream)

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        op = self.ops[step.op]
        grid = op.grid(step.args)
        key = (step.op, grid, id(stream))
        configured = self._configured.get(key)
        if configured is None:
            configured = self._configured[key] = op.function[grid, op.block, stream]
        configured(buffers[0], *map(np.int32, step.args))

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        n = self.shape.n
        host = self._host if self._host is not None else np.empty(buffers[0].shape, self.shape.dtype)
        buffers[0].copy_to_host(host, stream=stream)
        stream.synchronize()
        return np.array(host[:n, :n]) if self._host is not None else host[:n, :n]

    def resources(self) -> Mapping[str, Resources]:
        if SIM:
            return {}
        return {name: resources_of(op, self._target) for name, op in self.ops.items() if op.function.overloads}


def resources_of(op: Op, target: Target) -> Resources:
    """What the compiler gave an op that was launched at least once, and how many blocks the driver says fit."""
    compiled = next(iter(op.function.overloads.values()))
    blocks = None
    if target.multiprocessors:
        # its body is cuOccupancyMaxActiveBlocksPerMultiprocessor times the number of multiprocessors
        blocks = compiled.max_cooperative_grid_blocks(op.block, 0) // target.multiprocessors
    return Resources(
        threads=op.block[0] * op.block[1],
        registers=compiled.regs_per_thread,
        shared_bytes=compiled.shared_mem_per_block,
        spill_bytes=compiled.local_mem_per_thread,
        blocks_per_multiprocessor=blocks,
    )


def signature(shape: Shape, args: int) -> tuple[Any, ...]:
    """The numba types of an op with that many args, for compiling without a GPU."""
    return (numba.from_dtype(np.dtype(shape.dtype))[:, ::1], *[int32] * args)
