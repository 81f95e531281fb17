"""Four neighbouring cells in one load or store: 64 bits of int16, 128 bits of float32 or int32.

The machine has such instructions and compilers use them only where they can prove the alignment, so the callers promise it:
the index is a multiple of 4, and so is the length of a row; shared arrays are made with alignment=ALIGN16. Both take an array
of any shape and an index that counts cells from its first one. Their plain-Python twins are in kernels/numba_door/simulator.py.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.cuda.extending import intrinsic

_LANES = [ir.Constant(ir.IntType(32), lane) for lane in range(4)]


def _four(context: Any, array: Any) -> tuple[Any, int]:
    """The type of four cells, and the alignment in bytes that makes them one instruction."""
    return ir.VectorType(context.get_data_type(array.dtype), 4), array.dtype.bitwidth // 2


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array, index = signature.args[:2]
    first = context.make_array(array)(context, builder, args[0]).data
    place = builder.gep(first, [context.cast(builder, args[1], index, types.intp)])
    return builder.bitcast(place, _four(context, array)[0].as_pointer())


@intrinsic
def load4(typingctx: Any, array: Any, at: Any) -> Any:
    """The cells at .. at + 3 as a tuple."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = builder.load(_pointer(context, builder, signature, args))
        loaded.align = _four(context, array)[1]
        return context.make_tuple(builder, signature.return_type, [builder.extract_element(loaded, lane) for lane in _LANES])

    return types.UniTuple(array.dtype, 4)(array, at), codegen


@intrinsic
def store4(typingctx: Any, array: Any, at: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Writes a, b, c, d to the cells at .. at + 3."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, alignment = _four(context, array)
        four = ir.Constant(kind, ir.Undefined)
        for lane, value in zip(_LANES, args[2:], strict=True):
            four = builder.insert_element(four, value, lane)
        builder.store(four, _pointer(context, builder, signature, args)).align = alignment
        return context.get_dummy_value()

    return types.void(array, at, *[array.dtype] * 4), codegen
