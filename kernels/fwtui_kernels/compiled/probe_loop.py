"""The inner loop of a tile product, with which fwtui_kernels.probes.probe_cpu measures the peak rate of a CPU."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from fwtui_kernels.compiled.cpu_vectors import broadcast, load_vector, relax_vector, vector_at, vector_bytes
from fwtui_kernels.plan import ITEMSIZE


def probe_loop(dtype: str, rows: int, columns: int, depth: int, by_bits: bool) -> tuple[Any, int]:
    """Return the intrinsic turn(c, a, b, turns, stride) on flat arrays, and the number of cells in a vector.

    It relaxes a tile of rows x columns vectors; an iteration has `depth` values of k. relax_vector() describes `by_bits`.
    """
    itemsize = ITEMSIZE[dtype]
    lanes = vector_bytes() // itemsize
    item = {"float32": ir.FloatType(), "float64": ir.DoubleType()}.get(dtype) or ir.IntType(8 * itemsize)
    vector = ir.VectorType(item, lanes)
    index = ir.IntType(64)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        c, a, b = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in range(3))
        turns, stride = args[3:]

        def load(first: Any, at: Any) -> Any:
            return load_vector(builder, vector, vector_at(builder, vector, first, at), itemsize)

        cells = [load(c, index(cell * lanes)) for cell in range(rows * columns)]
        before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        turn = builder.phi(index)
        cells_before = [builder.phi(vector) for _ in cells]
        # 0 at run time, which the compiler cannot know, so that the loads stay inside the loop
        offset = builder.mul(turn, stride)
        now = list(cells_before)
        for k in range(depth):
            line = [load(b, builder.add(offset, index((k * columns + j) * lanes))) for j in range(columns)]
            for i in range(rows):
                to_k = broadcast(
                    builder, vector, builder.gep(a, [builder.add(offset, index(k * rows + i))], source_etype=vector.element)
                )
                for j in range(columns):
                    cell = i * columns + j
                    now[cell] = relax_vector(builder, now[cell], to_k, line[j], by_bits)
        following = builder.add(turn, index(1))
        for phi, first, last in zip([turn, *cells_before], [index(0), *cells], [following, *now], strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, loop)
        builder.cbranch(builder.icmp_signed("<", following, turns), loop, after)
        builder.position_at_end(after)
        for cell, value in enumerate(now):
            builder.store(value, vector_at(builder, vector, c, index(cell * lanes))).align = itemsize
        return context.get_dummy_value()

    @intrinsic
    def turn(typingctx: Any, c: Any, a: Any, b: Any, turns: Any, stride: Any) -> Any:
        return types.void(c, a, b, types.int64, types.int64), emit

    return turn, lanes
