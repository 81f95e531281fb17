"""Elimination up a tree and one sweep down on a GPU: register-tiled products, all supernodes of a level in one launch.

Lookup tables (parts/fronts.py) hold the places of the fronts and the rows to multiply. Rounds of pivot, panels and
remainder solve a front as they solve a dense matrix. A thread block of the sweep computes left factor x rows of distances. Its
result stays in registers from the first slab to the two stores, the second of which is transposed.
"""

from __future__ import annotations

from functools import partial

from fwtui_kernels.compiled import device
from fwtui_kernels.compiled.device import ALIGN16, NUMBER, WORD, cuda, int32, jit, uint32
from fwtui_kernels.forms import form_of, lanes_of
from fwtui_kernels.parts import cuda_sparse as arrays
from fwtui_kernels.parts import elimination, fronts, register_tiled
from fwtui_kernels.parts.ordering import ordered
from fwtui_kernels.parts.pivot import solve_tile_of
from fwtui_kernels.parts.products import fetch, panel_block_of, place, program, relax_block_of, store_best, store_spread
from fwtui_kernels.parts.register_tiled import CHOICES
from fwtui_kernels.parts.tuning import STAGES, Product, tuning_of
from fwtui_kernels.plan import NO_EDGE, Program, Shape, Target
from fwtui_kernels.programs.cuda_program import Op

# of an H200: launch overhead if most multiprocessors are idle, and the time to move a byte, both in relaxations
LAUNCH, PER_BYTE = 16 * 10**7, 3
INDICES = "array(int32, 2d, C)"
THREADS = 128  # threads that assemble a row


def types_of(shape: Shape, cells: int, indices: int, args: int) -> tuple[str, ...]:
    """Return the types of an op's arguments: arrays of cells, arrays of indices, integers."""
    return (*[f"array({shape.dtype}, 2d, C)"] * cells, *[INDICES] * indices, *["int32"] * args)


def assemble_of(shape: Shape) -> Op:
    """Return the op that assembles one row of a front per block, from its arcs and from one child's front after the other."""
    no_edge = NUMBER[shape.dtype](NO_EDGE[shape.dtype])
    none = NUMBER[shape.dtype](0)

    @jit(launch_bounds=(THREADS, 1))
    def assemble(front, weights, rows, columns, kids, to, first, count):
        t = int32(cuda.threadIdx.x)
        row = first + int32(cuda.blockIdx.x)
        for j in range(t, rows[row, fronts.WIDTH], THREADS):
            front[row, j] = none if j == rows[row, fronts.DIAGONAL] else no_edge
        cuda.syncthreads()
        for arc in range(rows[row, fronts.ARCS] + t, rows[row + 1, fronts.ARCS], THREADS):
            j = columns[arc, 0]
            front[row, j] = min(front[row, j], weights[0, arc])
        for kid in range(rows[row, fronts.KIDS], rows[row + 1, fronts.KIDS]):
            cuda.syncthreads()
            for k in range(t, kids[kid, fronts.COUNT], THREADS):
                j = to[kids[kid, fronts.TO] + k, 0]
                front[row, j] = min(front[row, j], front[kids[kid, fronts.ROW], kids[kid, fronts.FROM] + k])

    buffers = (arrays.FRONTS, arrays.WEIGHTS, arrays.ROWS, arrays.ARC_COLUMNS, arrays.KIDS, arrays.TO)
    return Op(assemble, (THREADS, 1), lambda args: (args[1], 1), lambda args: buffers, types_of(shape, 2, 4, 2))


def pivot_of(shape: Shape) -> Op:
    """Return the op that solves a pivot tile of one front per block, with the two copies of the dense rungs."""
    solve_tile, tile = solve_tile_of(shape), shape.tile
    threads, cells = (tile // 4) ** 2, tile**2

    @jit(launch_bounds=(threads, 1))
    def pivot(front, solved, nodes, first, count, most, p):
        copy = int32(cuda.blockIdx.x) * 2 * cells
        top = nodes[first + cuda.blockIdx.x, fronts.BASE] + p * tile
        solve_tile(front, top, p * tile, solved, copy, solved, copy + cells)

    buffers = (arrays.FRONTS, arrays.PIVOTS, arrays.NODES)
    return Op(pivot, (threads, 1), lambda args: (args[1], 1), lambda args: buffers, types_of(shape, 2, 1, 4))


def panels_of(shape: Shape, cut: Product) -> Op:
    """Return the op that multiplies the tiles (p, i) (grid row 0) and (i, p) (grid row 1) of each front with solved pivot p."""
    panel_block, tile, wide = panel_block_of(shape, cut), shape.tile, cut.wide
    parts = tile // wide

    @jit(launch_bounds=cut.bounds)
    def panels(front, solved, panel, nodes, first, count, most, p):
        slot = int32(cuda.blockIdx.x) // parts
        part = int32(cuda.blockIdx.x) % parts * wide
        other = slot % most
        top = nodes[first + slot // most, fronts.BASE]
        if other == p or other * tile >= nodes[first + slot // most, fronts.COLUMNS]:
            return
        is_row = cuda.blockIdx.y == 0
        base = p * tile + (top if is_row else 0)
        at = other * tile + part + (0 if is_row else top)
        copy = (2 * (slot // most) + (0 if is_row else 1)) * tile * tile
        panel_block(front, solved, copy, is_row, base, at, panel, slot * tile * tile + part, tile)

    buffers = (arrays.FRONTS, arrays.PIVOTS, arrays.PANELS, arrays.NODES)
    grid = lambda args: (args[1] * args[2] * parts, 2)  # noqa: E731
    return Op(panels, (cut.threads, 1), grid, lambda args: buffers, types_of(shape, 3, 1, 4))


def rest_of(shape: Shape, target: Target, cut: Product) -> Op:
    """Return the op that sets tile (i, j) of each front to min(itself, (i, p) x (p, j))."""
    relax_block = relax_block_of(shape, target, cut)
    tile, high, wide, lanes = shape.tile, cut.high, cut.wide, lanes_of(shape.dtype)
    per_row, per_column = tile // high, tile // lanes // wide  # blocks to a tile
    blocks = per_row * per_column

    @jit(launch_bounds=cut.bounds)
    def rest(front, panel, nodes, first, count, most, p):
        pitch = front.shape[1] // lanes
        slot = int32(cuda.blockIdx.x) // (blocks * most)  # position of tile (i, p) in the panel
        part = int32(cuda.blockIdx.x) % blocks
        i = slot % most
        j = int32(cuda.blockIdx.x) // blocks % most
        top = nodes[first + slot // most, fronts.BASE]
        tiles = nodes[first + slot // most, fronts.COLUMNS] // tile
        if i == p or j == p or i >= tiles or j >= tiles:
            return
        row = int32((top // tile + i) * per_row + part // per_column)
        column = int32(j * per_column + part % per_column)
        left = slot * tile * tile + part // per_column * high
        relax_block(front, row, column, panel, left, tile, front, (top + p * tile) * pitch + column * wide, pitch)

    grid = lambda args: (args[1] * args[2] ** 2 * blocks, 1)  # noqa: E731
    return Op(rest, (cut.threads, 1), grid, lambda args: (arrays.FRONTS, arrays.PANELS, arrays.NODES), types_of(shape, 2, 1, 4))


def turn_of(shape: Shape) -> Op:
    """Return the op that copies the left factors of the sweep: a block's rows of a front, transposed, one word per cell.

    Grid row 1 copies the columns, for directed graphs.
    """
    cell, tile = NUMBER[shape.dtype], shape.tile
    fours = tile // 4

    @jit(launch_bounds=(THREADS, 1))
    def turn(front, left, nodes, tasks, first, count):
        task = first + int32(cuda.blockIdx.x)
        node = tasks[task, arrays.NODE]
        depth = nodes[node, fronts.DEPTH]
        back = int32(cuda.blockIdx.y)
        last = first + count - 1
        total = tasks[last, arrays.FIRST] + nodes[tasks[last, arrays.NODE], fronts.DEPTH]
        row = nodes[node, fronts.BASE] + tasks[task, arrays.AT]
        column = nodes[node, fronts.SOLVED]
        best = cuda.local.array(4, cell)
        for q in range(int32(cuda.threadIdx.x), depth * fours, THREADS):
            k = q // fours
            i = q % fours * 4
            for m in range(4):
                if back == 0:
                    best[m] = front[row + i + m, column + k]
                else:
                    best[m] = front[nodes[node, fronts.BASE] + column + k, tasks[task, arrays.AT] + i + m]
            store_spread(left, (tasks[task, arrays.FIRST] + back * total + k) * tile + i, best, 0, cell)

    both = 1 + (shape.order is not None and shape.order.directed)
    types = types_of(shape, 2, 2, 2)
    return Op(
        turn,
        (THREADS, 1),
        lambda args: (args[1], both),
        lambda args: (arrays.FRONTS, arrays.LEFT, arrays.NODES, arrays.TASKS),
        types,
    )


def sweep_of(shape: Shape, target: Target, cut: Product) -> Op:
    """Return the op that sets a supernode's rows of `own`, from column `low` to `high`, to left factor x rows of `own` above.

    Each block is also stored transposed in `other`. With `halved`, `own` is symmetric, and only blocks on or right of the
    diagonal are computed.
    """
    cell, word, form, lanes = NUMBER[shape.dtype], WORD[shape.dtype], form_of(shape, target.cc), lanes_of(shape.dtype)
    tile, wide, rows, columns, slab, depth_at_once = cut.high, cut.wide, cut.rows, cut.columns, cut.slab, cut.depth
    threads, down, across = cut.threads, cut.down, cut.across
    row_gap, column_gap = cut.gaps
    to_ring, middle_ring, cells = STAGES * slab * tile, STAGES * slab * wide, rows * columns
    no_edge = word(NO_EDGE[shape.dtype] * (65537 if lanes == 2 else 1))
    pieces = wide // 4
    lines = threads // pieces
    span = wide * lanes  # columns of a block

    @jit(device=True, inline="always")
    def fetch_rows(middle, slot, own, index, at, column, pitch, t):
        """Copy a slab of the indexed rows to shared memory, asynchronously."""
        for i in range(slab // lines):
            line = int32(t // pieces + i * lines)
            start = index[at + line, 0] * pitch + column + t % pieces * 4
            device.copy_async(middle, slot * wide + 4 * (t + i * threads), own, start)

    @jit(device=True, inline="always")
    def store_transposed(other, at, n, best, q):
        """Store four words of four rows as cells of neighbouring rows, starting at cell `at`."""
        for word_of_row in range(4):
            if lanes == 1:
                store_best(other, at + word_of_row * n, best, q + word_of_row, columns, cell)
            else:
                a, b = best[q + word_of_row], best[q + word_of_row + columns]
                c, d = best[q + word_of_row + 2 * columns], best[q + word_of_row + 3 * columns]
                device.store4(other, at + 2 * word_of_row * n, cell(a), cell(b), cell(c), cell(d))
                device.store4(other, at + (2 * word_of_row + 1) * n, cell(a >> 16), cell(b >> 16), cell(c >> 16), cell(d >> 16))

    @jit(launch_bounds=cut.bounds)
    def sweep(own, other, front, left, nodes, tasks, index, first, count, low, high, left_row, halved):
        to = cuda.shared.array(to_ring, word, ALIGN16)
        middle = cuda.shared.array(middle_ring, word, ALIGN16)
        best = cuda.local.array(cells, word)
        block = int32(cuda.blockIdx.x)
        task = first + block % count  # neighbouring blocks share their columns, so that the rows they read stay in the cache
        column = low + block // count * span
        node = tasks[task, arrays.NODE]
        start = nodes[node, fronts.START]
        end = nodes[node, fronts.END]
        row = start + tasks[task, arrays.AT]
        if halved and column + span <= row:
            return
        n = own.shape[1]
        pitch = n // lanes
        depth = nodes[node, fronts.DEPTH]
        t = uint32(cuda.threadIdx.x)
        y, x = place(t, down, across)
        at = nodes[node, fronts.INDEX]
        left_at = (left_row + tasks[task, arrays.FIRST]) * tile
        if depth:
            fetch(to, 0, left, left_at, tile, tile, slab, threads, t)
            fetch_rows(middle, 0, own, index, at, column // lanes, pitch, t)
        device.commit_copies()
        for i in range(cells):
            best[i] = no_edge
        if column < end and column + span > start:  # the front holds initial distances of these columns
            front_pitch = front.shape[1] // lanes
            for r in range(0, rows, 4):
                line = nodes[node, fronts.BASE] + row - start + r // 4 * row_gap + 4 * y
                for c in range(0, columns, 4):
                    j = column + (c // 4 * column_gap + 4 * x) * lanes
                    if start <= j < end:
                        for m in range(4):
                            q = (r + m) * columns + c
                            here = (line + m) * front_pitch + (j - start) // lanes
                            best[q], best[q + 1], best[q + 2], best[q + 3] = device.load_words(front, here)
        for s in range(depth // slab):
            device.wait_copies(0)
            # all copies have arrived, and no thread still reads the slab that the next copies overwrite
            cuda.syncthreads()
            k = (s + 1) * slab
            if k < depth:
                slot = (s + 1) % STAGES * slab
                # recomputed for each slab, because addresses in registers would displace the tile
                again = device.rematerialize(t)
                fetch(to, slot * tile, left, left_at + k * tile, tile, tile, slab, threads, again)
                fetch_rows(middle, slot, own, index, at + k, column // lanes, pitch, again)
            device.commit_copies()
            for k in range(0, slab, depth_at_once):
                k_at = s % STAGES * slab + k
                device.relax_tile(
                    best, to, k_at * tile + 4 * y, middle, k_at * wide + 4 * x, rows, columns, tile, wide, depth_at_once, form
                )
        y, x = place(device.rematerialize(t), down, across)
        last = min(end, row + tile)
        for r in range(0, rows, 4):
            i = row + r // 4 * row_gap + 4 * y
            for c in range(0, columns, 4):
                j = column + (c // 4 * column_gap + 4 * x) * lanes
                if i < last and (not halved or j >= row):
                    if start < own.shape[0]:
                        for m in range(4):
                            q = (r + m) * columns + c
                            here = (i + m) * pitch + j // lanes
                            device.store_words(own, here, best[q], best[q + 1], best[q + 2], best[q + 3])
                    if j < other.shape[0] and (not halved or j >= last):
                        store_transposed(other, j * n + i, n, best, r * columns + c)

    def grid(args: tuple[int, ...]) -> tuple[int, int]:
        _, count, low, high = args[:4]
        return (high - low) // span * count, 1

    directed = shape.order is not None and shape.order.directed

    def buffers(args: tuple[int, ...]) -> tuple[int, ...]:
        pair = (arrays.DISTANCES, arrays.BACK if directed else arrays.DISTANCES)
        return (*(pair[::-1] if args[4] else pair), arrays.FRONTS, arrays.LEFT, arrays.NODES, arrays.TASKS, arrays.INDEX)

    return Op(sweep, (threads, 1), grid, buffers, types_of(shape, 4, 3, 6))


def sweep_cut(shape: Shape) -> Product:
    """Return the blocks of the sweep: tile x tile cells, so that many fit a multiprocessor and overlap products with stores."""
    width = shape.tile // lanes_of(shape.dtype)
    if shape.tile < 64:  # the simulator's
        return Product(shape.tile, width, 4, 4, 8)
    if shape.dtype == "float64":
        return Product(64, width, 4, 4, elimination.SLAB)
    registers = 144 if shape.dtype == "float32" else 128
    return Product(64, width, 8, 8 if width == 64 else 4, elimination.SLAB, registers)


def build(shape: Shape, target: Target) -> Program:
    if shape.order is None:
        return program(shape, target)
    tuning = tuning_of(shape)
    ops = {
        "assemble": assemble_of(shape),
        "pivot": pivot_of(shape),
        "panels": panels_of(shape, tuning.panels),
        "rest": rest_of(shape, target, tuning.rest),
        "turn": turn_of(shape),
        "sweep": sweep_of(shape, target, sweep_cut(shape)),
    }
    return arrays.SparseProgram(shape, target, ops)


KERNEL = elimination.rung(
    elimination.in_rounds,
    register_tiled.plan,
    id="sparse",
    title="Sparse",
    build=build,
    ordered=partial(ordered, launch=LAUNCH, eliminated=elimination.in_rounds, per_byte=PER_BYTE),
    summary="For graphs with small separators: the register-tiled product up the elimination tree and once down, level by level.",
    lesson=(
        "The plan is that of the sparse CPU rung: eliminate up the tree, then sweep down once. A GPU also needs enough "
        "parallel work. A supernode far down in the tree has about a hundred vertices, so one launch per supernode would leave "
        "most multiprocessors idle. But all supernodes of equal height are independent. One launch therefore assembles all "
        "their fronts, and one launch solves a tile of each; a lookup table assigns the parts to the thread blocks. The sweep is "
        "nearly all of the work. It takes two launches per level: first the columns of the levels above, then those of the "
        "level itself. A thread block computes 64 x 64 distances. It reads the rows of the vertices above through an index, so "
        "no operand is gathered beforehand. The results stay in registers until they are stored, once as they are and, if the "
        "graph is undirected, once transposed. On a grid of 65,536 vertices a block of leaves needs only three or four slabs. "
        "Its stores then take about the time of its products, and many small blocks per multiprocessor overlap the two."
    ),
    **{**CHOICES, "tiles": (64,), "default_tile": 64, "small_tile": None, "max_n": 1 << 18},
)
