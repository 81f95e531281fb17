"""`cuda` where GPUs are simulated: the names of numba.cuda that kernels and their host code use, in plain Python.

Between two barriers the threads of a block run one after another, each time in another order, as do the blocks of a launch; a
correct kernel does not depend on it. A thread is a greenlet, because switching between threads of the host takes a hundred times
longer. While simulator_races watches, every access to memory is logged.
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


# of the thread that runs: a kernel reads them as cuda.threadIdx and the like
gridDim = blockDim = blockIdx = threadIdx = Dim3(0, 0, 0)
_running: _Fiber | None = None


class SimulatedKernel:
    """A function that is launched as `kernel[grid, block, stream, shared_bytes](*arguments)`, or called by another kernel."""

    overloads: Mapping[Any, Any] = {}  # nothing is compiled

    def __init__(self, function: Callable[..., Any]):
        self.py_func, self.__name__ = function, function.__name__

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., None]:
        grid, block, *more = configuration
        return _Launch(self.py_func, _three(grid), _three(block), more[1] if len(more) > 1 else 0)


def jit(function: Any = None, device: bool = False, **options: Any) -> Any:
    """Stand for numba.cuda.jit, also with a signature in place of the function; options of the compiler change nothing."""
    if not callable(function):
        return lambda function: jit(function, device)
    return function if device else SimulatedKernel(function)


class _Launch:
    """Calling it with the kernel's arguments runs its blocks."""

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
                watched = races.wants(self.function.__code__)
                waiting.append(_Block(self, index, logged if watched else arguments, watched))
                if waiting[-1].run():
                    waiting.pop()
            while waiting:  # at a barrier of the grid
                random.shuffle(waiting)
                waiting = [block for block in waiting if not block.run()]
        finally:
            _running = None
            for block in waiting:
                block.end()


class _Block(races.SimulatedBlock):
    """The threads of a block, and its arrays in shared memory by the place in the code that makes them."""

    def __init__(self, launch: _Launch, index: Dim3, arguments: tuple[Any, ...], watched: bool):
        self.unbegun = _shuffled(launch.places)
        super().__init__(index, len(self.unbegun))
        self.launch, self.arguments, self.watched = launch, arguments, watched
        self.votes = np.zeros(launch.threads, np.bool_)
        self.shared: dict[object, Any] = {}
        self._alive: list[_Fiber] = []

    def run(self) -> bool:
        """Run the threads until all wait at a barrier of the grid; return whether all have ended instead."""
        global blockIdx
        blockIdx = self.index
        while True:
            random.shuffle(self._alive)
            for fiber in self._alive:
                fiber.switch()
            while self.unbegun:
                self._alive.append(_Fiber(self))
                self._alive[-1].switch()
            self._alive = [fiber for fiber in self._alive if not fiber.dead]
            if self.watched and races.log is not None:
                races.log.came_to_barrier(self, self.launch.function.__code__, [fiber.waits_at for fiber in self._alive])
            if all(fiber.waits_for_grid for fiber in self._alive):
                return not self._alive

    def end(self) -> None:
        """End the threads that a failure has left at a barrier: no garbage collector ends a greenlet."""
        for fiber in self._alive:
            with suppress(BaseException):
                fiber.throw()


class _Fiber(greenlet):
    """Runs threads of a block, one after another, until one waits at a barrier; from then on only that one."""

    def __init__(self, block: _Block):
        super().__init__(self._work)
        self.block, self._barriers, self._grid_barriers = block, 0, 0
        self.waits_at: races.At  # if the block is watched
        self.waits_for_grid = False

    def _work(self) -> None:
        block = self.block
        while block.unbegun and not self._barriers:
            self.index = block.unbegun.pop()
            self.copies: list[list[Any]] = [[]]  # of simulator_intrinsics
            self._resume()
            try:
                block.launch.function(*block.arguments)
            except Exception as error:
                error.add_note(f"in block {races.pair(block.index)}, thread {races.pair(self.index)}")
                raise  # in run(), which switched here

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
        """Wait for all threads of the block; return the values that they give."""
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
    """Return the thread that runs. Raises RuntimeError on the host."""
    if _running is None:
        raise RuntimeError("only a kernel that is launched can call this")
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
    """Return the operation that replaces array[index] by `change(array[index], *values)` and returns what was there."""

    def operation(array: Any, index: Any, *values: Any) -> Any:
        old = array[index]
        array[index] = change(old, *values)
        return old

    return operation


def _shared_array(shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    block, frame, number = running().block, sys._getframe(1), _number(dtype)
    dynamic = shape == 0  # the memory that the launch gives, which is the same in all places
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
    """Return NumPy's type of that name; Numba's types have the same names."""
    return np.dtype(dtype if isinstance(dtype, type | np.dtype) else str(dtype))


def _three(sizes: Any) -> Dim3:
    sizes = (sizes,) if np.ndim(sizes) == 0 else sizes
    return Dim3(*map(int, sizes), *[1] * (3 - len(sizes)))


def _places(sizes: Dim3) -> list[Dim3]:
    """Return all places in a grid or in a block."""
    return list(starmap(Dim3, product(*map(range, sizes))))


def _shuffled(places: list[Dim3]) -> list[Dim3]:
    """Return them in random order."""
    return random.sample(places, len(places))


class _Names:
    """Names within `cuda`, such as those of cuda.shared. Reading another name raises NoTrial."""

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
