"""The buffers of a matrix that streams through the device: which there are, and how large."""

from __future__ import annotations

from dataclasses import replace

from kernels import k80_register_tiled as tiled
from kernels.forms import WORD_BYTES
from kernels.plan import Shape

# buffers: on the host; then on the device. TURNED and COLUMNS hold tiles that lie on their side, a word to a cell
HOME, PIVOT, TURNED, ROWS, COLUMNS, STREAM, CLOSED, PANEL = range(8)  # and PANEL + 1
BUFFERS = 3  # tiles of the rest on the device: one comes, one is worked on, one goes


def inner(shape: Shape) -> Shape:
    """The pivot tile as a graph of its own, in tiles of what one block of threads closes."""
    return replace(shape, n=shape.tile, tile=min(tiled.KERNEL.default_tile if shape.tile >= 128 else 8, shape.tile))


def buffer_shapes(shape: Shape) -> dict[int, tuple[int, int]]:
    """Rows and cells of each buffer on the device; slots lie one below the other."""
    tile, side, small = shape.tile, shape.padded // shape.tile, inner(shape).tile
    cells = WORD_BYTES // shape.itemsize  # in a word
    panel = (small, tile * cells)
    return {
        PIVOT: (tile, tile),
        TURNED: (tile, tile * cells),
        ROWS: (side * tile, tile),
        COLUMNS: (side * tile, tile * cells),
        STREAM: (BUFFERS * tile, tile),
        CLOSED: (2 * small, small * cells),
        PANEL: panel,
        PANEL + 1: panel,
    }
