"""The program of CUDA kernels: buffers, copies, launches, resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.compiled.device import DeviceKernel, cuda, kernel_of
from fwtui_kernels.plan import Buffers, Program, Resources, Shape, Step, Target
from fwtui_kernels.programs.cpu_program import pad

Args = tuple[int, ...]
TRANSACTION = 128  # maximum bytes of a coalesced access; rows that start at a multiple of it never split one


@dataclass(frozen=True, slots=True)
class Op:
    """A kernel function with its block, and its grid as a function of the step's args.

    The function takes the buffers with the numbers `buffers(args)` (by default only the matrix), then the args as int32.
    """

    function: Any
    block: tuple[int, int]
    grid: Callable[[Args], tuple[int, int]]
    buffers: Callable[[Args], tuple[int, ...]] = lambda args: (0,)
    types: tuple[str, ...] | None = None  # numba's names of the argument types; None: matrices and args


@dataclass(frozen=True, slots=True)
class CellOrder:
    """Another order of the cells in device memory, with two kernel functions (from, to) that convert whole matrices."""

    pack: Any  # row-major -> this order
    unpack: Any
    block: tuple[int, int]
    grid: tuple[int, int]


class CudaProgram(Program):
    """A program on a GPU or in the simulator.

    Its buffers are the working matrices, then scratch arrays of (rows, columns) cells, and last the input, so that a run can be
    repeated without a copy over PCIe. With another cell order, the buffer before the input holds the row-major result.
    `columns` is the length of a pitched row; `result` is the working matrix with the final distances.
    """

    home: Literal["host", "device"] = "device"
    in_parts = True

    def __init__(
        self,
        shape: Shape,
        target: Target,
        ops: Mapping[str, Op],
        *,
        matrices: int = 1,
        result: int = 0,
        columns: int | None = None,
        order: CellOrder | None = None,
        scratch: Sequence[tuple[int, int]] = (),
    ):
        self.shape = shape
        self.ops = {name: replace(op, function=kernel_of(op.function)) for name, op in ops.items()}
        self._size = (shape.padded, columns or shape.padded)
        self._rows_of_n = shape.n  # rows without the padding
        self._matrices = matrices
        self._result = result
        self._order = order
        self.reorders = order is not None
        self.repeatable = shape.memory != "managed"  # only the first touch of a managed page migrates it
        self._scratch = [*scratch, *([self._size] if order is not None else [])]
        self._target = target
        self._pinned: Any = None
        self._configured: dict[tuple[Any, ...], Any] = {}

    def allocate(self) -> Buffers:
        dtype = np.dtype(self.shape.dtype)
        # the copy engine reads and writes pinned memory without a staging buffer
        if self.shape.memory == "pinned":
            self._pinned = cuda.pinned_array(self._size, dtype)
        memory = self.shape.memory
        new = getattr(cuda, f"{memory}_array" if memory in ("mapped", "managed") else "device_array")
        sizes = [self._size] * self._matrices + [*self._scratch, self._size]
        return [new(size, dtype) for size in sizes]

    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        self.copy_in(matrix, buffers, stream)
        self.pack(buffers, stream)
        self.restore(buffers, stream)
        stream.sync()

    def prepare(self, buffers: Buffers, stream: Any) -> None:
        # the contents of the buffers do not matter
        self.pack(buffers, stream)
        self.unpack(buffers, stream)

    def copy_in(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        input_copy = buffers[-1]
        if self._shared_with_host:
            stream.sync()
            self.pad(matrix, input_copy)
        else:
            (input_copy if self._order is None else buffers[0]).copy_to_device(self._host_form(matrix), stream=stream)
            # callers may free the host array afterwards
            stream.sync()

    def pack(self, buffers: Buffers, stream: Any) -> None:
        if self._order is not None:
            self._reorder(self._order.pack, buffers[0], buffers[-1], stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        write(buffers[-1] if self._order is None else buffers[0])
        self.pack(buffers, stream)
        self.restore(buffers, stream)

    def restore(self, buffers: Buffers, stream: Any) -> None:
        to, input_copy = buffers[0], buffers[-1]
        if self.shape.memory == "mapped":
            # a copy by the device would cross PCIe twice, because this is host memory
            stream.sync()
            np.copyto(to, input_copy)
        elif self.shape.memory == "managed":
            # a copy by the device migrates the pages before the timed section
            cuda.copy_on_device(to, input_copy, input_copy.nbytes, stream)
        else:
            to.copy_to_device(input_copy, stream=stream)

    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        op = self.ops[step.op]
        grid = op.grid(step.args)
        key = (step.op, grid, id(stream))
        configured = self._configured.get(key)
        if configured is None:
            configured = self._configured[key] = op.function[grid, op.block, stream]
        configured(*[buffers[b] for b in op.buffers(step.args)], *map(np.int32, step.args))

    def unload(self, buffers: Buffers, stream: Any) -> Any:
        self.unpack(buffers, stream)
        return self.copy_out(buffers, stream)

    def unpack(self, buffers: Buffers, stream: Any) -> None:
        if self._order is not None:
            self._reorder(self._order.unpack, buffers[self._result], buffers[-2], stream)

    def copy_out(self, buffers: Buffers, stream: Any) -> Any:
        rows, columns, result = self._rows_of_n, self.shape.n, self._row_major(buffers)
        if self._shared_with_host:
            stream.sync()
            return np.array(result[:rows, :columns])
        host = self._pinned if self._pinned is not None else np.empty(self._size, self.shape.dtype)
        result.copy_to_host(host, stream=stream)
        stream.sync()
        return np.array(host[:rows, :columns]) if host is self._pinned else host[:rows, :columns]

    def result(self, buffers: Buffers, stream: Any) -> Any:
        self.unpack(buffers, stream)
        return self._row_major(buffers)

    def weights(self, buffers: Buffers) -> Any | None:
        return buffers[-1] if self._order is None else None

    def pad(self, rows: Any, to: Any) -> None:
        """Copy the rows of the matrix to a larger array, whose other vertices have no edges."""
        pad(rows, to)

    def resources(self) -> Mapping[str, Resources]:
        compiled = {name: compiled_for(op, self.shape.dtype) for name, op in self.ops.items()}
        threads = {name: op.block[0] * op.block[1] for name, op in self.ops.items()}
        occupancy = bool(self._target.multiprocessors)
        return {name: code.resources(threads[name], occupancy) for name, code in compiled.items() if code is not None}

    def _row_major(self, buffers: Buffers) -> Any:
        """Return the buffer of the unpacked result."""
        return buffers[self._result] if self._order is None else buffers[-2]

    @property
    def _shared_with_host(self) -> bool:
        """True if the host can access the buffers in place as NumPy arrays."""
        return self.shape.memory in ("mapped", "managed")

    def _host_form(self, matrix: Any) -> Any:
        """Return the padded matrix for the copy to the device, in the pinned array if there is one."""
        if self._pinned is None and matrix.shape == self._size:
            return np.ascontiguousarray(matrix)
        host = np.empty(self._size, self.shape.dtype) if self._pinned is None else self._pinned
        self.pad(matrix, host)
        return host

    def _reorder(self, function: Any, source: Any, to: Any, stream: Any) -> None:
        assert self._order is not None
        function[self._order.grid, self._order.block, stream](source, to)


def pitched(shape: Shape) -> int:
    """Return the length of a padded row in cells, so that every row starts at a multiple of TRANSACTION."""
    cells = TRANSACTION // shape.itemsize
    return -(-shape.padded // cells) * cells


def compiled_for(op: Op, dtype: str) -> Any | None:
    """Return the loaded function of an op for that data type; a function at the top of a file serves several types."""
    overloads = op.function.overloads.items()
    return next((code for types, code in overloads if isinstance(types, str) or dtype in str(types[0])), None)


def types_of(op: Op, shape: Shape, args: int) -> tuple[str, ...]:
    """Return the argument types of an op with that many args, for compilation without a GPU."""
    return signature(shape, args, len(op.buffers((0,) * args))) if op.types is None else op.types


def functions_of(program: Program, op: str) -> tuple[Any, ...]:
    """Return the functions that an op has loaded; empty if the program launches it in another way."""
    if not isinstance(program, CudaProgram) or type(program).launch is not CudaProgram.launch:
        return ()
    return tuple(program.ops[op].function.overloads.values())


def cached_cubins(program: Program, plan: Sequence[Step], cc: tuple[int, int]) -> Iterator[bytes]:
    """Yield the cached cubins of a program's ops, without launching them."""
    place, ops = cubin_cache.here(), getattr(program, "ops", {})
    for name, args in {step.op: len(step.args) for step in plan}.items():
        function = getattr(ops.get(name), "function", None)
        if place is not None and isinstance(function, DeviceKernel) and function.cached:
            with suppress(cubin_cache.NoKey):
                types = types_of(ops[name], program.shape, args)
                code = cubin_cache.load(place, cubin_cache.key(function.py_func, function.targetoptions, types, cc))
                if code is not None:
                    yield code.cubin


def signature(shape: Shape, args: int, buffers: int = 1) -> tuple[str, ...]:
    """Return the argument types of an op whose buffers are matrices."""
    return (*[f"array({shape.dtype}, 2d, C)"] * buffers, *["int32"] * args)
