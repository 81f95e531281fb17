"""The types of an algorithm: its plan, which is data, and the program that launches it.

Everything here is plain Python without numba, so that replay, lessons, costs and pictures read the plans that the GPU runs.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

WARP = 32  # threads of a warp, on every NVIDIA GPU
DTYPES = ("float32", "int32", "int16", "float64")
FLOATS = ("float32", "float64")  # the floating-point types in DTYPES
ITEMSIZE: Mapping[str, int] = {"float32": 4, "int32": 4, "int16": 2, "float64": 8}
EVERY = -1  # the rank of a step that all ranks launch together
MAX_N = 1 << 18  # maximum vertices of kernels that do not hold the whole matrix on one device
# the value of a missing edge; integer sentinels do not overflow in one addition
NO_EDGE: Mapping[str, float | int] = {"float32": float("inf"), "int32": 2**30 - 1, "int16": 0x3FFF, "float64": float("inf")}
NO_PREDECESSOR = -9999  # the value of scipy.sparse.csgraph


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
    """Return the rows and the columns low..high of a matrix, which every cell reads for these intermediate vertices."""
    return Rect(low, 0, high, size, buffer), Rect(0, low, size, high, buffer)


class Cost(NamedTuple):
    """The modelled cost of a step: relaxations, bytes requested from device memory, bytes over PCIe."""

    relaxations: int
    device_bytes: int
    link_bytes: int = 0

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        return cls(*map(sum, zip(*costs, strict=True)))


@dataclass(frozen=True, slots=True)
class Step:
    """A launch, as data. The order of a plan's steps is a valid serial order."""

    op: str  # name of the program's compiled function
    phase: str  # key of Kernel.phases
    args: tuple[int, ...]  # the launch's integers (round, offsets, k range)
    cost: Cost
    reads: tuple[Rect, ...]
    writes: tuple[Rect, ...]
    lane: int = 0  # stream; of two ready ones the higher number has priority
    after: tuple[int, ...] = ()  # earlier steps on other streams that must have finished
    rank: int = 0  # the process that launches it, on its streams; EVERY: all processes together


class Supernode(NamedTuple):
    """Vertices that are eliminated together; in the tree of supernodes only ancestors and descendants share tiles."""

    size: int
    parent: int  # number of the parent, greater than that of each child; -1 for a root
    above: int  # ancestors adjacent to its subtree, through which every path out of the subtree leads


class Level(NamedTuple):
    """Supernodes of one height, whose rows are contiguous."""

    first: int  # row
    end: int
    members: tuple[int, ...]  # numbers of supernodes
    starts: tuple[int, ...]  # the first row of each


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """An elimination ordering of a sparse graph. In the matrix, the root's rows come first and the leaves' last."""

    supernodes: tuple[Supernode, ...]
    directed: bool = True  # False if d(i, j) = d(j, i) for all pairs
    factor: Any = field(default=None, repr=False, compare=False)  # parts.ordering.Factor; None in the plan of a picture

    def levels(self, tile: int, itemsize: int) -> tuple[Level, ...]:
        """Return the levels in whole tiles. A supernode's rows begin at a cell from which four words may be loaded at once."""
        return _levels(self, tile, row_alignment(itemsize))

    def front_cells(self, tile: int) -> int:
        """Return the cells of all fronts."""
        sides = [(-(-node.size // tile) - -node.above // tile) * tile for node in self.supernodes]
        return sum(sides) * max(sides)


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
    """Everything on which a kernel's plan and its compiled form depend."""

    n: int  # vertices, without padding
    tile: int = 1  # 1 for a kernel without tiles
    dtype: str = "float32"
    memory: str = "device"
    nonnegative: bool = True
    options: tuple[tuple[str, int], ...] = ()  # the kernel's options, sorted by name
    ranks: int = 1  # processes that share the matrix, each with every ranks-th row of tiles
    order: EliminationOrder | None = None  # for the sparse rungs

    @property
    def padded(self) -> int:
        """The rows of the matrix: n, or the rows of each level, in whole tiles. The extra vertices have no edges."""
        if self.order is not None:
            return self.order.levels(self.tile, self.itemsize)[-1].end
        return -(-self.n // self.tile) * self.tile

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def word_bytes(self) -> int:
        """Bytes of a word: a register or a pair of registers. It holds one distance, or two of int16."""
        return max(4, self.itemsize)

    @property
    def rows(self) -> int:
        """The maximum rows of the padded matrix that a rank holds."""
        return -(-self.padded // self.tile // self.ranks) * self.tile

    def spans(self, rank: int) -> list[tuple[int, int]]:
        """Return the first row and the end of each row of tiles that a rank holds; the last one includes the padding."""
        return [(low, low + self.tile) for low in range(rank * self.tile, self.padded, self.ranks * self.tile)]

    def option(self, name: str) -> int:
        return dict(self.options)[name]


class Link(Protocol):
    """The interface through which the ranks of a program exchange data."""

    def broadcast(self, array: Any, owner: int, stream: Any) -> Callable[[], object]:
        """Overwrite the array on every rank with the owner's. All ranks must make the same calls in the same order.

        Returns a function that waits for the array. On a GPU later work on the stream waits without it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """The device for which a program is built."""

    backend: str  # "cpu" | "cuda" | "simulator"
    cc: tuple[int, int] | None = None  # compute capability; None on a CPU and in the simulator
    multiprocessors: int = 0
    rank: int = 0  # number of this rank
    link: Link | None = None  # to the other ranks; None if there are none


@dataclass(frozen=True, slots=True)
class Option:
    """A choice of one kernel, shown in the form and on the command line."""

    name: str
    values: tuple[int, ...]
    default: int
    help: str
    names: tuple[str, ...] = ()  # names of the values in the form, in order

    @property
    def value_names(self) -> Mapping[str, int]:
        """The values by name; no and yes by default for 0 and 1, empty for other values without names."""
        return dict(zip(self.names or (("no", "yes") if self.values == (0, 1) else ()), self.values, strict=False))

    def read(self, text: str) -> int | None:
        """Return the integer in a text, which may be outside `values`, or the value of that name; None for any other text."""
        try:
            return int(text)
        except ValueError:
            return self.value_names.get(text.strip().lower())


class Resources(NamedTuple):
    """The compiled resources of one op."""

    threads: int  # per block
    registers: int  # per thread
    shared_bytes: int  # per block
    spill_bytes: int = 0  # per thread
    blocks_per_multiprocessor: int | None = None  # result of the driver's occupancy calculator; None without a driver


Buffers = Sequence[Any]


class Program(Protocol):
    """A kernel compiled for one shape and target. Inherit from it: the default methods are correct for every program.

    The addresses of its buffers never change after allocate(), because a CUDA graph holds them. A run's state is only in its
    buffers, so a program can be reused with other buffers.
    """

    shape: Shape
    home: Literal["host", "device"] = "host"  # memory that fill() writes and result() returns
    in_parts: bool = False  # True if load() is copy_in() and pack(), and unload() is unpack() and copy_out()
    repeatable: bool = True  # False if a repeated copy is faster than the first
    reorders: bool = False  # True if pack() and unpack() have work

    @abstractmethod
    def allocate(self) -> Buffers:
        """Allocate the buffers; called once."""

    def free(self) -> None:
        """Free buffers in other processes. Buffers of this process are freed with their last reference."""

    @abstractmethod
    def load(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        """Copy an n x n host matrix to the buffers in the kernel's order, with a copy for restore()."""

    @abstractmethod
    def restore(self, buffers: Buffers, stream: Any) -> None:
        """Restore the loaded input; not timed."""

    @abstractmethod
    def launch(self, step: Step, buffers: Buffers, stream: Any) -> None:
        """Launch one step; asynchronous on a GPU, whose stream may be capturing a graph."""

    @abstractmethod
    def unload(self, buffers: Buffers, stream: Any) -> Any:
        """Return the n x n result as a host array of the shape's dtype, with NO_EDGE for unreachable pairs."""

    def copy_in(self, matrix: Any, buffers: Buffers, stream: Any) -> None:
        """Copy the n x n host matrix to the device in row-major order, and wait for the copy."""

    def pack(self, buffers: Buffers, stream: Any) -> None:
        """Convert the copied matrix to the kernel's order."""

    def unpack(self, buffers: Buffers, stream: Any) -> None:
        """Convert the result to row-major order."""

    def copy_out(self, buffers: Buffers, stream: Any) -> Any:
        """Return the n x n result as a host array, after unpack()."""

    def resources(self) -> Mapping[str, Resources]:
        """Return the resources of each op after its first launch; empty on a CPU."""
        return {}

    def prepare(self, buffers: Buffers, stream: Any) -> None:
        """Compile the functions that load() and unload() launch, and initialise the buffers."""
        self.fill(lambda matrix: matrix.fill(0), buffers, stream)

    def compile(self, steps: Iterable[Step], buffers: Buffers, stream: Any) -> None:
        """Compile the ops of the steps by launching the steps, one per op. Overwrites the buffers."""
        self.prepare(buffers, stream)
        for step in steps:
            self.launch(step, buffers, stream)

    def fill(self, write: Callable[[Any], None], buffers: Buffers, stream: Any) -> None:
        """Load the matrix for a single run: `write` stores it in a row-major array, n x n or larger, padded without edges."""
        import numpy as np

        matrix = np.empty((self.shape.n, self.shape.n), self.shape.dtype)
        write(matrix)
        self.load(matrix, buffers, stream)
        self.restore(buffers, stream)

    def result(self, buffers: Buffers, stream: Any) -> Any:
        """Return a row-major array with the result in its corner, without a copy if possible. Callers may change it."""
        return self.unload(buffers, stream)

    def weights(self, buffers: Buffers) -> Any | None:
        """Return the input matrix on the device, row-major and n x n or larger; None if the result has replaced it."""
        return None


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """An algorithm that a user can choose. `plan` is a pure function; only `build` needs numba."""

    id: str
    title: str
    backend: str = "cuda"  # or "cpu"
    papers: tuple[str, ...]
    phases: Mapping[str, str] = field(default_factory=lambda: {"all": "all rounds"})  # key -> title
    plan: Callable[[Shape, bool], Iterator[Step]]
    build: Callable[[Shape, Target], Program]
    summary: str  # one sentence: the idea
    lesson: str  # a paragraph: the reasons for its speed
    dtypes: tuple[str, ...] = DTYPES
    tiles: tuple[int, ...] = ()  # empty for a kernel without tiles
    default_tile: int = 1
    small_tile: tuple[int, int] | None = None  # (maximum n, default tile up to this n)
    # tiles in the simulator and for small graphs on several ranks; empty for `tiles`
    simulator_tiles: tuple[int, ...] = (4, 8)
    wide_tiles: tuple[int, ...] = ()  # tiles for distances of 8 bytes; empty for `tiles`
    options: tuple[Option, ...] = ()
    launch_modes: tuple[str, ...] = ("eager",)
    memories: tuple[str, ...] = ("device",)
    max_n: int = 1 << 16
    matrices: int = 1  # working matrices in memory, without the input copy
    itemsize: int = 0  # bytes of its values, if it does not compute in the requested data type
    cores: int = 0  # CPU cores that it uses at most; 0: all
    host_bytes: int = 0  # host memory per cell, without its matrices
    compiles: bool = True  # False if the first launch compiles nothing
    simulates: bool = True  # False if the simulator does not run it
    refuses: Callable[[Shape], str | None] = field(default=lambda shape: None)  # an error sentence, or None
    lacks: Callable[[Shape, Target], str | None] = field(default=lambda shape, target: None)  # likewise, for the device
    preference: int = 0  # auto and solve choose the suitable kernel with the highest; 0: never chosen
    once: Callable[[Shape], Shape] = field(default=lambda shape: shape)  # tile and options for a single run, for solve
    # for a kernel that streams tiles: the shape with a tile for that many bytes of device memory, None if none fits
    streams: Callable[[Shape, int], Shape | None] | None = None
    ranked: bool = False  # True if several processes can share the matrix
    # for a ranked kernel: its plan for a picture, in which one step replaces the concurrent steps of all ranks
    together: Callable[[Shape], Iterator[Step]] | None = None
    # for a sparse kernel: the shape with the elimination order of a graph, given as its matrix or its arcs
    ordered: Callable[[Shape, Any], Shape] | None = None
    numbered: bool = False  # True if a step's first arg is its round, from 0; else a round begins with the first phase

    @property
    def defaults(self) -> tuple[tuple[str, int], ...]:
        """The default options in the form of Shape.options."""
        return tuple(sorted((option.name, option.default) for option in self.options))

    def tiles_for(self, simulated: bool, dtype: str = DTYPES[0]) -> tuple[int, ...]:
        """Return the tiles to choose from; in the simulator small ones, if the kernel has them."""
        if simulated and self.tiles and self.simulator_tiles:
            return self.simulator_tiles
        return (self.wide_tiles or self.tiles) if ITEMSIZE.get(dtype) == 8 else self.tiles

    def tile_for(self, n: int, simulated: bool = False, dtype: str = DTYPES[0]) -> int:
        """Return the default tile for n vertices (0 if unknown); 0 for a kernel without tiles."""
        tiles = self.tiles_for(simulated, dtype)
        if not tiles:
            return 0
        tile = self.small_tile[1] if self.small_tile and 0 < n <= self.small_tile[0] else self.default_tile
        return tile if tile in tiles else tiles[-1]

    def fitted(self, shape: Shape, free: int) -> Shape | None:
        """Return the shape with which a run fits into that many bytes of device memory; None if it does not fit."""
        if self.streams is not None:
            return self.streams(shape, free)
        return shape if self.bytes_of(shape) <= free else None

    def bytes_of(self, shape: Shape) -> int:
        """Return the bytes of device memory for a run of a kernel that does not stream."""
        front_cells = 0 if shape.order is None else shape.order.front_cells(shape.tile)
        return ((self.matrices + 1) * shape.rows * shape.padded + front_cells) * shape.itemsize

    def largest_n(self, dtype: str, free: int) -> int:
        """Return the maximum vertices, in whole tiles, with which a run fits into that many bytes of device memory."""
        tile = min(self.tiles, default=1)
        sizes = range(tile, self.max_n + 1, tile)
        return tile * bisect_left(sizes, True, key=lambda n: self.fitted(Shape(n, tile, dtype), free) is None)

    def places(self, rects: Iterable[Rect]) -> tuple[Rect, ...]:
        """Return the rectangles of the kernel's matrices as buffer 0, without those of other buffers, which hold copies."""
        return tuple(rect._replace(buffer=0) for rect in rects if rect.buffer < self.matrices)

    def rounds(self, steps: Iterable[Step]) -> Iterator[tuple[int, Step]]:
        """Yield each step with its round, from 1; with a single phase each step is a round."""
        first_phase = next(iter(self.phases))
        current, before = 0, ""
        for step in steps:
            if self.numbered:
                current = step.args[0] + 1
            elif len(self.phases) == 1 or (step.phase == first_phase and before != first_phase):
                current += 1
            before = step.phase
            yield max(current, 1), step
