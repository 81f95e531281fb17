"""The description of an algorithm: a plan, which is data, and a program that launches it.

Everything here is plain Python. Nothing imports numba, so replay, lessons, costs and pictures read the same
plans that the GPU runs.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

WARP = 32  # threads that run in step, on every NVIDIA GPU
DTYPES = ("float32", "int32", "int16", "float64")
FLOATS = ("float32", "float64")  # of DTYPES, those of numbers that are not whole
ITEMSIZE: Mapping[str, int] = {"float32": 4, "int32": 4, "int16": 2, "float64": 8}
EVERY = -1  # the rank of a step that all ranks launch together
MAX_N = 1 << 18  # vertices of kernels that need no whole matrix on one device; the others take less
# "no edge"; integer sentinels leave room for one addition without wrapping
NO_EDGE: Mapping[str, float | int] = {"float32": float("inf"), "int32": 2**30 - 1, "int16": 0x3FFF, "float64": float("inf")}
NO_PREDECESSOR = -9999  # as in scipy.sparse.csgraph


class Rect(NamedTuple):
    """A rectangle of the padded matrix in vertices, half-open; buffer 0 is the distance matrix."""

    top: int
    left: int
    bottom: int
    right: int
    buffer: int = 0

    @property
    def area(self) -> int:
        return (self.bottom - self.top) * (self.right - self.left)

    def overlaps(self, other: Rect) -> bool:
        return (
            self.buffer == other.buffer
            and self.top < other.bottom
            and other.top < self.bottom
            and self.left < other.right
            and other.left < self.right
        )


def crossing(size: int, low: int, high: int, buffer: int = 0) -> tuple[Rect, Rect]:
    """The rows and the columns low..high of a matrix: what every task reads besides its own cell for those middle vertices."""
    return Rect(low, 0, high, size, buffer), Rect(0, low, size, high, buffer)


class Cost(NamedTuple):
    """The cost model of a step: relaxations, bytes requested from device memory, bytes over PCIe."""

    relaxations: int
    device_bytes: int
    link_bytes: int = 0

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        return cls(*map(sum, zip(*costs, strict=True)))


@dataclass(frozen=True, slots=True)
class Step:
    """A launch: pure data, in an order that is always a valid serial order."""

    op: str  # which compiled function of the Program
    phase: str  # key of Kernel.phases
    args: tuple[int, ...]  # the launch's integers (round, offsets, k range)
    cost: Cost
    reads: tuple[Rect, ...]
    writes: tuple[Rect, ...]
    lane: int = 0  # stream; the higher of two ready lanes goes first
    after: tuple[int, ...] = ()  # earlier steps on other lanes that must have finished
    rank: int = 0  # the process that launches it, on its own lanes; EVERY: all of them together


class Supernode(NamedTuple):
    """Vertices that are eliminated together, in a tree in which only ancestors and descendants have tiles in common."""

    size: int
    parent: int  # its number, which is greater than that of each child; -1: none
    above: int  # ancestors that an edge joins to its subtree: all other paths from there lead through these


class Level(NamedTuple):
    """Supernodes of one height, whose rows lie side by side."""

    first: int  # row
    end: int
    members: tuple[int, ...]  # numbers of supernodes
    starts: tuple[int, ...]  # the first row of each


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """An order of a sparse graph's vertices: the root's rows come first, the leaves' last."""

    supernodes: tuple[Supernode, ...]
    directed: bool = True  # whether two vertices may have different distances there and back
    factor: Any = field(default=None, repr=False, compare=False)  # the vertices; a picture of the plan does without

    def levels(self, tile: int, itemsize: int) -> tuple[Level, ...]:
        """Return the levels in whole tiles. A supernode's rows begin at a cell from which four words may be loaded at once."""
        return _levels(self, tile, row_alignment(itemsize))

    def extra_cells(self, tile: int, itemsize: int) -> int:
        """Return the cells of all fronts and, if the graph is directed, of the distances to separators."""
        sides = [(-(-node.size // tile) - -node.above // tile) * tile for node in self.supernodes]
        last = self.levels(tile, itemsize)[-1]
        return sum(sides) * max(sides) + self.directed * last.first * last.end


def row_alignment(itemsize: int) -> int:
    """Return the cells to which the rows of a supernode are padded."""
    return max(4, 16 // itemsize)


@lru_cache(maxsize=32)
def _levels(order: EliminationOrder, tile: int, alignment: int) -> tuple[Level, ...]:
    heights = [0] * len(order.supernodes)
    for number, node in enumerate(order.supernodes):
        if node.parent >= 0:
            heights[node.parent] = max(heights[node.parent], heights[number] + 1)
    members: list[list[int]] = [[] for _ in range(max(heights) + 1)]
    for number, height in enumerate(heights):
        members[-1 - height].append(number)
    levels: list[Level] = []
    for level in members:
        at = first = levels[-1].end if levels else 0
        starts = [first]
        for number in level:
            at += -(-order.supernodes[number].size // alignment) * alignment
            starts.append(at)
        levels.append(Level(first, -(-at // tile) * tile, tuple(level), tuple(starts[:-1])))
    return tuple(levels)


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that decides a kernel's plan and its compiled form."""

    n: int  # vertices asked for
    tile: int = 1  # 1 for a kernel without tiles
    dtype: str = "float32"
    memory: str = "device"
    nonnegative: bool = True
    options: tuple[tuple[str, int], ...] = ()  # the kernel's own choices, sorted by name
    ranks: int = 1  # processes that share the matrix, each with every ranks-th row of tiles
    order: EliminationOrder | None = None  # of the vertices, for a kernel that leaves out what a sparse graph does not need

    @property
    def padded(self) -> int:
        """n rounded up to a multiple of the tile, or each level's rows; the extra vertices have no edges."""
        if self.order is not None:
            return self.order.levels(self.tile, self.itemsize)[-1].end
        return -(-self.n // self.tile) * self.tile

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def word_bytes(self) -> int:
        """Bytes of a word: the register, or pair of registers, that holds a distance; two of int16 share one."""
        return max(4, self.itemsize)

    @property
    def rows(self) -> int:
        """The most rows of the padded matrix that a rank holds."""
        return -(-self.padded // self.tile // self.ranks) * self.tile

    def spans(self, rank: int) -> list[tuple[int, int]]:
        """First row and end of each row of tiles that a rank holds, in order; the padding belongs to the last one."""
        return [(low, low + self.tile) for low in range(rank * self.tile, self.padded, self.ranks * self.tile)]

    def option(self, name: str) -> int:
        return dict(self.options)[name]


class Link(Protocol):
    """The interface through which the ranks of a program exchange data."""

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        """Overwrite the array on every rank with the owner's; every rank calls it, in the same order.

        Returns a function that waits until the array is there; on a GPU what follows on the stream waits by itself.
        """
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """The device a program is built for; cc is None on a CPU."""

    backend: str  # "cpu" | "cuda" | "simulator"
    cc: tuple[int, int] | None = None
    multiprocessors: int = 0
    shared_per_block: int = 49152
    rank: int = 0  # of the ranks of its shape
    link: Link | None = None  # to the other ranks; None: one program holds what all of them hold


@dataclass(frozen=True, slots=True)
class Option:
    """A choice that belongs to one kernel; the form and the command line are made from it."""

    name: str
    values: tuple[int, ...]
    default: int
    help: str
    names: tuple[str, ...] = ()  # names of the values in the form, in order

    @property
    def words(self) -> Mapping[str, int]:
        """Return the names of the values, in order: empty if they have none, no and yes by default for 0 and 1."""
        return dict(zip(self.names or (("no", "yes") if self.values == (0, 1) else ()), self.values, strict=False))

    def read(self, text: str) -> int | None:
        """The whole number in a text, which need not be offered, or the value that it names; None for any other text."""
        try:
            return int(text)
        except ValueError:
            return self.words.get(text.strip().lower())


class Resources(NamedTuple):
    """The resources that the compiler assigned to one op, for a block of the given threads; bytes are per block or per thread."""

    threads: int
    registers: int
    shared_bytes: int
    spill_bytes: int = 0
    blocks_per_multiprocessor: int | None = None  # from the driver's calculator, if there is a driver


Buffers = Sequence[Any]


class Program(Protocol):
    """A kernel compiled for one shape and target. Addresses never change after allocate(): a captured graph holds them.

    Inherit from it: the default methods suit every program, and some override them with fewer copies. A program keeps only
    its buffers from a run, so it can be reused with others.
    """

    shape: Shape
    home: Literal["host", "device"] = "host"  # whose memory fill() writes and result() is in
    in_parts: bool = False  # whether load() and unload() are made of copy_in() and pack(), unpack() and copy_out()
    repeatable: bool = True  # whether a repeated copy takes as long as the first
    reorders: bool = False  # whether pack() and unpack() do anything

    @abstractmethod
    def allocate(self) -> Buffers:
        """Buffers for the padded matrix, once."""

    def free(self) -> None:
        """Free buffers of other processes; those of this one end when nobody refers to them."""

    @abstractmethod
    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        """Copy an n x n host matrix in and lay it out; also keep what restore() needs."""

    @abstractmethod
    def restore(self, buffers: Buffers, stream: Any) -> None:
        """Restore the loaded input, outside the clock."""

    @abstractmethod
    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        """Start one step; asynchronous on a GPU, whose stream may be capturing."""

    @abstractmethod
    def unload(self, buffers: Buffers, stream: Any) -> Any:
        """The n x n result as a host array of the shape's dtype, sentinels as computed."""

    def copy_in(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        """Copy the n x n host matrix to the kernels' memory, row by row; return when it has arrived."""

    def pack(self, buffers: Buffers, stream: Any) -> None:
        """Convert the copied matrix to the kernel's order."""

    def unpack(self, buffers: Buffers, stream: Any) -> None:
        """Convert the result to row-major order."""

    def copy_out(self, buffers: Buffers, stream: Any) -> Any:
        """The n x n result, after unpack(), as a host array."""

    def resources(self) -> Mapping[str, Resources]:
        """Resources per op, after the first launch; empty on a CPU."""
        return {}

    def prepare(self, buffers: Buffers, stream: Any) -> None:
        """Compile whatever the parts of load() and unload() launch, and make the buffers ready for any launch."""
        self.fill(lambda matrix: matrix.fill(0), buffers, stream)

    def compile(self, steps: Iterable[Step], buffers: Buffers, stream: Any) -> None:
        """Compile what the steps launch, one of each op, by launching them; the buffers' contents are lost."""
        self.prepare(buffers, stream)
        for step in steps:
            self.launch(step, buffers, stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        """Like load(), for a single run: `write` puts the matrix into the given row-major array.

        The array is n x n or larger; the padding has no edges.
        """
        import numpy as np

        matrix = np.empty((self.shape.n, self.shape.n), self.shape.dtype)
        write(matrix)
        self.load(matrix, buffers, stream)
        self.restore(buffers, stream)

    def result(self, buffers: Buffers, stream: Any) -> Any:
        """Like unload(), without a copy if possible: the corner of a row-major array, which the caller may change."""
        return self.unload(buffers, stream)

    def weights(self, buffers: Buffers) -> Any | None:
        """The input matrix, if it still exists besides the result: n x n or larger, row-major, on the device."""
        return None


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """An algorithm that a user can choose. `plan` is pure; only `build` needs numba."""

    id: str
    title: str
    backend: str = "cuda"  # or "cpu"
    papers: tuple[str, ...]
    phases: Mapping[str, str] = field(default_factory=lambda: {"all": "all rounds"})  # key -> title
    plan: Callable[[Shape, bool], Iterator[Step]]
    build: Callable[[Shape, Target], Program]
    summary: str  # one sentence: the idea
    lesson: str  # a paragraph: why it suits the hardware or not
    dtypes: tuple[str, ...] = DTYPES
    tiles: tuple[int, ...] = ()  # empty: the kernel has no tiles
    default_tile: int = 1
    small_tile: tuple[int, int] | None = None  # largest n with this tile as the default
    # also those of small graphs that are followed over several ranks; none: those of the kernel
    simulator_tiles: tuple[int, ...] = (4, 8)
    wide_tiles: tuple[int, ...] = ()  # those of distances of 8 bytes, if not all tiles leave room for them
    options: tuple[Option, ...] = ()
    launch_modes: tuple[str, ...] = ("eager",)
    memories: tuple[str, ...] = ("device",)
    max_n: int = 1 << 16
    matrices: int = 1  # in memory at once, besides the kept input
    itemsize: int = 0  # bytes of its own numbers, where they are not those that were asked for
    scalar: bool = False  # a library's loop that is known to do one relaxation an instruction
    host_bytes: int = 0  # per cell, that it needs on the host besides its matrices
    compiles: bool = True  # False: the first launch compiles nothing
    simulates: bool = True  # False: the simulator does not run it
    refuses: Callable[[Shape], str | None] = field(default=lambda shape: None)  # a sentence, or None
    lacks: Callable[[Shape, Target], str | None] = field(default=lambda shape, target: None)  # what the device cannot do
    preference: int = 0  # auto and solve pick the suitable kernel with the highest; 0: only by its name
    once: Callable[[Shape], Shape] = field(default=lambda shape: shape)  # tile and options for a graph that runs once, for solve
    # for a kernel that streams tiles: the shape with the tile for that many bytes of device memory, None if none fits
    streams: Callable[[Shape, int], Shape | None] | None = None
    ranked: bool = False  # whether several processes can share the matrix
    # for such a kernel: its plan for a picture, in which what all ranks do at the same time is one step
    together: Callable[[Shape], Iterator[Step]] | None = None
    # for a kernel that takes sparse graphs: the shape with the order of the vertices that suits the matrix, or the
    # sources and targets of the arcs
    ordered: Callable[[Shape, Any], Shape] | None = None
    numbered: bool = False  # whether a step's first arg is its round from 0; otherwise a round begins with the first phase

    @property
    def defaults(self) -> tuple[tuple[str, int], ...]:
        """Its default options in the form of a Shape."""
        return tuple(sorted((option.name, option.default) for option in self.options))

    def tiles_for(self, simulated: bool, dtype: str = DTYPES[0]) -> tuple[int, ...]:
        """Tile sizes to choose from; small ones for the slow simulator, where the kernel has them."""
        if simulated and self.tiles and self.simulator_tiles:
            return self.simulator_tiles
        return (self.wide_tiles or self.tiles) if ITEMSIZE.get(dtype) == 8 else self.tiles

    def tile_for(self, n: int, simulated: bool = False, dtype: str = DTYPES[0]) -> int:
        """The default tile for n vertices (n = 0 if not known); 0 for a kernel without tiles."""
        tiles = self.tiles_for(simulated, dtype)
        if not tiles:
            return 0
        tile = self.small_tile[1] if self.small_tile and 0 < n <= self.small_tile[0] else self.default_tile
        return tile if tile in tiles else tiles[-1]

    def fitted(self, shape: Shape, free: int) -> Shape | None:
        """The shape with which a run fits that many bytes of device memory, or None."""
        if self.streams is not None:
            return self.streams(shape, free)
        extra = 0 if shape.order is None else shape.order.extra_cells(shape.tile, shape.itemsize)
        cells = (self.matrices + 1) * shape.rows * shape.padded + extra
        return shape if cells * shape.itemsize <= free else None

    def largest_n(self, dtype: str, free: int) -> int:
        """The most vertices with which a run fits that many bytes of device memory, in whole tiles."""
        tile = min(self.tiles, default=1)
        sizes = range(tile, self.max_n + 1, tile)
        return tile * bisect_left(sizes, True, key=lambda n: self.fitted(Shape(n, tile, dtype), free) is None)

    def places(self, rects: Iterable[Rect]) -> tuple[Rect, ...]:
        """The rectangles in any of the kernel's matrices; other buffers hold copies."""
        return tuple(rect._replace(buffer=0) for rect in rects if rect.buffer < self.matrices)

    def rounds(self, steps: Iterable[Step]) -> Iterator[tuple[int, Step]]:
        """Yield each step with its round, from 1; with a single phase each step is a round."""
        opening = next(iter(self.phases))
        current, before = 0, ""
        for step in steps:
            if self.numbered:
                current = step.args[0] + 1
            elif len(self.phases) == 1 or (step.phase == opening and before != opening):
                current += 1
            before = step.phase
            yield max(current, 1), step
