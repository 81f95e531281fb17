"""The race check of simulated launches: a log of every memory access.

Two accesses to a cell race if at least one writes, no barrier or end of a launch orders them, and not both are atomic. A write
that does not change the value is harmless and is reported separately.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

# initial values by kind and size: so small that a path over one shows in every result, without overflow in one addition
POISON = {("f", 4): -1e6, ("f", 8): -1e6, ("i", 8): -(2**20), ("i", 4): -(2**20), ("i", 2): -(2**13)}
MAX_RACES, MAX_UNWRITTEN = 100, 10_000  # pairs of lines, and cells
MAX_SOURCE = 48  # characters of a source line in a message
MAX_ACCESSES = 60_000  # logged accesses per function, after which no further block of it is watched
_ATOMIC = str(Path(__file__).with_name("simulator.py"))  # a file whose only memory accesses are atomic operations
# files whose code accesses memory on behalf of a kernel
_INSIDE = {_ATOMIC, __file__, str(Path(__file__).with_name("simulator_intrinsics.py"))}
At = tuple[CodeType, int]  # an instruction


class SimulatedBlock:
    """A block of a launch. It is `ordered` after an atomic operation, by which it may have waited for other blocks."""

    def __init__(self, index: tuple[int, ...], threads: int):
        self.index, self.threads, self.ordered, self.accesses = index, threads, False, 0


@dataclass(slots=True, eq=False)
class Turn:
    """A thread between two barriers, with the number of block and grid barriers that it has passed."""

    block: SimulatedBlock
    thread: tuple[int, ...]
    barriers: int
    grid_barriers: int


@dataclass(slots=True, eq=False)
class Access:
    """A read or a write of a cell."""

    code: CodeType
    instruction: int
    turn: Turn
    atomic: bool

    def races(self, earlier: Access) -> bool:
        """Return True if nothing orders this access after the earlier one."""
        if self.atomic and earlier.atomic:
            return False
        this, that = self.turn, earlier.turn
        if this.block is that.block:
            return this is not that and this.barriers == that.barriers
        return this.grid_barriers == that.grid_barriers and not this.block.ordered

    @property
    def at(self) -> At:
        return self.code, self.instruction

    @property
    def line(self) -> str:
        return _line(self.at)

    @property
    def quoted(self) -> str:
        """The line with its source: file.py:12 `to[y, x] = 1`."""
        source = linecache.getline(self.code.co_filename, int(self.line.rpartition(":")[2])).strip()
        return f"{self.line} `{source if len(source) <= MAX_SOURCE else source[: MAX_SOURCE - 1] + '…'}`"


class Race(NamedTuple):
    """Two unordered accesses, of which the second is a write."""

    memory: str  # shared or global
    reads: bool
    access: Access
    write: Access
    harms: bool  # True if the write changed the value

    def __str__(self) -> str:
        does, line, written = "reads what" if self.reads else "writes where", self.access.quoted, self.write.quoted
        if self.access.turn.block is not self.write.turn.block:
            one, other = (f"block {pair(access.turn.block.index)}" for access in (self.access, self.write))
            return f"{line} of {one} {does} {written} of {other} writes in the same launch; blocks run in any order"
        thread = f"thread {pair(self.write.turn.thread)}"
        return f"{line} {does} {written} of {thread} writes in {self.memory} memory; no barrier between"


class RaceLog:
    """The errors that race_log() finds. `logged` counts the logged accesses of each function."""

    def __init__(self, logged: Counter[CodeType]) -> None:
        self.logged, self.divergence = logged, ""
        self.unread: list[_Cell] = []  # cells that were read before they were written
        self._races: dict[tuple[At, At, bool], Race] = {}

    @property
    def races(self) -> Sequence[Race]:
        """All races, harmful ones first, and among these races in shared memory first."""
        return sorted(self._races.values(), key=lambda race: (not race.harms, race.memory == "global"))

    def add(self, race: Race) -> None:
        if len(self._races) < MAX_RACES:
            self._races.setdefault((race.access.at, race.write.at, race.harms), race)

    @property
    def unwritten(self) -> str | None:
        """The line that reads shared memory too early: it is written after a later barrier or never."""
        return next((cell.unwritten.line for cell in self.unread if cell.unwritten is not None), None)

    def came_to_barrier(self, block: SimulatedBlock, function: CodeType, waiting: Sequence[At]) -> None:
        """Record that threads of a block wait at these barriers and that its other threads have ended."""
        self.logged[function] += block.accesses
        block.accesses = 0
        places, ended = Counter(waiting), block.threads - len(waiting)
        if self.divergence or not waiting or (len(places) == 1 and not ended):
            return
        counts = [f"{count} wait at {_line(at)}" for at, count in places.most_common()]
        *some, last = [*counts, f"{ended} have ended"] if ended else counts
        threads = f"of the {block.threads} threads of block {pair(block.index)} {', '.join(some)} and {last}"
        self.divergence = f"{threads}; all threads of a block must reach the same barrier"


@dataclass(slots=True)
class _Cell:
    """The last accesses to a cell."""

    written: Access | None = None
    changed: Access | None = None  # a write of another value
    read: Access | None = None
    read_before: Access | None = None  # the read by another thread
    unwritten: Access | None = None  # a read before the first write


class _LoggedMemory:
    """The logged cells of an array and of its views."""

    def __init__(self, log: RaceLog, kind: str):
        self.log, self.kind, self.shared = log, kind, kind == "shared"
        self._cells: defaultdict[int, _Cell] = defaultdict(_Cell)

    def read(self, place: int, access: Access) -> None:
        cell = self._cells[place]
        if self.shared and cell.written is None and cell.unwritten is None and len(self.log.unread) < MAX_UNWRITTEN:
            cell.unwritten = access
            self.log.unread.append(cell)
        if cell.changed is not None and access.races(cell.changed):
            self.log.add(Race(self.kind, True, access, cell.changed, True))
        elif self.shared and cell.written is not None and access.races(cell.written):
            self.log.add(Race(self.kind, True, access, cell.written, False))
        if not access.atomic and (cell.read is None or cell.read.turn is not access.turn):
            cell.read_before, cell.read = cell.read, access

    def write(self, place: int, access: Access, changes: bool) -> None:
        cell = self._cells[place]
        if changes or self.shared:
            for read in (cell.read, cell.read_before):
                if read is not None and access.races(read):
                    self.log.add(Race(self.kind, True, read, access, changes))
            if cell.written is not None and access.races(cell.written):
                self.log.add(Race(self.kind, False, access, cell.written, changes))
        if cell.unwritten is not None and cell.unwritten.turn.barriers == access.turn.barriers:
            cell.unwritten = None  # reported as a race instead
        cell.written = access
        if changes:
            cell.changed = access


class LoggedArray:
    """An array or a view in a kernel whose accesses are logged; `places` are the numbers of its cells in memory."""

    def __init__(self, array: np.ndarray, memory: _LoggedMemory, places: np.ndarray | None = None):
        self._array, self._memory = array, memory
        self._places = np.arange(array.size).reshape(array.shape) if places is None else places

    def __getitem__(self, index: Any) -> Any:
        part = self._array[index]
        if type(part) is not np.ndarray:
            self._memory.read(int(self._places[index]), _access())
        elif np.may_share_memory(part, self._array):
            return LoggedArray(part, self._memory, self._places[index])
        else:
            self._read_all(self._places[index], _access())
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        access, before = _access(), self._array[index]
        if type(before) is not np.ndarray:
            self._array[index] = value
            self._memory.write(int(self._places[index]), access, bool(before != self._array[index]))
            return
        before = before.copy()
        self._array[index] = value
        changed = before != self._array[index]
        for place, changes in zip(self._places[index].reshape(-1).tolist(), changed.reshape(-1).tolist(), strict=True):
            self._memory.write(place, access, changes)

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._read_all(self._places, _access())
        return np.array(self._array, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def reshape(self, *shape: Any) -> LoggedArray:
        return LoggedArray(self._array.reshape(*shape), self._memory, self._places.reshape(*shape))

    def view(self, dtype: Any) -> LoggedArray:
        """Return a view with another data type. An access to a value counts as one to the first cell in it."""
        seen = self._array.view(dtype)
        each = self._array.shape[-1] // seen.shape[-1]
        return LoggedArray(seen, self._memory, self._places[..., ::each])

    def _read_all(self, places: np.ndarray, access: Access) -> None:
        for place in places.reshape(-1).tolist():
            self._memory.read(place, access)


log: RaceLog | None = None  # the active log
turn: Turn | None = None  # the running thread; None if its block is not watched


@contextmanager
def race_log(logged: Counter[CodeType]) -> Iterator[RaceLog]:
    """Log the launches of this process during the block. Logs that share `logged` share one limit of accesses."""
    global log
    log = RaceLog(logged)
    try:
        yield log
    finally:
        log = None


def poisoned(shape: Any, number: np.dtype) -> np.ndarray:
    """Return an array filled with a value that no graph has, which exposes reads of uninitialised memory."""
    return np.full(shape, POISON.get((number.kind, number.itemsize), 1), number)


def watches(function: CodeType) -> bool:
    """Return True if the next block of that function is to be logged."""
    return log is not None and log.logged[function] < MAX_ACCESSES


def shared(array: np.ndarray) -> Any:
    """Return a block's shared array, logged if the block is watched."""
    return array if log is None or turn is None else LoggedArray(array, _LoggedMemory(log, "shared"))


def in_global(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a launch's arguments with logged arrays; an array that is passed twice is one memory."""
    if log is None:
        return arguments
    arrays = {at: one for at, one in enumerate(arguments) if isinstance(one, np.ndarray)}
    memories = {one.__array_interface__["data"][0]: _LoggedMemory(log, "global") for one in arrays.values()}
    logged = {at: LoggedArray(one, memories[one.__array_interface__["data"][0]]) for at, one in arrays.items()}
    return tuple(logged.get(at, one) for at, one in enumerate(arguments))


def kernel_frame(frame: FrameType) -> FrameType:
    """Return the innermost frame of kernel code."""
    while frame.f_code.co_filename in _INSIDE and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _access() -> Access:
    """Return the access that called a method of LoggedArray."""
    assert turn is not None
    frame = sys._getframe(2)
    atomic = frame.f_code.co_filename == _ATOMIC
    turn.block.ordered |= atomic
    turn.block.accesses += 1
    frame = kernel_frame(frame)
    return Access(frame.f_code, frame.f_lasti, turn, atomic)


def _line(at: At) -> str:
    """Return the line of an instruction as file.py:12."""
    code, instruction = at
    lines = (line for first, last, line in code.co_lines() if first <= instruction < last and line is not None)
    return f"{Path(code.co_filename).name}:{next(lines, code.co_firstlineno)}"


def pair(index: Sequence[int]) -> str:
    x, y, z = index
    return f"({x}, {y}, {z})" if z else f"({x}, {y})"
