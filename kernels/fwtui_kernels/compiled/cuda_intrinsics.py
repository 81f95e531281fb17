"""Intrinsics for the register-tiled min-plus product and its loads, which plain numba cannot express.

A *word* is a register: one float32 or int32 distance, or two int16 distances of neighbouring columns that one instruction relaxes
together. A float64 distance is a word of two registers. The GPU loads and stores 16 bytes with one instruction, but a compiler
uses it only if it can prove the alignment. So callers, which take four cells or words at once, guarantee the alignment: every
index and every row length is a multiple of four, and shared arrays have alignment=ALIGN16. An index counts cells or words from
the start of the array, for any shape. The equivalents in plain Python are in simulator_intrinsics.py.

Pointers are typed (as_pointer()), because for GPUs before Blackwell NVVM reads the IR of LLVM 7, which has no opaque pointers
(`ptr` is an ERROR_INVALID_IR for sm_75 and sm_90). Each load and address also names its type, so that nothing else depends on
typed pointers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types
from numba.cuda.extending import intrinsic, lower_builtin  # pyright: ignore[reportAttributeAccessIssue]

from fwtui_kernels.forms import FORMS, MIXED, ONE

LOADED = 16  # maximum bytes of one access
_I32, _I64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
_NOTHING = ir.FunctionType(ir.VoidType(), [])


def _word(array: Any) -> Any:
    """Return numba's type of a word of an array."""
    return types.int32 if array.dtype.bitwidth < 32 else array.dtype


@lower_builtin(min, types.float64, types.float64)
def minimum(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Return the smaller number by a comparison and a selection, because no instruction computes a 64-bit minimum."""
    return builder.select(builder.fcmp_ordered("<", args[1], args[0]), args[1], args[0])


class _Items(NamedTuple):
    """An address and the type of the items there, which may differ from the type of the pointer."""

    address: Any
    item: Any


def _pointer(context: Any, builder: Any, signature: Any, args: Any, which: int, item: Callable[[Any], Any] = _word) -> _Items:
    """Return the address of the cell or word args[which + 1] of the array args[which]."""
    array, index = signature.args[which : which + 2]
    first = context.make_array(array)(context, builder, args[which]).data
    kind = context.get_data_type(item(array))
    items = builder.bitcast(first, kind.as_pointer())
    offset = context.cast(builder, args[which + 1], index, types.intp)
    return _Items(builder.gep(items, [offset], source_etype=kind), kind)


def _load(builder: Any, items: _Items, offset: int, alignment: int = LOADED) -> list[Any]:
    """Load four cells or words, `offset` items after an address, with as few instructions as the alignment allows."""
    place = builder.gep(items.address, [_I32(offset)], source_etype=items.item)
    four = ir.VectorType(items.item, 4)
    vector = builder.load(builder.bitcast(place, four.as_pointer()), typ=four)
    vector.align = alignment
    return [builder.extract_element(vector, _I32(lane)) for lane in range(4)]


def _loading(item: Callable[[Any], Any]) -> Any:
    """Return the intrinsic (array, at) that loads the items at .. at + 3 as a tuple."""

    @intrinsic
    def load(typingctx: Any, array: Any, at: Any) -> Any:
        kind = item(array)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            items = _pointer(context, builder, signature, args, 0, item)
            return context.make_tuple(builder, signature.return_type, _load(builder, items, 0, min(LOADED, kind.bitwidth // 2)))

        return types.UniTuple(kind, 4)(array, at), codegen

    return load


def _storing(item: Callable[[Any], Any]) -> Any:
    """Return the intrinsic (array, at, a, b, c, d) that writes four items to at .. at + 3."""

    @intrinsic
    def store(typingctx: Any, array: Any, at: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        kind = item(array)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            items = _pointer(context, builder, signature, args, 0, item)
            vector = ir.VectorType(items.item, 4)
            four = ir.Constant(vector, ir.Undefined)
            for lane, value in enumerate(args[2:]):
                four = builder.insert_element(four, value, _I32(lane))
            builder.store(four, builder.bitcast(items.address, vector.as_pointer())).align = min(LOADED, kind.bitwidth // 2)
            return context.get_dummy_value()

        return types.void(array, at, *[kind] * 4), codegen

    return store


# four cells: 64 bits of int16, 128 of float32 and int32, 256 of float64; or four words, which are eight cells of int16
load4, store4 = _loading(lambda array: array.dtype), _storing(lambda array: array.dtype)
load_words, store_words = _loading(_word), _storing(_word)


@intrinsic
def spread(typingctx: Any, cell: Any) -> Any:
    """Return a cell as a word to combine with the row panel: an int16 in both halves, other types unchanged."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if cell.bitwidth >= 32:
            return args[0]
        low = builder.zext(args[0], _I32)
        return builder.or_(low, builder.shl(low, _I32(16)))

    return (types.int32 if cell.bitwidth < 32 else cell)(cell), codegen


@intrinsic
def copy_async(typingctx: Any, shared: Any, to: Any, matrix: Any, at: Any) -> Any:
    """Copy four words from global to shared memory asynchronously (cp.async); wait_copies() waits for them."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        here, there = (_pointer(context, builder, signature, args, which).address for which in (0, 2))
        near = builder.addrspacecast(builder.bitcast(here, _BYTE.as_pointer()), _BYTE.as_pointer(3))
        far = builder.addrspacecast(builder.bitcast(there, _BYTE.as_pointer()), _BYTE.as_pointer(1))
        kind = ir.FunctionType(ir.VoidType(), [_I32, _I64])
        for offset in range(0, _word(matrix).bitwidth // 2, LOADED):
            text = f"cp.async.cg.shared.global [$0+{offset}], [$1+{offset}], 16;"
            copy = ir.InlineAsm(kind, text, "r,l,~{memory}", side_effect=True)
            builder.call(copy, [builder.ptrtoint(near, _I32), builder.ptrtoint(far, _I64)])
        return context.get_dummy_value()

    return types.void(shared, to, matrix, at), codegen


@intrinsic
def commit_copies(typingctx: Any) -> Any:
    """Commit all copies since the last call as one group, which may be empty."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.call(ir.InlineAsm(_NOTHING, "cp.async.commit_group;", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def wait_copies(typingctx: Any, still: Any) -> Any:
    """Wait until at most `still` (a constant) of this thread's groups are in flight; other threads need a barrier."""
    if not isinstance(still, types.Literal):
        return None  # numba retries with the literal type
    groups = still.literal_value

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.call(ir.InlineAsm(_NOTHING, f"cp.async.wait_group {groups};", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(still), codegen


@intrinsic
def rematerialize(typingctx: Any, number: Any) -> Any:
    """Return a 32-bit number unchanged. It is opaque to the compiler, which then recomputes values derived from it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        move = ir.InlineAsm(ir.FunctionType(_I32, [_I32]), "mov.b32 $0, $1;", "=r,r", side_effect=True)
        return builder.call(move, args)

    return number(number), codegen


@intrinsic
def clock(typingctx: Any) -> Any:
    """Return the multiprocessor's cycle counter."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # the memory clobber keeps the compiler from moving other accesses across it
        read = ir.InlineAsm(ir.FunctionType(_I64, []), "mov.u64 $0, %clock64;", "=l,~{memory}", side_effect=True)
        return builder.call(read, [])

    return types.int64(), codegen


@intrinsic
def relax_tile(typingctx, best, to, to_at, middle, middle_at, rows, columns, high, wide, depth, form):
    """Relax best[i, j] = min(best[i, j], to[k, i] + middle[k, j]) for `depth` values of k: the inner loop of all fast kernels.

    `best` is a local array of rows x columns words, which stay in registers because all indices are constants. `to` and `middle`
    are shared arrays with rows of `high` and `wide` words per k. A thread's rows come in groups of four, one load per group,
    with a stride of high / (rows / 4), so that a warp reads whole lines; its columns likewise. That is (rows + columns) / 4 loads
    per k for rows x columns relaxations. With 4 loads for 64 relaxations the loop is compute-bound. All arguments except best,
    to_at and middle_at are compile-time constants.
    """
    constants = (rows, columns, high, wide, depth, form)
    if not all(isinstance(t, types.Literal) for t in constants):
        return None
    sizes = [t.literal_value for t in constants]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        down, across, to_pitch, middle_pitch, steps, number = sizes
        form = FORMS[number]
        tile = context.make_array(signature.args[0])(context, builder, args[0]).data
        first_to = _pointer(context, builder, signature, args, 1)
        first_middle = _pointer(context, builder, signature, args, 3)
        kind = context.get_data_type(signature.args[0].dtype)
        cells = [builder.gep(tile, [_I32(cell)], source_etype=kind) for cell in range(down * across)]
        values = [builder.load(cell, typ=kind) for cell in cells]
        one = builder.call(ir.InlineAsm(ir.FunctionType(_I32, []), ONE, "=r", side_effect=False), [])

        def line(first: Any, k: int, size: int, pitch: int) -> list[Any]:
            stride = pitch // (size // 4)
            return [value for group in range(size // 4) for value in _load(builder, first, k * pitch + group * stride)]

        at_once = 2 if form.two else 1
        for k in range(0, steps, at_once):
            together = range(k, k + at_once)
            tos = [line(first_to, step, down, to_pitch) for step in together]
            middles = [line(first_middle, step, across, middle_pitch) for step in together]
            for i in range(down):
                for j in range(across):
                    cell = i * across + j
                    pairs = [(to[i], middle[j]) for to, middle in zip(tos, middles, strict=True)]
                    if form.two and (i + j) % MIXED < form.share:
                        operands = [x for pair in pairs for x in pair]
                        values[cell] = _call(builder, form.two, [*operands, values[cell]], one)
                    else:
                        for pair in pairs:
                            values[cell] = _call(builder, form.one, [*pair, values[cell]])
        for value, cell in zip(values, cells, strict=True):
            builder.store(value, cell)
        return context.get_dummy_value()

    return types.void(best, to, to_at, middle, middle_at, rows, columns, high, wide, depth, form), codegen


def _call(builder: Any, text: str, operands: list[Any], one: Any = None) -> Any:
    """Emit the PTX in `text`, in which $0 is the result and $1, $2, ... are the operands and, if given, `one`."""
    word = operands[0].type
    register = {ir.FloatType(): "f", ir.DoubleType(): "d"}.get(word, "r")
    constraints = [f"={register}", *[register] * len(operands)]
    if one is not None:
        operands, constraints = [*operands, one], [*constraints, "r"]
    kind = ir.FunctionType(word, [operand.type for operand in operands])
    return builder.call(ir.InlineAsm(kind, text, ",".join(constraints), side_effect=False), operands)
