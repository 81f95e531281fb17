"""The division of the register-tiled products into thread blocks and threads. Plain Python.

It affects only the time, not the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from fwtui_kernels.forms import lanes_of
from fwtui_kernels.plan import WARP, Shape

MATRIX, SOLVED, PANEL = 0, 1, 2  # buffers; odd rounds use the second panel, PANEL + 1
# parts of the remainder: the next pivot's row and column; all tiles; all except the cross. BULK is the rows of tiles to skip
CROSS, ALL, BULK = 0, 1, 2
REGISTERS = 65536  # per multiprocessor, in every supported generation
GROUP = 4  # words per load; threads own rows and columns in groups of this size
IDLE_MAX_N = 1024  # up to this n the bulk of the remainder leaves multiprocessors idle for the next panels
STAGES = 2  # slabs in shared memory: one is copied while the other is used
UNROLLED = 8  # k in one call of relax_tile: enough to hide the loop around it, few enough for the instruction cache


@dataclass(frozen=True, slots=True)
class Product:
    """The share of a thread block in a product C = A x B, in words. Its threads divide it evenly, and blocks divide a tile."""

    high: int  # rows of C in a block
    wide: int  # words of C in a row of a block
    rows: int  # rows per thread
    columns: int  # words of a row per thread
    slab: int  # values of k in shared memory at once
    registers: int = 128  # limit per thread; a lower one allows more resident blocks

    @property
    def down(self) -> int:
        """Threads in a column of a block."""
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
        """The launch_bounds: threads per block, and the minimum number of resident blocks."""
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
    cross: Product  # the next pivot's row and column of tiles, on the critical path


def tuning_of(shape: Shape) -> Tuning:
    """Return the fastest of about 700 divisions on an H200, for n = 512 to 16384.

    Large amounts of work get 8 x 8 results per thread in blocks of 64 threads: many blocks are resident and hide each other's
    barriers. Small urgent work gets 4 x 4, so that a tile has 4x more threads.
    """
    tile, width = shape.tile, shape.tile // lanes_of(shape.dtype)
    if tile < 64:  # the simulator's
        size = 8 if width >= 16 else 4
        rest = Product(tile, width, size, size, 8)
        return Tuning(Product(tile, tile, size, size, 8), rest, Product(tile, width, 4, 4, 8))
    if shape.dtype == "float64":  # a word takes twice the registers and shared memory, and the product is compute-bound
        return Tuning(Product(64, 32, 4, 4, 16), Product(64, 64, 4, 4, 16, registers=80), Product(32, 64, 4, 4, 16))
    cross = Product(32, min(64, width), 4, 4, 32)
    if tile == 64:
        # more and smaller blocks only while the panels have idle multiprocessors
        panels = Product(64, 16, 4, 4, 32) if shape.padded <= IDLE_MAX_N else Product(64, 64, 4, 4, 16)
        return Tuning(panels, Product(64, width, 8, 4, 16 if width < 64 else 32, registers=96), cross)
    slab, registers = (16, 128) if shape.dtype == "int32" else (32, 168)
    if shape.dtype == "int16" and shape.padded <= 4096:
        # blocks of this size fill two whole waves, smaller ones two and a half
        return Tuning(Product(128, 32, 4, 4, 16), Product(128, 64, 8, 8, 16), Product(64, 64, 4, 4, 16))
    return Tuning(Product(128, 32, 4, 4, 32), Product(64, 64, 8, 8, slab, registers=registers), cross)
