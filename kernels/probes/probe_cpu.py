"""What this CPU can relax at most: c = min(c, a + b) on whole vector registers, on every core.

The inner loop of a tile product and nothing else. A tile of c stays in registers; a row of b comes from the first-level cache
as whole vectors, one value of a for each row of the tile is spread over a vector:

        b b b b        depth times: every c[i][j] = min(c[i][j], a[i] + b[j]),
    a   c c c c        so each vector that is loaded serves several relaxations
    a   c c c c

The vectors are written out in LLVM's own vector types, because what a compiler makes of a plain loop is what kernels are
measured by, not the limit that they are measured against.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

DEPTH = 16  # k in one turn of the loop
BITS = {"float32": 32, "int32": 32, "int16": 16}


class Tile(NamedTuple):
    """Vectors of c that are kept in registers."""

    rows: int
    columns: int


class Probe(NamedTuple):
    """A compiled loop for one form and tile. Arrays have one row for each thread."""

    run: Callable[[Any, Any, Any, int, int], None]  # (c, a, b, turns, stride); c is both input and result
    dtype: str
    tile: Tile
    lanes: int  # cells in a vector

    @property
    def width(self) -> int:
        """Cells in a row of the tile."""
        return self.tile.columns * self.lanes

    @property
    def relaxations(self) -> int:
        """Of one thread in one turn."""
        return DEPTH * self.tile.rows * self.width


def tiles(features: Sequence[str]) -> tuple[Tile, ...]:
    """Tiles worth trying: with 32 registers, or with the 16 of older x86."""
    if "sse2" in features and "avx512vl" not in features:
        return (Tile(4, 2), Tile(6, 2))
    return (Tile(4, 4), Tile(8, 2))


def host_features() -> list[str]:
    """What LLVM says that this machine's processor has."""
    import llvmlite.binding as llvm

    return [name for name, there in llvm.get_host_cpu_features().items() if there]


def build(form: str, tile: Tile) -> Probe:
    """The loop for a form of kernels.probes.probe_forms, compiled when it first runs."""
    from numba import njit, prange

    from kernels.numba_door.cpu_vectors import vector_bytes

    dtype = form.partition("-")[0]
    turn, lanes = _loop(form, dtype, tile, 8 * vector_bytes())

    @njit(parallel=True)
    def run(c, a, b, turns, stride):
        for thread in prange(c.shape[0]):
            turn(c[thread], a[thread], b[thread], turns, stride)

    return Probe(run, dtype, tile, lanes)


def build_copy() -> Callable[[Any, Any], None]:
    """Copies one array to another of the same size, every core a part of it."""
    from numba import njit, prange

    @njit(parallel=True)
    def copy(source, to):
        parts = 64
        for part in prange(parts):
            first, end = source.size * part // parts, source.size * (part + 1) // parts
            to[first:end] = source[first:end]

    return copy


def _loop(form: str, dtype: str, tile: Tile, bits: int) -> tuple[Any, int]:
    """turn(c, a, b, turns, stride) on flat arrays, and the cells in a vector."""
    from llvmlite import ir
    from numba.core import types
    from numba.extending import intrinsic

    real = dtype == "float32"
    number = ir.FloatType() if real else ir.IntType(BITS[dtype])
    lanes = bits // BITS[dtype]
    vector, whole = ir.VectorType(number, lanes), ir.VectorType(ir.IntType(BITS[dtype]), lanes)
    index = ir.IntType(64)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

    def relaxed(builder: Any, c: Any, a: Any, b: Any) -> Any:
        via = builder.fadd(a, b) if real else builder.add(a, b)
        if form == "float32-bits":
            # the bits of floats that are not negative are ordered as the floats are, and more pipes compare integers
            via, c = builder.bitcast(via, whole), builder.bitcast(c, whole)
            return builder.bitcast(builder.select(builder.icmp_signed("<", via, c), via, c), vector)
        less = builder.fcmp_ordered("<", via, c) if real else builder.icmp_signed("<", via, c)
        return builder.select(less, via, c)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        c, a, b = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in range(3))
        turns, stride = args[3:]

        def place(first: Any, at: Any) -> Any:
            return builder.bitcast(builder.gep(first, [at]), vector.as_pointer())

        def load(first: Any, at: Any) -> Any:
            loaded = builder.load(place(first, at))
            loaded.align = BITS[dtype] // 8
            return loaded

        def spread(first: Any, at: Any) -> Any:
            nothing = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(nothing, builder.load(builder.gep(first, [at])), ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, nothing, everywhere)

        cells = [load(c, index(cell * lanes)) for cell in range(tile.rows * tile.columns)]
        before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        turn = builder.phi(index)
        kept = [builder.phi(vector) for _ in cells]
        # it is 0, which only the caller knows: the loads stay inside the loop
        offset = builder.mul(turn, stride)
        now = list(kept)
        for k in range(DEPTH):
            row = [load(b, builder.add(offset, index((k * tile.columns + j) * lanes))) for j in range(tile.columns)]
            for i in range(tile.rows):
                to_k = spread(a, builder.add(offset, index(k * tile.rows + i)))
                for j in range(tile.columns):
                    cell = i * tile.columns + j
                    now[cell] = relaxed(builder, now[cell], to_k, row[j])
        following = builder.add(turn, index(1))
        for phi, first, last in zip([turn, *kept], [index(0), *cells], [following, *now], strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, loop)
        builder.cbranch(builder.icmp_signed("<", following, turns), loop, after)
        builder.position_at_end(after)
        for cell, value in enumerate(now):
            builder.store(value, place(c, index(cell * lanes))).align = BITS[dtype] // 8
        return context.get_dummy_value()

    @intrinsic
    def turn(typingctx: Any, c: Any, a: Any, b: Any, turns: Any, stride: Any) -> Any:
        return types.void(c, a, b, types.int64, types.int64), emit

    return turn, lanes
