"""What the threads of a simulated launch do to memory between two barriers, and which of them meet: a race check.

Two accesses to one cell meet where at least one writes, neither is ordered by a barrier or by the end of the launch, and not both
are atomic. A write that leaves the value as it was harms nobody, and is told apart.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

# of kinds of numbers: so short that a path over it shows in every result, and two of them can be added
POISON = {("f", 4): -1e6, ("f", 8): -1e6, ("i", 8): -(2**20), ("i", 4): -(2**20), ("i", 2): -(2**13)}
_MOST_RACES, _MOST_UNWRITTEN = 100, 10_000  # pairs of lines, and cells
_MOST_ACCESSES = 60_000  # of a function, after which no further block of it is looked at
_ATOMIC = str(Path(__file__).with_name("simulator.py"))  # accesses no memory but in atomic operations
# code that accesses memory for a kernel
_INSIDE = {_ATOMIC, __file__, str(Path(__file__).with_name("simulator_intrinsics.py"))}
At = tuple[CodeType, int]  # an instruction; its line is looked up where it is told


class SimulatedBlock:
    """A block of a launch. `ordered`: it has used an atomic operation, by which it may have waited for others."""

    def __init__(self, index: tuple[int, ...], threads: int):
        self.index, self.threads, self.ordered, self.accesses = index, threads, False, 0


class Turn:
    """A thread from one barrier to the next, after as many barriers as `interval` and, of the grid, `grid_interval` say."""

    __slots__ = ("block", "grid_interval", "interval", "thread")

    def __init__(self, block: SimulatedBlock, interval: int, grid_interval: int, thread: tuple[int, ...]):
        self.block, self.interval, self.grid_interval, self.thread = block, interval, grid_interval, thread

    def meets(self, other: Turn) -> bool:
        """Return whether neither a barrier nor an atomic operation orders this turn after the other one."""
        if other.block is self.block:
            return other is not self and self.interval == other.interval
        return self.grid_interval == other.grid_interval and not self.block.ordered


class KernelLine(NamedTuple):
    """A line of a kernel."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Race(NamedTuple):
    """Two accesses that nothing orders; the first is a read if one of them is."""

    memory: str  # shared or global
    reads: bool
    at: KernelLine
    by: Turn
    written_at: KernelLine
    written_by: Turn
    harms: bool  # whether the write changed the value

    def __str__(self) -> str:
        does = "reads what" if self.reads else "writes where"
        if self.by.block is not self.written_by.block:
            one, other = (f"block {pair(turn.block.index)}" for turn in (self.by, self.written_by))
            return f"{self.at} of {one} {does} {self.written_at} of {other} writes in the same launch; blocks run in any order"
        words = f"{self.at} {does} {self.written_at} of thread {pair(self.written_by.thread)} writes"
        return f"{words} in {self.memory} memory; no barrier between"


class RaceLog:
    """All that was found since it was made; it looks on while it is the one of `watching`.

    `looked_at` counts accesses by function: of one that had very many no further block is looked at.
    """

    def __init__(self, looked_at: Counter[CodeType]) -> None:
        self.looked_at = looked_at
        self._races: dict[tuple[At, At, bool], Race] = {}
        self._unread: list[_Cell] = []
        self.divergence = ""

    @property
    def races(self) -> Sequence[Race]:
        """Those in shared memory before those in global memory, and what harms before what does not."""
        return sorted(self._races.values(), key=lambda race: (not race.harms, race.memory == "global"))

    def meet(self, memory: str, reads: bool, one: tuple[At, Turn], write: tuple[At, Turn], harms: bool) -> None:
        key = (one[0], write[0], harms)
        if key not in self._races and len(self._races) < _MOST_RACES:
            self._races[key] = Race(memory, reads, _place(one[0]), one[1], _place(write[0]), write[1], harms)

    @property
    def unwritten(self) -> KernelLine | None:
        """A line that reads shared memory which no thread has written, or none until the next barrier."""
        return next((_place(cell.unwritten_at) for cell in self._unread if cell.unwritten_at is not None), None)

    def reads_nothing(self, cell: _Cell) -> None:
        if len(self._unread) < _MOST_UNWRITTEN:
            self._unread.append(cell)

    def barrier(self, block: SimulatedBlock, waiting: Sequence[At]) -> None:
        """Note where threads of the block wait; the others have ended."""
        places = Counter(waiting)
        ended = block.threads - places.total()
        if self.divergence or (len(places) == 1 and not ended):
            return
        counts = [f"{count} wait at {_place(at)}" for at, count in places.most_common()] + [f"{ended} have ended"] * bool(ended)
        counts_words = f"of the {block.threads} threads of block {pair(block.index)} {', '.join(counts[:-1])} and {counts[-1]}"
        self.divergence = f"{counts_words}, and all have to come to the same barrier"


@dataclass(slots=True)
class _Cell:
    """The last accesses to a cell: who wrote, who wrote another value than was there, and two who read; and from where."""

    writer: Turn | None = None
    written_at: Any = None  # an At, as all that follow
    changer: Turn | None = None
    changed_at: Any = None
    reader: Turn | None = None
    read_at: Any = None
    before: Turn | None = None  # who read before that one
    before_at: Any = None
    atomic: bool = False  # the last write
    unwritten_at: At | None = None  # where it was read before it was written
    unwritten_in: int = 0


class _LoggedMemory:
    """An array's cells."""

    def __init__(self, log: RaceLog, size: int, kind: str):
        self.log, self.kind = log, kind
        self._cells: list[_Cell | None] = [None] * size

    def _cell(self, place: int) -> _Cell:
        cell = self._cells[place]
        if cell is None:
            cell = self._cells[place] = _Cell()
        return cell

    def read(self, place: int, turn: Turn, at: At, atomic: bool) -> None:
        cell = self._cell(place)
        if cell.writer is None and cell.unwritten_at is None and self.kind == "shared":
            cell.unwritten_at, cell.unwritten_in = at, turn.interval
            self.log.reads_nothing(cell)
        if not (atomic and cell.atomic):
            if cell.changer is not None and turn.meets(cell.changer):
                self.log.meet(self.kind, True, (at, turn), (cell.changed_at, cell.changer), True)
            elif cell.writer is not None and turn.meets(cell.writer) and self.kind == "shared":
                self.log.meet(self.kind, True, (at, turn), (cell.written_at, cell.writer), False)
        if not atomic and cell.reader is not turn:
            cell.before, cell.before_at = cell.reader, cell.read_at if cell.reader is not None else at
            cell.reader, cell.read_at = turn, at

    def write(self, place: int, turn: Turn, at: At, atomic: bool, changes: bool) -> None:
        cell = self._cell(place)
        if changes or self.kind == "shared":
            for reader, read_at in ((cell.reader, "read_at"), (cell.before, "before_at")):
                if reader is not None and turn.meets(reader):
                    self.log.meet(self.kind, True, (getattr(cell, read_at), reader), (at, turn), changes)
            if cell.writer is not None and not (atomic and cell.atomic) and turn.meets(cell.writer):
                self.log.meet(self.kind, False, (at, turn), (cell.written_at, cell.writer), changes)
        if cell.unwritten_at is not None and cell.unwritten_in == turn.interval:
            cell.unwritten_at = None  # the threads race
        cell.writer, cell.written_at, cell.atomic = turn, at, atomic
        if changes:
            cell.changer, cell.changed_at = turn, at


class LoggedArray:
    """An array as a kernel sees it, or a part of one, that tells the log of each access."""

    def __init__(self, array: np.ndarray, memory: _LoggedMemory, places: np.ndarray | None = None):
        self._array, self._memory = array, memory
        self._places = np.arange(array.size).reshape(array.shape) if places is None else places

    def __getitem__(self, index: Any) -> Any:
        part = self._array[index]
        if type(part) is not np.ndarray:
            turn, at, atomic = _who()
            self._memory.read(int(self._places[index]), turn, at, atomic)
            return part
        if np.may_share_memory(part, self._array):
            return LoggedArray(part, self._memory, self._places[index])
        self._all(index)
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        turn, at, atomic = _who()
        before = self._array[index]
        if type(before) is not np.ndarray:
            self._array[index] = value
            self._memory.write(int(self._places[index]), turn, at, atomic, bool(before != self._array[index]))
            return
        before = before.copy()
        self._array[index] = value
        changed = (before != self._array[index]).reshape(-1)
        for place, changes in zip(self._places[index].reshape(-1).tolist(), changed.tolist(), strict=True):
            self._memory.write(place, turn, at, atomic, changes)

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._all(...)
        return np.array(self._array, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def reshape(self, *shape: Any) -> LoggedArray:
        return LoggedArray(self._array.reshape(*shape), self._memory, self._places.reshape(*shape))

    def view(self, dtype: Any) -> LoggedArray:
        """As other numbers: of the cells in one such number the first stands for all."""
        seen = self._array.view(dtype)
        each = self._array.shape[-1] // seen.shape[-1]
        return LoggedArray(seen, self._memory, self._places[..., ::each])

    def _all(self, index: Any) -> None:
        turn, at, atomic = _who()
        for place in self._places[index].reshape(-1).tolist():
            self._memory.read(place, turn, at, atomic)


log: RaceLog | None = None  # the one that looks on
turn: Turn | None = None  # whose it is now; None: what this block does is not looked at


@contextmanager
def watching(looked_at: Counter[CodeType]) -> Iterator[RaceLog]:
    """Look at the launches of this process meanwhile; gives their log.

    What several logs count together limits how long all of them take.
    """
    global log
    log = RaceLog(looked_at)
    try:
        yield log
    finally:
        log = None


def poisoned(shape: Any, number: np.dtype) -> np.ndarray:
    """Return an array of numbers that no graph has, as a kernel must not read what nobody has written."""
    return np.full(shape, POISON.get((number.kind, number.itemsize), 1), number)


def wants(function: CodeType) -> bool:
    """Whether a block of that function is to be looked at."""
    return log is not None and log.looked_at[function] < _MOST_ACCESSES


def shared(array: np.ndarray) -> Any:
    """A block's array in shared memory as its threads see it."""
    return array if log is None or turn is None else LoggedArray(array, _LoggedMemory(log, array.size, "shared"))


def in_global(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a launch's arguments with logged arrays in place of those in global memory; one that is passed twice is one."""
    if log is None:
        return arguments
    memories: dict[int, _LoggedMemory] = {}

    def logged(array: np.ndarray) -> LoggedArray:
        assert log is not None
        first = array.__array_interface__["data"][0]
        return LoggedArray(array, memories.setdefault(first, _LoggedMemory(log, array.size, "global")))

    return tuple(logged(one) if isinstance(one, np.ndarray) else one for one in arguments)


def came_to_barrier(block: SimulatedBlock, function: CodeType, waiting: Sequence[At]) -> None:
    """Note that these threads of a watched block wait, each at its barrier, and that all its other threads have ended."""
    if log is None:
        return
    log.looked_at[function] += block.accesses
    block.accesses = 0
    if waiting:
        log.barrier(block, waiting)


def at_in_kernel(frame: FrameType) -> At:
    """Return the instruction of the innermost frame that is the kernel's own."""
    while frame.f_code.co_filename in _INSIDE and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def _who() -> tuple[Turn, At, bool]:
    """Return whose access it is, from where, and whether it is part of an atomic operation."""
    assert turn is not None
    frame = sys._getframe(2)
    atomic = frame.f_code.co_filename == _ATOMIC
    turn.block.ordered |= atomic
    turn.block.accesses += 1
    return turn, at_in_kernel(frame), atomic


def _place(at: At) -> KernelLine:
    code, instruction = at
    lines = (line for first, last, line in code.co_lines() if first <= instruction < last and line is not None)
    return KernelLine(Path(code.co_filename).name, next(lines, code.co_firstlineno), code.co_name)


def pair(index: Sequence[int]) -> str:
    x, y, z = index
    return f"({x}, {y}, {z})" if z else f"({x}, {y})"
