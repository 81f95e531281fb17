"""A simulator of numba.cuda in plain Python, with the names that kernels and their host code use.

Between two barriers the threads of a block run one after another in random order, as do the blocks of a launch, because a correct
kernel does not depend on their order. A thread is a greenlet: switching between threads of the operating system takes a hundred
times longer. During race checks (simulator_races) every memory access is logged.
"""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np
from greenlet import greenlet

from fwtui_kernels.compiled import simulator_memory as memory
from fwtui_kernels.compiled import simulator_races as races
from fwtui_kernels.own import NoTrial


class Dim3(NamedTuple):
    x: int
    y: int
    z: int


# the indices of the running thread, which a kernel reads as cuda.threadIdx and so on
gridDim = blockDim = blockIdx = threadIdx = Dim3(0, 0, 0)
_running: _Fiber | None = None


class SimulatedKernel:
    """A kernel function, launched as `kernel[grid, block, stream, shared_bytes](*arguments)` or called by another kernel."""

    overloads: Mapping[Any, Any] = {}  # nothing is compiled

    def __init__(self, function: Callable[..., Any]):
        self.py_func, self.__name__ = function, function.__name__

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., None]:
        grid, block, *more = configuration
        return _Launch(self.py_func, _three(grid), _three(block), more[1] if len(more) > 1 else 0)


def jit(function: Any = None, device: bool = False, **options: Any) -> Any:
    """Replace numba.cuda.jit, also called with a signature; options of the compiler are ignored."""
    if not callable(function):
        return lambda function: jit(function, device)
    return function if device else SimulatedKernel(function)


class _Launch:
    """A configured launch; a call with the kernel's arguments runs all blocks."""

    def __init__(self, function: Callable[..., Any], grid: Dim3, threads: Dim3, shared_bytes: int):
        self.function, self.grid, self.threads, self.shared_bytes = function, grid, threads, shared_bytes
        self.places = _places(threads)

    def __call__(self, *given: Any) -> None:
        global gridDim, blockDim, _running
        gridDim, blockDim = self.grid, self.threads
        arguments = tuple(map(memory.cells_of, given))
        logged = races.in_global(arguments)
        waiting: list[_Block] = []
        try:
            for index in _shuffled(_places(self.grid)):
                watched = races.watches(self.function.__code__)
                waiting.append(_Block(self, index, logged if watched else arguments, watched))
                if waiting[-1].run():
                    waiting.pop()
            while waiting:  # at a grid-wide barrier
                random.shuffle(waiting)
                waiting = [block for block in waiting if not block.run()]
        finally:
            _running = None
            for block in waiting:
                block.end()


class _Block(races.SimulatedBlock):
    """The threads of a block, and its shared arrays by the instruction that creates them."""

    def __init__(self, launch: _Launch, index: Dim3, arguments: tuple[Any, ...], watched: bool):
        self.pending = _shuffled(launch.places)  # threads that have not started
        super().__init__(index, len(self.pending))
        self.launch, self.arguments, self.watched = launch, arguments, watched
        self.votes = np.zeros(launch.threads, np.bool_)
        self.shared: dict[object, Any] = {}
        self._alive: list[_Fiber] = []

    def run(self) -> bool:
        """Run the threads until all have ended or wait at a grid-wide barrier; return True if all have ended."""
        global blockIdx
        blockIdx = self.index
        while True:
            random.shuffle(self._alive)
            for fiber in self._alive:
                fiber.switch()
            while self.pending:
                self._alive.append(_Fiber(self))
                self._alive[-1].switch()
            self._alive = [fiber for fiber in self._alive if not fiber.dead]
            if self.watched and races.log is not None:
                races.log.came_to_barrier(self, self.launch.function.__code__, [fiber.waits_at for fiber in self._alive])
            if all(fiber.waits_for_grid for fiber in self._alive):
                return not self._alive

    def end(self) -> None:
        """End the threads that an error has left at a barrier, because garbage collection does not end a greenlet."""
        for fiber in self._alive:
            with suppress(BaseException):
                fiber.throw()


class _Fiber(greenlet):
    """A greenlet that runs threads of a block one after another until one waits at a barrier, and then only that one."""

    def __init__(self, block: _Block):
        super().__init__(self._work)
        self.block, self._barriers, self._grid_barriers = block, 0, 0
        self.waits_at: races.At  # if the block is watched
        self.waits_for_grid = False

    def _work(self) -> None:
        block = self.block
        while block.pending and not self._barriers:
            self.index = block.pending.pop()
            self.copies: list[list[Any]] = [[]]  # groups of asynchronous copies (simulator_intrinsics)
            self._resume()
            try:
                block.launch.function(*block.arguments)
            except Exception as error:
                error.add_note(f"in block {races.pair(block.index)}, thread {races.pair(self.index)}")
                raise  # greenlet raises it in run()

    def wait(self, grid: bool = False) -> None:
        """Wait at a barrier of the block or of the grid."""
        if self.block.watched:
            frame = races.kernel_frame(sys._getframe(1))
            self.waits_at = frame.f_code, frame.f_lasti
        self.waits_for_grid = grid
        self._barriers += 1
        self._grid_barriers += grid
        self.parent.switch()  # pyright: ignore[reportOptionalMemberAccess]
        self._resume()

    def vote(self, value: Any) -> np.ndarray:
        """Wait for all threads of the block; return the values of all threads."""
        votes = self.block.votes
        votes[self.index] = value
        self.wait()
        given = votes.copy()
        self.wait()
        return given

    def _resume(self) -> None:
        global threadIdx, _running
        _running, threadIdx = self, self.index
        races.turn = races.Turn(self.block, self.index, self._barriers, self._grid_barriers) if self.block.watched else None


def running() -> _Fiber:
    """Return the running thread. Raises RuntimeError on the host."""
    if _running is None:
        raise RuntimeError("only a launched kernel can call this")
    return _running


def grid(dimensions: int) -> Any:
    places = [block * size + thread for block, size, thread in zip(blockIdx, blockDim, threadIdx, strict=True)]
    return places[0] if dimensions == 1 else tuple(places[:dimensions])


def gridsize(dimensions: int) -> Any:
    sizes = [blocks * size for blocks, size in zip(gridDim, blockDim, strict=True)]
    return sizes[0] if dimensions == 1 else tuple(sizes[:dimensions])


def syncthreads() -> None:
    running().wait()


def syncthreads_and(value: Any) -> int:
    return int(running().vote(value).all())


def syncthreads_or(value: Any) -> int:
    return int(running().vote(value).any())


def syncthreads_count(value: Any) -> int:
    return int(running().vote(value).sum())


class _GridGroup:
    def sync(self) -> None:
        running().wait(grid=True)


def _atomic(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return the atomic operation array[index] = change(array[index], *values), which returns the old value."""

    def operation(array: Any, index: Any, *values: Any) -> Any:
        old = array[index]
        array[index] = change(old, *values)
        return old

    return operation


def _shared_array(shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    block, frame, number = running().block, sys._getframe(1), _number(dtype)
    dynamic = shape == 0  # all dynamic arrays share the memory of the launch
    place: object = number if dynamic else (frame.f_code, frame.f_lasti)
    if place not in block.shared:
        new = races.poisoned(block.launch.shared_bytes // number.itemsize if dynamic else shape, number)
        if dynamic:
            new = block.shared.setdefault("dynamic", new).view(number)
        block.shared[place] = races.shared(new)
    return block.shared[place]


def _local_array(shape: Any, dtype: Any, alignment: int | None = None) -> np.ndarray:
    return races.poisoned(shape, _number(dtype))


def _number(dtype: Any) -> np.dtype:
    """Return the NumPy data type for a data type of NumPy or Numba."""
    return np.dtype(dtype if isinstance(dtype, type | np.dtype) else str(dtype))


def _three(sizes: Any) -> Dim3:
    sizes = (sizes,) if np.ndim(sizes) == 0 else sizes
    return Dim3(*map(int, sizes), *[1] * (3 - len(sizes)))


def _places(sizes: Dim3) -> list[Dim3]:
    """Return all indices in a grid or a block."""
    return list(starmap(Dim3, product(*map(range, sizes))))


def _shuffled(places: list[Dim3]) -> list[Dim3]:
    """Return the indices in random order."""
    return random.sample(places, len(places))


class _Names:
    """A namespace in `cuda`, such as cuda.shared. Other names raise NoTrial."""

    def __init__(self, path: str, **members: Callable[..., Any]):
        self.__dict__.update(members, _path=path)

    def __getattr__(self, name: str) -> Any:
        raise NoTrial(f"it takes a GPU: the simulator has no {self._path}.{name}")


def __getattr__(name: str) -> Any:
    if _running is not None:
        raise NoTrial(f"it takes a GPU: the simulator has no cuda.{name}")
    raise AttributeError(f"the simulator has no cuda.{name}")


shared, local = _Names("cuda.shared", array=_shared_array), _Names("cuda.local", array=_local_array)
cg = _Names("cuda.cg", this_grid=_GridGroup)
atomic = _Names(
    "cuda.atomic",
    **{name: _atomic(change) for name, change in (("add", operator.add), ("sub", operator.sub), ("min", min), ("max", max))},
    exch=_atomic(lambda old, new: new),
    cas=_atomic(lambda old, expected, new: new if old == expected else old),
)
stream, device_array, to_device, copy_on_device = memory.Stream, memory.device_array, memory.to_device, memory.copy_on_device
pinned_array = mapped_array = managed_array = memory.host_array
