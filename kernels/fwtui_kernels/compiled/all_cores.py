"""A loop on all cores that calls a compiled function. Numba compiles the parallel loop once, for all functions and types.

With parallel=True, numba would compile the loop's body, with all that it calls, four times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import get_num_threads, prange, typeof
from numba.core import cgutils, types
from numba.extending import intrinsic

from fwtui_kernels.compiled.locked_njit import inner, njit

INDEX, ADDRESS = ir.IntType(64), ir.IntType(8).as_pointer()
TASK = ir.FunctionType(ir.VoidType(), [ADDRESS, INDEX])


def entry(function: Any) -> Any:
    """Compile a function that calls on_all_cores, without the GIL; code from the cache would not start numba's threads itself."""
    dispatcher = njit(cache=True, nogil=True)(function)
    load = dispatcher.compile

    def started(signature: tuple[Any, ...]) -> Any:
        get_num_threads()
        return load(signature)

    dispatcher.compile = started
    return dispatcher


@intrinsic
def on_all_cores(typingctx, function, count, arguments):
    """Call function(index, *arguments) for each index below `count`, on all cores; MemoryError if a call raises an exception."""
    called = typingctx.resolve_function_type(function, (types.intp, *map(types.unliteral, arguments)), {})
    looped = typingctx.resolve_function_type(typeof(_loop), (types.intp,) * 3, {})

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        compiled, loop = function.dispatcher.get_compile_result(called), _loop.get_compile_result(looped)
        context.add_linking_libs((compiled.library, loop.library))
        # the error of a call, and the arguments
        values = [ir.Constant(ir.IntType(32), 0), *cgutils.unpack_tuple(builder, args[2])]
        place = cgutils.alloca_once_value(builder, cgutils.pack_struct(builder, values))
        task = ir.Function(builder.module, TASK, builder.module.get_unique_name("task"))
        task.linkage = "internal"
        inside = ir.IRBuilder(task.append_basic_block())
        shared = inside.bitcast(task.args[0], place.type)
        values = [task.args[1], *cgutils.unpack_tuple(inside, inside.load(shared))[1:]]
        status, _ = context.call_internal_no_propagate(inside, compiled.fndesc, called, values)
        with inside.if_then(status.is_error, likely=False):
            inside.store(status.code, cgutils.gep_inbounds(inside, shared, 0, 0))
        inside.ret_void()
        words = [builder.ptrtoint(task, INDEX), builder.ptrtoint(place, INDEX), args[1]]
        context.call_internal(builder, loop.fndesc, looped, words)
        failed = cgutils.is_not_null(builder, builder.load(cgutils.gep_inbounds(builder, place, 0, 0)))
        with builder.if_then(failed, likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("a task of a parallel loop failed",))
        return context.get_dummy_value()

    return types.void(function, types.intp, arguments), codegen


@inner(cache=True, nogil=True, parallel=True)
def _loop(task, shared, count):
    for index in prange(count):
        _call(task, shared, np.int64(index))  # pyright: ignore[reportCallIssue]


@intrinsic
def _call(typingctx, task, shared, index):
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.call(builder.inttoptr(args[0], TASK.as_pointer()), [builder.inttoptr(args[1], ADDRESS), args[2]])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), codegen
