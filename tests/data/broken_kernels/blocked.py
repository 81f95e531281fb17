"""The complete blocked algorithm in one file: correct here, and broken by the edits in edits.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fwtui_kernels.parts.blocked import PHASES, spans_outside
from fwtui_kernels.plan import Cost, Kernel, Program, Rect, Shape, Step, Target

cuda: Any


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    n, tile = shape.padded, shape.tile
    others = n // tile - 1
    index = 0
    rest_before: tuple[int, ...] = ()
    for p in range(n // tile):
        low, high = p * tile, (p + 1) * tile
        pivot = Rect(low, low, high, high)
        yield Step("pivot", "pivot", (p,), Cost(tile**3, 0), (pivot,), (pivot,), 0, rest_before)
        index += 1
        if not others:
            return
        spans = spans_outside(low, high, n)
        panels = tuple(Rect(low, left, high, right) for left, right in spans)
        panels += tuple(Rect(top, low, bottom, high) for top, bottom in spans)
        yield Step("panels", "panels", (p,), Cost(2 * others * tile**3, 0), (pivot, *panels), panels)
        rest = tuple(Rect(top, left, bottom, right) for top, bottom in spans for left, right in spans)
        panels_at = index
        yield Step("rest", "rest", (p,), Cost(others**2 * tile**3, 0), (*panels, *rest), rest, 1, (panels_at,))
        index += 2
        rest_before = (index - 1,)


def build(shape: Shape, target: Target) -> Program:
    global cuda
    from fwtui_kernels.compiled.device import NUMBER, cuda, int32, jit
    from fwtui_kernels.programs.cuda_program import CudaProgram, Op

    number = NUMBER[shape.dtype]
    tile = shape.tile

    @jit
    def pivot(distance, p):
        own = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        own[y, x] = distance[base + y, base + x]
        cuda.syncthreads()
        for k in range(tile):
            own[y, x] = min(own[y, x], number(own[y, k] + own[k, x]))
            cuda.syncthreads()
        distance[base + y, base + x] = own[y, x]

    @jit
    def panels(distance, p):
        own = cuda.shared.array((tile, tile), number)
        closed = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        at = int32(cuda.blockIdx.x)
        if at >= p:
            at += int32(1)
        across = cuda.blockIdx.y == 0
        top = base if across else int32(at * tile)
        left = int32(at * tile) if across else base
        own[y, x] = distance[top + y, left + x]
        closed[y, x] = distance[base + y, base + x]
        cuda.syncthreads()
        for k in range(tile):
            if across:
                via = number(closed[y, k] + own[k, x])
            else:
                via = number(own[y, k] + closed[k, x])
            own[y, x] = min(own[y, x], via)
            cuda.syncthreads()
        distance[top + y, left + x] = own[y, x]

    @jit
    def rest(distance, p):
        to = cuda.shared.array((tile, tile), number)
        middle = cuda.shared.array((tile, tile), number)
        x = int32(cuda.threadIdx.x)
        y = int32(cuda.threadIdx.y)
        base = int32(p * tile)
        row = int32(cuda.blockIdx.y)
        column = int32(cuda.blockIdx.x)
        if row >= p:
            row += int32(1)
        if column >= p:
            column += int32(1)
        top = int32(row * tile)
        left = int32(column * tile)
        to[y, x] = distance[top + y, base + x]
        middle[y, x] = distance[base + y, left + x]
        cuda.syncthreads()
        best = distance[top + y, left + x]
        for k in range(tile):
            best = min(best, number(to[y, k] + middle[k, x]))
        distance[top + y, left + x] = best

    others = shape.padded // tile - 1
    block = (tile, tile)
    ops = {
        "pivot": Op(pivot, block, lambda args: (1, 1)),
        "panels": Op(panels, block, lambda args: (others, 2)),
        "rest": Op(rest, block, lambda args: (others, others)),
    }
    return CudaProgram(shape, target, ops)


KERNEL = Kernel(
    id="blocked",
    title="Blocked",
    papers=(),
    phases=PHASES,
    plan=plan,
    build=build,
    summary="Three phases of tiles.",
    lesson="",
    tiles=(8, 16, 32),
    default_tile=32,
    dtypes=("int32", "float32"),
)
