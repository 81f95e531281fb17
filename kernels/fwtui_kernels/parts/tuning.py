"""Parameters of the top rungs' ops: how their products are divided into blocks and threads. Plain Python.

The division affects only the time, not the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from fwtui_kernels.forms import lanes_of
from fwtui_kernels.plan import WARP, Shape

MATRIX, SOLVED, PANEL = 0, 1, 2  # buffers; there are two panels, and odd rounds take the second, PANEL + 1
# parts of the rest, numbered by the rows of tiles they leave out: the next pivot's row and column; all; all except those
CROSS, ALL, BULK = 0, 1, 2
REGISTERS = 65536  # of a multiprocessor, in every supported generation
GROUP = 4  # words per load: threads take rows and columns in groups of this size
ALONE = 1024  # up to this n the bulk of the rest leaves multiprocessors free for the next panels
STAGES = 2  # slabs in shared memory at once: one is copied while the other is used
UNROLLED = 8  # k in one call of relax_tile: enough to hide the loop around it, few enough for the instruction cache


@dataclass(frozen=True, slots=True)
class Product:
    """A block's part of a product C = A x B, in words. Raises ValueError if threads cannot share it evenly."""

    high: int  # rows of C in a block
    wide: int  # words of C in a row of a block
    rows: int  # of these, per thread
    columns: int
    slab: int  # k in shared memory at a time
    registers: int = 128  # limit per thread; fewer allow more resident blocks per multiprocessor

    def __post_init__(self) -> None:
        even = self.rows % GROUP == self.columns % GROUP == self.high % self.rows == self.wide % self.columns == 0
        if not even or self.slab % self.depth:
            raise ValueError(f"{self}: threads cannot share it evenly")

    def covers(self, height: int, width: int) -> None:
        """Raises ValueError unless whole blocks make up a tile of that many rows and words."""
        if height % self.high or width % self.wide:
            raise ValueError(f"{self}: such blocks do not make up a tile of {height} x {width} words evenly")

    def copies(self, depth: int, *lines: int) -> None:
        """Raises ValueError unless the threads can copy slabs with lines of that many words evenly, up to this depth."""
        for line in lines:
            at_once = self.threads // (line // GROUP)
            if not at_once or self.threads % (line // GROUP) or self.slab % at_once or depth % self.slab:
                raise ValueError(f"{self}: {self.threads} threads cannot copy {self.slab} lines of {line} words evenly")

    @property
    def down(self) -> int:
        """Threads one below the other."""
        return self.high // self.rows

    @property
    def across(self) -> int:
        return self.wide // self.columns

    @property
    def threads(self) -> int:
        return self.down * self.across

    @property
    def gaps(self) -> tuple[int, int]:
        """Return the strides between a thread's groups of four rows and of four words of a row."""
        return GROUP * self.down, GROUP * self.across

    @property
    def bounds(self) -> tuple[int, int]:
        """launch_bounds: threads, and how many blocks a multiprocessor shall hold."""
        warps = -(-self.threads // WARP)
        return self.threads, max(1, REGISTERS // (self.registers * WARP * warps))

    @property
    def depth(self) -> int:
        return min(UNROLLED, self.slab)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The partition of the min-plus products for one tile and data type."""

    panels: Product
    rest: Product
    cross: Product  # the next pivot's row and column of the rest, on the critical path


def tuning_of(shape: Shape) -> Tuning:
    """The fastest of about 700 cuts on an H200, from n = 512 to 16384.

    8 x 8 results per thread for large amounts of work, in blocks of 64 threads: many fit a multiprocessor and hide each
    other's barriers. For small urgent work 4 x 4, so that a tile has four times as many threads.
    """
    tile, words = shape.tile, shape.tile // lanes_of(shape.dtype)
    if tile < 64:  # the simulator's
        size = 8 if words >= 16 else 4
        rest = Product(tile, words, size, size, 8)
        return Tuning(Product(tile, tile, size, size, 8), rest, Product(tile, words, 4, 4, 8))
    if shape.dtype == "float64":  # twice the registers and shared memory of a word, and its arithmetic sets the pace
        return Tuning(Product(64, 32, 4, 4, 16), Product(64, 64, 4, 4, 16, registers=80), Product(32, 64, 4, 4, 16))
    cross = Product(32, min(64, words), 4, 4, 32)
    if tile == 64:
        # more and smaller blocks only while the panels have the GPU to themselves
        panels = Product(64, 16, 4, 4, 32) if shape.padded <= ALONE else Product(64, 64, 4, 4, 16)
        return Tuning(panels, Product(64, words, 8, 4, 16 if words < 64 else 32, registers=96), cross)
    slab, registers = (16, 128) if shape.dtype == "int32" else (32, 168)
    if shape.dtype == "int16" and shape.padded <= 4096:
        # half as many words make two whole waves of such blocks, and two and a half of smaller ones
        return Tuning(Product(128, 32, 4, 4, 16), Product(128, 64, 8, 8, 16), Product(64, 64, 4, 4, 16))
    return Tuning(Product(128, 32, 4, 4, 32), Product(64, 64, 8, 8, slab, registers=registers), cross)
