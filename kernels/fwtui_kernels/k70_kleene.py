"""Recursive and in place, R-Kleene: two halves and six min-plus multiplies (Buluc, Gilbert, Budak 2010; Henriod)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fwtui_kernels.compiled.device import ALIGN16, NUMBER, cuda, int32, jit, load4
from fwtui_kernels.plan import Cost, Kernel, Option, Program, Rect, Shape, Step, Target
from fwtui_kernels.programs.cuda_program import CudaProgram, Op

PHASES = {
    "base": "base cases (Floyd-Warshall in one block)",
    "sequential": "sequential multiply (narrower than beta)",
    "regular": "regular multiply",
    "volkov": "register-tiled multiply (Volkov)",
}
PAPERS = (
    "A. Buluc, J. R. Gilbert, C. Budak, Solving Path Problems on the GPU, Parallel Computing 36(5-6), 2010",
    "V. Volkov, J. W. Demmel, Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008",
    "T. Henriod, Attempting to Improve APSP on the GPU",
)
WIDE = 64
C_TILE = (64, 16)  # columns and rows of C in a block of the register-tiled multiply
MAX_STEPS = 65536
Span = tuple[int, int]  # vertices low .. high, half-open


def beta(shape: Shape) -> int:
    """A block narrower than this is a base case. Widths are multiples of the tile, so it has exactly one tile."""
    return 2 * shape.tile


def refuses(shape: Shape) -> str | None:
    steps = 7 * (shape.padded // shape.tile) - 6
    if steps <= MAX_STEPS:
        return None
    return (
        f"tile {shape.tile} at n = {shape.n} takes {steps} launches, more than {MAX_STEPS}; choose a larger tile or a smaller n"
    )


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    # each of tile^2 threads reads two numbers and writes one in each of tile steps (Henriod, "Original Method")
    return recursion(shape, dict(shape.options).get("wide", WIDE), base_bytes=3 * shape.tile**3 * shape.itemsize)


def recursion(shape: Shape, wide: int, base_bytes: int) -> Iterator[Step]:
    """Depth first. The second half is solved only after the first has been applied to it: the halves cannot run in parallel."""

    def closure(low: int, high: int) -> Iterator[Step]:
        if high - low < beta(shape):
            own = (Rect(low, low, high, high),)
            yield Step("base", "base", (low,), Cost((high - low) ** 3, base_bytes), own, own)
            return
        middle = low + (high - low) // shape.tile // 2 * shape.tile
        first, second = (low, middle), (middle, high)
        # C <- min(C, A B) with A12 as C and as B at once: A11 is solved, so its diagonal is 0 and A11 A11 = A11. Old and
        # new values of a cell of A12 give the same minimum, as both are lengths of paths
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
    """C <- min(C, A B), C = rows x columns, A = rows x through, B = through x columns; the widest side decides the kernel."""
    (top, bottom), (left, right), (low, high) = rows, columns, through
    height, width, depth = bottom - top, right - left, high - low
    widest = max(height, width, depth)
    if widest < beta(shape):
        op, across, down = "sequential", shape.tile, shape.tile
    elif widest < wide:
        op, across, down = "regular", shape.tile, shape.tile
    else:
        op, (across, down) = "volkov", C_TILE
    # A comes once for each block column, B once for each block row; C is read and written
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
    """The three multiplies as ops. Each takes (top, left, low, height, width, depth); every side is a multiple of the tile."""
    number = NUMBER[shape.dtype]
    tile = shape.tile
    # Volkov's shape transposed, as our rows are contiguous where his columns were; smaller for the simulator, where a
    # thread is a real thread
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
            # the next slab must wait until no thread reads this one
            cuda.syncthreads()
        distance[i, j] = best

    @jit
    def volkov(distance, top, left, low, height, width, depth):
        # stored by columns: 16 rows of one k come in four loads. The padding spreads the stores over the banks
        a = cuda.shared.array((slab, pitch), number, alignment=ALIGN16)
        b = cuda.local.array(4, number)
        best = cuda.local.array(down, number)
        t = int32(cuda.threadIdx.x)
        row = int32(cuda.blockIdx.y) * int32(down)
        column = int32(cuda.blockIdx.x) * int32(across) + t
        # past the edge the last row, column and k are repeated: a minimum taken twice does no harm
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
                # B directly from memory, coalesced, four at once: other warps work meanwhile
                for step in range(4):
                    k = int32(start + group + step)
                    if ragged:
                        k = min(k, int32(depth - 1))
                    b[step] = distance[low + k, j]
                # each is used 16 times without leaving its register
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
    """`base` in side x side threads and the multiplies, except one that has no work at some widths."""
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
    summary="The matrix is halved again and again: two smaller problems and six min-plus multiplies, all in place.",
    lesson=(
        "Cut the vertices into two halves. Solve the first half by the same method and carry its paths over to the second with "
        "three min-plus multiplies. Then solve the second, and carry back with three more. Nearly all the work becomes "
        "multiplication, which a GPU does well. In a wide multiply each thread keeps 16 results in registers, and every number "
        "it loads serves many times. The two halves cannot run at the same time: the second needs what the first found out. At "
        "the bottom are blocks narrower than beta (twice the tile). One block of threads solves them one after the other, while "
        "the rest of the GPU waits. A larger beta means fewer launches, but more work in these lonely blocks."
    ),
    tiles=(4, 8, 16, 32),
    default_tile=16,
    options=(Option("wide", (8, 64, 512), WIDE, "minimum width of a min-plus product that holds its results in registers"),),
    launch_modes=("eager", "graph"),
    memories=("device", "pinned"),
    refuses=refuses,
)
