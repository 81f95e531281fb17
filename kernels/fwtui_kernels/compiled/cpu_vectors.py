"""The CPU's min-plus inner product on a block of vector registers: an intrinsic, because numba's loops do not stay in registers.

    for each k     load `width` neighbouring cells of row k into two registers
                   for each of ROWS rows: broadcast its cell (i, k), add, minimum with the row's registers

So two loads and ROWS broadcasts serve 2 x ROWS vectors of relaxations, and nothing is stored before the last k.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

REGISTERS = 2  # vector registers per row of a block
UNROLLED = 2  # values of k per iteration of the inner loop; every depth is a multiple of it
LINE = 64  # bytes of a cache line
FOR_WRITING = (1, 3, 1)  # arguments of LLVM's prefetch: to write, to the closest cache, data


def features_of_cpu() -> dict[str, bool]:
    """Return the processor's instruction set extensions by LLVM's names; nothing if LLVM does not know the processor."""
    try:
        return binding.get_host_cpu_features()
    except RuntimeError:
        return {}


def vector_bytes() -> int:
    """Return the width of this CPU's vector registers in bytes; 16, the minimum, if LLVM does not know the processor."""
    features = features_of_cpu()
    if features.get("avx512bw"):
        return 64
    return 32 if features.get("avx2") else 16


def rows() -> int:
    """Return the rows of a block: eight, with 16 independent sums, on CPUs with 32 vector registers, else four."""
    features = features_of_cpu()
    return 8 if features.get("avx512bw") or features.get("neon") else 4


ROWS = rows()


def width_of(itemsize: int, tile: int) -> int:
    """Return the cells of a row that are held in registers: REGISTERS vectors, at most a row of the tile."""
    return min(tile, REGISTERS * vector_bytes() // itemsize)


def vector_at(builder: Any, vector: Any, first: Any, index: Any) -> Any:
    """Return the address of the vector that starts `index` cells after the address `first`."""
    # numba's pointers are typed, and llvmlite rejects a vector store through a pointer to a cell
    return builder.bitcast(builder.gep(first, [index], source_etype=vector.element), vector.as_pointer())


def load_vector(builder: Any, vector: Any, place: Any, itemsize: int) -> Any:
    """Load the vector at an address with the alignment of a cell."""
    value = builder.load(place, typ=vector)
    value.align = itemsize
    return value


def broadcast(builder: Any, vector: Any, place: Any) -> Any:
    """Load the cell at an address into all lanes of a vector."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, builder.load(place, typ=vector.element), ir.IntType(32)(0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count))


def relax_vector(builder: Any, current: Any, to: Any, onward: Any) -> Any:
    """Return min(current, to + onward) in all lanes."""
    item = current.type.element
    if isinstance(item, ir.IntType):
        via = builder.add(to, onward)
        return builder.select(builder.icmp_signed("<", via, current), via, current)
    via = builder.fadd(to, onward)
    if features_of_cpu().get("neon"):
        # one instruction, like a comparison with a selection on x86; both return the number if the other is NaN
        name = f"llvm.minnum.v{current.type.count}{item.intrinsic_name}"
        kind = ir.FunctionType(current.type, [current.type, current.type])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [via, current])
    return builder.select(builder.fcmp_ordered("<", via, current), via, current)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """Return the address of array[row, column] of a C-contiguous array, and the length of its rows."""
    view = context.make_array(array_type)(context, builder, array)
    pitch = cgutils.unpack_tuple(builder, view.shape)[1]
    item = context.get_data_type(array_type.dtype)
    return builder.gep(view.data, [builder.add(builder.mul(row, pitch), column)], source_etype=item), pitch


@intrinsic
def copy_cells(typingctx, to, to_row, to_column, source, row, column, count):
    """Copy cells of a row to another row; the arrays are C-contiguous, and the rows do not overlap."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, _ = _cell(context, builder, signature.args[0], *args[:3])
        first, _ = _cell(context, builder, signature.args[3], *args[3:6])
        cgutils.raw_memcpy(builder, place, first, args[6], context.get_constant(types.intp, to.dtype.bitwidth // 8))
        return context.get_dummy_value()

    return types.void(to, types.intp, types.intp, source, types.intp, types.intp, types.intp), codegen


@intrinsic
def claim(typingctx, counter):
    """Return counter[0] and increment it atomically, so that every call gets another number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), codegen


@intrinsic
def relax_registers(typingctx, own, top, left, to, to_top, to_left, strips, first, depth, width, ahead):
    """Relax own[top + i, left + j] through to[to_top + i, to_left + k] and strips[first + k, j], i < ROWS, j < width, k < depth.

    All arrays are C-contiguous. `width` comes from width_of() and is the length of the strips' rows. `own` is written after all
    reads. The block that is `ahead` cells further is prefetched.
    """
    itemsize = own.dtype.bitwidth // 8
    widths = [width for width in (8, 16, 32, 64) if width * itemsize <= REGISTERS * vector_bytes()] or [4]

    def block(context: Any, builder: Any, signature: Any, args: Any, columns: int) -> None:
        item, index = context.get_data_type(own.dtype), args[1].type
        vector = ir.VectorType(item, min(columns, vector_bytes() // itemsize))
        offsets = range(0, columns, vector.count)
        first, pitch = _cell(context, builder, signature.args[0], *args[:3])
        lines = [builder.gep(first, [builder.mul(pitch, index(row))], source_etype=item) for row in range(ROWS)]
        places = [vector_at(builder, vector, line, index(offset)) for line in lines for offset in offsets]
        best = [cgutils.alloca_once_value(builder, load_vector(builder, vector, place, itemsize)) for place in places]
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for line in lines:
            for offset in range(0, columns, LINE // itemsize):  # the address may be invalid
                place = builder.gep(line, [builder.add(args[10], index(offset))], source_etype=item)
                builder.call(prefetch, [place, *map(word, FOR_WRITING)])
        first, pitch = _cell(context, builder, signature.args[3], *args[3:6])
        legs = [builder.gep(first, [builder.mul(pitch, index(row))], source_etype=item) for row in range(ROWS)]
        strip = context.make_array(signature.args[6])(context, builder, args[6]).data
        strip = builder.gep(strip, [builder.mul(args[7], index(columns))], source_etype=item)
        with cgutils.for_range_slice(builder, index(0), args[8], index(UNROLLED), intp=index) as (begin, _):
            for k in range(UNROLLED):
                at = builder.add(begin, index(k))
                line = builder.gep(strip, [builder.mul(at, index(columns))], source_etype=item)
                seconds = [load_vector(builder, vector, vector_at(builder, vector, line, index(o)), itemsize) for o in offsets]
                for row, leg in enumerate(legs):
                    to_all = broadcast(builder, vector, builder.gep(leg, [at], source_etype=item))
                    for second, target in zip(seconds, best[row * len(seconds) :], strict=False):
                        builder.store(relax_vector(builder, builder.load(target, typ=vector), to_all, second), target)
        for place, target in zip(places, best, strict=True):
            builder.store(builder.load(target, typ=vector), place).align = itemsize

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # otherwise each loop that calls it would compile it again
        builder.function.attributes.add("noinline")
        for columns in widths:
            with builder.if_then(builder.icmp_signed("==", args[9], args[9].type(columns))):
                block(context, builder, signature, args, columns)
        return context.get_dummy_value()

    numbers = (types.intp, types.intp)
    return types.void(own, *numbers, to, *numbers, strips, *numbers, types.intp, types.intp), codegen
