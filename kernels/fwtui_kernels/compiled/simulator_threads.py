"""How Numba's simulator runs the threads of a block here: between two barriers one after the other, each time in another order,
as are the blocks of a launch, which no kernel may notice. Each thread is a greenlet, since a switch of the host's threads takes a
hundred times longer. While fwtui_kernels.compiled.simulator_races looks on, every access to memory is logged.

Numba's own way starts a thread of the host for each, which poll each other: which barrier is missing shows by luck, and two
that ask for a shared array at the same time may get two.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numba.core import types
from numba.np import numpy_support

from fwtui_kernels.compiled import simulator_races as races
from fwtui_kernels.compiled.simulator_internals import ArrayInKernel, kernel, kernelapi
from fwtui_kernels.own import NoTrial

Index = tuple[int, ...]
_numba_s_array: Any = kernelapi.FakeCUDAShared.array


class _ShuffledLaunch:
    """The blocks of a launch that are still to come, in their order, and the arguments as threads see them that are looked at."""

    def __init__(self, grid: Index, args: tuple[Any, ...]):
        self.watched = args
        blocks = list(np.ndindex(*grid))
        random.shuffle(blocks)
        self.blocks: Iterator[Index] = iter(blocks)
        if races.log is not None:
            arrays = [place for place, arg in enumerate(args) if isinstance(arg, ArrayInKernel)]
            seen = dict(zip(arrays, races.in_global([np.asarray(args[place].data) for place in arrays]), strict=True))
            self.watched = tuple(seen.get(place, arg) for place, arg in enumerate(args))


class _ThreadRunner(greenlet):
    """Runs one waiting thread after the other, until one of them comes to a barrier: from there on it is that thread alone."""

    def __init__(
        self, launched: _BlockRunner, block: races.SimulatedBlock, waiting: list[Index], args: tuple[Any, ...], watched: bool
    ) -> None:
        super().__init__()
        self._watched = watched
        self._launched, self._waiting, self._args = launched, waiting, args
        self._block, self._interval = block, 0
        self.blockIdx = kernelapi.Dim3(*block.index)

    def run(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] greenlet's own way
        wide, high, _ = self._launched.threads
        self._paused = False
        while self._waiting and not self._paused:
            x, y, z = self._waiting.pop()
            self.threadIdx, self.thread_id = kernelapi.Dim3(x, y, z), x + wide * (y + high * z)
            self.copies: list[list[Any]] = [[]]  # of fwtui_kernels.compiled.simulator
            self._take_turn()
            try:
                self._launched.function(*self._args)
            except Exception as error:
                if isinstance(error, AttributeError) and isinstance(error.obj, kernelapi.FakeCUDAModule):
                    raise NoTrial(f"it takes a GPU: Numba's simulator has no cuda.{error.name}") from None
                error.add_note(f"in block {_place(self.blockIdx)}, thread {_place(self.threadIdx)}")
                raise  # to whom switched here

    def syncthreads(self) -> None:
        self._paused = True
        frame = races.caller(sys._getframe(1))
        self.waits_at = frame.f_code, frame.f_lasti
        self.parent.switch()  # pyright: ignore[reportOptionalMemberAccess]
        self._interval += 1
        self._take_turn()

    def syncthreads_and(self, value: Any) -> int:
        return int(self._votes(value).all())

    def syncthreads_or(self, value: Any) -> int:
        return int(self._votes(value).any())

    def syncthreads_count(self, value: Any) -> int:
        return int(self._votes(value).sum())

    def _votes(self, value: Any) -> np.ndarray:
        """What each thread of the block has given."""
        votes = self._launched.votes
        votes[tuple(self.threadIdx)] = value
        self.syncthreads()
        given = votes.copy()
        self.syncthreads()
        return given

    def _take_turn(self) -> None:
        races.turn = races.Turn(self._block, self._interval, tuple(self.threadIdx)) if self._watched else None


class _Threading:
    """As much of `threading` as a running kernel asks for."""

    current_thread = staticmethod(getcurrent)


def _place(index: Any) -> tuple[int, int]:
    return index.x, index.y


_launch = _ShuffledLaunch((), ())
_arrays: dict[object, Any] = {}  # of the block that runs, in shared memory


class _BlockRunner:
    """Takes the place of Numba's BlockManager, which a launch makes for each block."""

    def __init__(self, function: Any, grid: Index, threads: Index, debug: bool):
        self.function, self.threads, self.votes, self._grid = function, threads, np.zeros(threads, np.bool_), grid

    def run(self, grid_point: Index, *args: Any) -> None:
        global _launch
        if not any(grid_point):  # the first one that Numba asks for
            _launch = _ShuffledLaunch(self._grid, args)
        block, watched = races.SimulatedBlock(next(_launch.blocks)), races.wants(self.function.__code__)
        _arrays.clear()
        waiting = list(np.ndindex(*self.threads))
        threads = len(waiting)
        random.shuffle(waiting)
        alive: list[_ThreadRunner] = []
        try:
            while waiting:
                alive.append(_ThreadRunner(self, block, waiting, _launch.watched if watched else args, watched))
                alive[-1].switch()
            while alive := [runner for runner in alive if not runner.dead]:
                if watched and races.log is not None:
                    races.log.barrier(block, (runner.waits_at for runner in alive), threads)
                random.shuffle(alive)
                for runner in alive:
                    runner.switch()
        finally:
            if watched and races.log is not None:
                races.log.looked_at[self.function.__code__] += block.accesses
            # of a failed block: no collector ends a greenlet at a barrier, and Numba restores a module when its functions end
            for runner in alive:
                if not runner.dead:
                    with suppress(BaseException):
                        runner.throw()


def _shared_array(self: Any, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    """A block's shared array by the place in the code that asks for it: Numba has one for all that stand on a line."""
    number = np.dtype(numpy_support.as_dtype(dtype) if isinstance(dtype, types.Type) else dtype)
    frame = sys._getframe(1)
    place: object = (frame.f_code, frame.f_lasti)
    if shape == 0:  # the bytes that the launch gives, which are the same for all who ask so
        place, shape = number, _numba_s_array(self, shape, number).size  # which knows of no alignment without numba-cuda
    if place not in _arrays:
        given = _arrays.setdefault("given", races.poisoned(shape, number)) if place is number else races.poisoned(shape, number)
        _arrays[place] = races.shared(given.view(number))
    return _arrays[place]


def take_turns() -> None:
    """Let every block of this process run so from now on."""
    kernel.BlockManager = _BlockRunner
    kernelapi.threading = _Threading
    kernelapi.FakeCUDAShared.array = _shared_array
