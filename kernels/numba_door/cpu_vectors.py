"""The CPU's min-plus inner product on a block of vector registers: an intrinsic, as no loop of numba's stays in them.

    for each k     one load of `width` neighbouring cells of row k, two registers full
                   for each of ROWS rows: its cell (i, k) in all lanes, add, minimum with what the row's registers hold

So two loads and ROWS broadcasts serve 2 x ROWS vectors of relaxations, and nothing is stored before the last k.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

ROWS = 4
REGISTERS = 2  # of a row: with ROWS = 4 eight sums are under way at once, and 16 registers are enough


def vector_bytes() -> int:
    """Width of this CPU's vector registers; 16, which all have, where LLVM cannot tell."""
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:
        return 16
    if features.get("avx512bw"):
        return 64
    return 32 if features.get("avx2") else 16


def width_of(itemsize: int, tile: int) -> int:
    """Cells of a row that are held in registers: REGISTERS vectors, or what the tile has."""
    return min(tile, REGISTERS * vector_bytes() // itemsize)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """The address of array[row, column] of a C-contiguous array, and the length of its rows."""
    made = context.make_array(array_type)(context, builder, array)
    pitch = cgutils.unpack_tuple(builder, made.shape)[1]
    return builder.gep(made.data, [builder.add(builder.mul(row, pitch), column)]), pitch


@intrinsic
def relax_registers(
    typingctx: Any,
    own: Any,
    top: Any,
    left: Any,
    to: Any,
    to_top: Any,
    to_left: Any,
    middle: Any,
    begin: Any,
    depth: Any,
    width: Any,
) -> Any:
    """own[top + i, left + j] = min(itself, to[to_top + i, to_left + k] + middle[k, begin + j]), i < ROWS, j < width, k < depth.

    All arrays are C-contiguous; `width`, a constant, is a power of two. `own` is written after everything is read.
    """
    if not isinstance(width, types.Literal):
        return None  # numba asks again with the constant's own type
    columns = width.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own_type, to_type, middle_type = (signature.args[which] for which in (0, 3, 6))
        item = context.get_data_type(own_type.dtype)
        real = isinstance(own_type.dtype, types.Float)
        itemsize = own_type.dtype.bitwidth // 8
        lanes = min(columns, vector_bytes() // itemsize)
        vector = ir.VectorType(item, lanes)
        vectors = range(0, columns, lanes)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        index = args[1].type

        def vector_at(cell: Any, offset: int) -> Any:
            return builder.bitcast(builder.gep(cell, [index(offset)]), vector.as_pointer())

        def loaded(place: Any) -> Any:
            value = builder.load(place)
            value.align = itemsize
            return value

        first, pitch = _cell(context, builder, own_type, args[0], args[1], args[2])
        lines = [builder.gep(first, [builder.mul(pitch, index(row))]) for row in range(ROWS)]
        places = [[vector_at(line, offset) for offset in vectors] for line in lines]
        best = [[cgutils.alloca_once_value(builder, loaded(place)) for place in row] for row in places]
        first, pitch = _cell(context, builder, to_type, args[3], args[4], args[5])
        legs = [builder.gep(first, [builder.mul(pitch, index(row))]) for row in range(ROWS)]
        with cgutils.for_range(builder, args[8], intp=index) as loop:
            line, _ = _cell(context, builder, middle_type, args[6], loop.index, args[7])
            seconds = [loaded(vector_at(line, offset)) for offset in vectors]
            for leg, row in zip(legs, best, strict=True):
                value = builder.load(builder.gep(leg, [loop.index]))
                one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
                to_all = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), everywhere)
                for second, kept in zip(seconds, row, strict=True):
                    via = builder.fadd(to_all, second) if real else builder.add(to_all, second)
                    before = builder.load(kept)
                    less = builder.fcmp_ordered("<", via, before) if real else builder.icmp_signed("<", via, before)
                    builder.store(builder.select(less, via, before), kept)
        for row, kept_row in zip(places, best, strict=True):
            for place, kept in zip(row, kept_row, strict=True):
                builder.store(builder.load(kept), place).align = itemsize
        return context.get_dummy_value()

    return types.void(own, types.intp, types.intp, to, types.intp, types.intp, middle, types.intp, types.intp, width), codegen
