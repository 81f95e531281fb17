"""R-Kleene, recursive and in place: two halves and six min-plus products (Buluc, Gilbert, Budak 2010; Henriod)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, int32, jit, load4
from fwtui_kernels.plan import Cost, Kernel, Option, Program, Rect, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

PHASES = {
    "base": "base cases (Floyd-Warshall in one block)",
    "sequential": "sequential product (narrower than beta)",
    "regular": "regular product",
    "volkov": "register-tiled product (Volkov)",
}
PAPERS = (
    "A. Buluc, J. R. Gilbert, C. Budak, Solving Path Problems on the GPU, Parallel Computing 36(5-6), 2010",
    "V. Volkov, J. W. Demmel, Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008",
    "T. Henriod, Attempting to Improve APSP on the GPU",
)
WIDE = 64
C_TILE = (64, 16)  # columns and rows of C in a block of the register-tiled product
MAX_STEPS = 65536
Span = tuple[int, int]  # vertices low .. high, half-open


def beta(shape: Shape) -> int:
    """Return the width below which a block is a base case: one tile, because widths are multiples of the tile."""
    return 2 * shape.tile


def refuses(shape: Shape) -> str | None:
    steps = 7 * (shape.padded // shape.tile) - 6
    if steps <= MAX_STEPS:
        return None
    return f"tile {shape.tile} takes {steps} launches at n = {shape.n}; the maximum is {MAX_STEPS}; choose a larger tile"


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    # each of tile^2 threads reads two values and writes one in each of `tile` steps (Henriod, "Original Method")
    return recursion(shape, dict(shape.options).get("wide", WIDE), base_bytes=3 * shape.tile**3 * shape.itemsize)


def recursion(shape: Shape, wide: int, base_bytes: int) -> Iterator[Step]:
    """Yield the steps depth first. The halves are sequential, because the second needs the paths through the first."""

    def closure(low: int, high: int) -> Iterator[Step]:
        if high - low < beta(shape):
            own = (Rect(low, low, high, high),)
            yield Step("base", "base", (low,), Cost((high - low) ** 3, base_bytes), own, own)
            return
        middle = low + (high - low) // shape.tile // 2 * shape.tile
        first, second = (low, middle), (middle, high)
        # C <- min(C, A B) in place, with A12 as C and B: A11 is solved, so its diagonal is 0 and A11 A11 = A11. Old and new
        # values of a cell of A12 give the same minimum, because both are lengths of paths
        yield from closure(*first)
        yield multiply(shape, wide, first, second, through=first)
        yield multiply(shape, wide, second, first, through=first)
        yield multiply(shape, wide, second, second, through=first)
        yield from closure(*second)
        yield multiply(shape, wide, second, first, through=second)
        yield multiply(shape, wide, first, second, through=second)
        yield multiply(shape, wide, first, first, through=second)

    return closure(0, shape.padded)


def multiply(shape: Shape, wide: int, rows: Span, columns: Span, through: Span) -> Step:
    """Return the step C <- min(C, A B) with C = rows x columns, A = rows x through, B = through x columns.

    The longest side selects the op.
    """
    (top, bottom), (left, right), (low, high) = rows, columns, through
    height, width, depth = bottom - top, right - left, high - low
    widest = max(height, width, depth)
    if widest < beta(shape):
        op, across, down = "sequential", shape.tile, shape.tile
    elif widest < wide:
        op, across, down = "regular", shape.tile, shape.tile
    else:
        op, (across, down) = "volkov", C_TILE
    # A is read once per block column, B once per block row; C is read and written
    cells = height * depth * -(-width // across) + depth * width * -(-height // down) + 2 * height * width
    own, a, b = Rect(top, left, bottom, right), Rect(top, low, bottom, high), Rect(low, left, high, right)
    return Step(
        op,
        op,
        (top, left, low, height, width, depth),
        Cost(height * width * depth, cells * shape.itemsize),
        tuple(dict.fromkeys((a, b, own))),
        (own,),
    )


def multiplies(shape: Shape, target: Target) -> dict[str, Any]:
    """Return the three product ops. Each takes (top, left, low, height, width, depth); every side is a multiple of the tile."""
    number = NUMBER[shape.dtype]
    tile = shape.tile
    # Volkov's shape, transposed because the matrix is row-major; smaller in the slow simulator
    across, down, slab = (16, 8, 8) if target.backend == "simulator" else (*C_TILE, 16)
    rows_at_once = across // slab
    ragged = tile % slab != 0 or tile % down != 0
    pitch = down + 4

    @jit
    def regular(distance, top, left, low, height, width, depth):
        a = cuda.shared.array((tile, tile), number)
        b = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        i = int32(top + int32(cuda.blockIdx.y) * int32(tile) + y)
        j = int32(left + int32(cuda.blockIdx.x) * int32(tile) + x)
        best = distance[i, j]
        for start in range(low, low + depth, tile):
            a[y, x] = distance[i, start + x]
            b[y, x] = distance[start + y, j]
            cuda.syncthreads()
            for k in range(tile):
                best = min(best, number(a[y, k] + b[k, x]))
            # the next slab overwrites this one
            cuda.syncthreads()
        distance[i, j] = best

    @jit
    def volkov(distance, top, left, low, height, width, depth):
        # stored by columns, so that four loads bring 16 rows of one k; padding avoids bank conflicts of the stores
        a = cuda.shared.array((slab, pitch), number, alignment=ALIGN16)
        b = cuda.local.array(4, number)
        best = cuda.local.array(down, number)
        t = int32(cuda.threadIdx.x)
        row = int32(cuda.blockIdx.y) * int32(down)
        column = int32(cuda.blockIdx.x) * int32(across) + t
        # beyond the edge the last row, column and k are repeated, which does not change a minimum
        j = int32(left + min(column, int32(width - 1)))
        load_k = int32(t % slab)
        load_row = int32(t // slab)
        for r in range(down):
            i = int32(row + r)
            if ragged:
                i = min(i, int32(height - 1))
            best[r] = distance[top + i, j]
        for start in range(0, depth, slab):
            for r in range(0, down, rows_at_once):
                i = int32(row + r + load_row)
                k = int32(start + load_k)
                if ragged:
                    i = min(i, int32(height - 1))
                    k = min(k, int32(depth - 1))
                a[load_k, r + load_row] = distance[top + i, low + k]
            cuda.syncthreads()
            for group in range(0, slab, 4):
                # B from global memory, coalesced, four loads in flight
                for step in range(4):
                    k = int32(start + group + step)
                    if ragged:
                        k = min(k, int32(depth - 1))
                    b[step] = distance[low + k, j]
                # each value is used 16 times from its register
                for step in range(4):
                    for r in range(0, down, 4):
                        a0, a1, a2, a3 = load4(a, (group + step) * pitch + r)
                        best[r] = min(best[r], number(a0 + b[step]))
                        best[r + 1] = min(best[r + 1], number(a1 + b[step]))
                        best[r + 2] = min(best[r + 2], number(a2 + b[step]))
                        best[r + 3] = min(best[r + 3], number(a3 + b[step]))
            cuda.syncthreads()
        if column < width:
            for r in range(down):
                if not ragged or row + r < height:
                    distance[top + row + r, j] = best[r]

    square = (tile, tile)
    return {
        "sequential": Op(regular, square, lambda args: (1, 1)),  # one tile wide and deep
        "regular": Op(regular, square, lambda args: (args[4] // tile, args[3] // tile)),
        "volkov": Op(volkov, (across, 1), lambda args: (-(-args[4] // across), -(-args[3] // down))),
    }


def program(shape: Shape, target: Target, steps: Iterator[Step], base: Any, side: int) -> Program:
    """Return the program: the op `base`, in blocks of side x side threads, and the product ops that the steps use."""
    ops = {"base": Op(base, (side, side), lambda args: (1, 1)), **multiplies(shape, target)}
    return CudaProgram(shape, target, {name: ops[name] for name in dict.fromkeys(step.op for step in steps)})


def build(shape: Shape, target: Target) -> Program:
    number = NUMBER[shape.dtype]
    tile = shape.tile

    @jit
    def base(distance, low):
        i = int32(low + int32(cuda.threadIdx.y))
        j = int32(low + int32(cuda.threadIdx.x))
        own = distance[i, j]
        for k in range(low, low + tile):
            via = number(distance[i, k] + distance[k, j])
            # row k and column k do not change in step k, so no thread reads what another writes
            if via < own:
                own = via
                distance[i, j] = via
            cuda.syncthreads()

    return program(shape, target, plan(shape, False), base, tile)


KERNEL = Kernel(
    id="kleene",
    title="R-Kleene",
    papers=PAPERS,
    phases=PHASES,
    plan=plan,
    build=build,
    summary="The matrix is halved recursively: two smaller problems and six min-plus products, all in place.",
    lesson=(
        "Cut the vertices into two halves. Solve the first half recursively and propagate its paths to the second with three "
        "min-plus products. Then solve the second half, and propagate back with three more. Nearly all the work becomes "
        "multiplication, which suits a GPU. In a wide product each thread holds 16 results in registers, and every loaded value "
        "is used many times. The two halves cannot run concurrently, because the second depends on the first. The recursion ends "
        "at blocks narrower than beta (twice the tile). One thread block solves them one after the other while the rest of the "
        "GPU waits. A larger beta means fewer launches, but more work in these single blocks."
    ),
    tiles=(4, 8, 16, 32),
    default_tile=16,
    options=(Option("wide", (8, 64, 512), WIDE, "minimum width of a min-plus product that holds its results in registers"),),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    refuses=refuses,
)
