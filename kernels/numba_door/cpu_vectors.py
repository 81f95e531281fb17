"""The CPU's min-plus inner product on a block of vector registers: an intrinsic, as numba's own loops do not stay in them.

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
    """Width of this CPU's vector registers; 16, the minimum, if LLVM does not know."""
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


def vector_at(builder: Any, vector: Any, first: Any, index: Any) -> Any:
    """The address of the vector that starts that many cells after the address `first`."""
    return builder.bitcast(builder.gep(first, [index]), vector.as_pointer())


def loaded(builder: Any, place: Any, itemsize: int) -> Any:
    """The vector at an address, which is aligned as a cell is."""
    value = builder.load(place)
    value.align = itemsize
    return value


def spread(builder: Any, vector: Any, place: Any) -> Any:
    """The cell at an address, in all lanes of a vector."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, builder.load(place), ir.IntType(32)(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count))


def relaxed(builder: Any, kept: Any, to: Any, onward: Any, by_bits: bool = False) -> Any:
    """min(kept, to + onward) in all lanes; `by_bits`: nonnegative floats, which are ordered like their bits."""
    real = isinstance(kept.type.element, ir.FloatType)
    via = builder.fadd(to, onward) if real else builder.add(to, onward)
    if by_bits:
        # more pipes compare integers
        whole = ir.VectorType(ir.IntType(32), kept.type.count)
        less = builder.icmp_signed("<", builder.bitcast(via, whole), builder.bitcast(kept, whole))
    elif real:
        less = builder.fcmp_ordered("<", via, kept)
    else:
        less = builder.icmp_signed("<", via, kept)
    return builder.select(less, via, kept)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """The address of array[row, column] of a C-contiguous array, and the length of its rows."""
    made = context.make_array(array_type)(context, builder, array)
    pitch = cgutils.unpack_tuple(builder, made.shape)[1]
    return builder.gep(made.data, [builder.add(builder.mul(row, pitch), column)]), pitch


@intrinsic
def relax_registers(typingctx, own, top, left, to, to_top, to_left, middle, begin, depth, width):
    """own[top + i, left + j] = min(itself, to[to_top + i, to_left + k] + middle[k, begin + j]), i < ROWS, j < width, k < depth.

    All arrays are C-contiguous; `width`, a constant, is a power of two. `own` is written after everything is read.
    """
    if not isinstance(width, types.Literal):
        return None  # numba asks again with the constant's own type
    columns = width.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        own_type, to_type, middle_type = (signature.args[which] for which in (0, 3, 6))
        item = context.get_data_type(own_type.dtype)
        itemsize = own_type.dtype.bitwidth // 8
        lanes = min(columns, vector_bytes() // itemsize)
        vector = ir.VectorType(item, lanes)
        index = args[1].type

        def vectors_at(line: Any) -> list[Any]:
            return [vector_at(builder, vector, line, index(offset)) for offset in range(0, columns, lanes)]

        first, pitch = _cell(context, builder, own_type, args[0], args[1], args[2])
        places = [vectors_at(builder.gep(first, [builder.mul(pitch, index(row))])) for row in range(ROWS)]
        best = [[cgutils.alloca_once_value(builder, loaded(builder, place, itemsize)) for place in row] for row in places]
        first, pitch = _cell(context, builder, to_type, args[3], args[4], args[5])
        legs = [builder.gep(first, [builder.mul(pitch, index(row))]) for row in range(ROWS)]
        with cgutils.for_range(builder, args[8], intp=index) as loop:
            line, _ = _cell(context, builder, middle_type, args[6], loop.index, args[7])
            seconds = [loaded(builder, place, itemsize) for place in vectors_at(line)]
            for leg, row in zip(legs, best, strict=True):
                to_all = spread(builder, vector, builder.gep(leg, [loop.index]))
                for second, kept in zip(seconds, row, strict=True):
                    builder.store(relaxed(builder, builder.load(kept), to_all, second), kept)
        for row, kept_row in zip(places, best, strict=True):
            for place, kept in zip(row, kept_row, strict=True):
                builder.store(builder.load(kept), place).align = itemsize
        return context.get_dummy_value()

    return types.void(own, types.intp, types.intp, to, types.intp, types.intp, middle, types.intp, types.intp, width), codegen
