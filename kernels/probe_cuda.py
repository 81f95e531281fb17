"""What this GPU can relax at most: c = min(c, a + b) in each of the ways that the hardware has, fed as a tile product feeds it.

A block of 256 threads keeps a 128 x 128 tile of c in registers, 8 x 8 of it in each thread as 2 x 2 groups of 4 x 4 that lie 64
rows and columns apart; slabs of a and b, 16 k deep, are in shared memory, and each k takes four 128-bit loads a thread:

                 k: b[128]
                 ....####........####....    a thread's 8 columns
    k: a[128]  # cccc            cccc
               # cccc            cccc        for k in 0 .. 15: c[i][j] = min(c[i][j], a[k][i] + b[k][j])

Nothing reaches device memory meanwhile, so nothing but the instructions limits it. What a thread holds are 32-bit words, whatever
is in them: a float, an int, or two 16-bit numbers side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

BLOCK, SIDE, DEPTH = 256, 128, 16
RESULTS = 8  # by as many per thread
SLAB = DEPTH * SIDE  # words
CELLS = RESULTS * RESULTS  # words of c per thread
BLOCKS_PER_MULTIPROCESSOR = 2


class Asm(NamedTuple):
    """PTX of one relaxation: $0 is the new c, and the last operand the old one. In the caller's words, 1 is `one`."""

    single: str  # $1 a, $2 b, $3 c
    double: str = ""  # two k at once: $1 a, $2 b, $3 a', $4 b', $5 one, $6 c
    share: int = 3  # of three cells, how many take two k at once


# add and minimum of one type become one fused instruction where there is one (compute capability 9.0: VIADDMNMX)
_FUSED = "{ .reg .b32 t; add.%s t, $1, $2; min.%s $0, t, $3; }"
# two sums by the multiply-add pipe, which has nothing to do otherwise, and one minimum of three (VIMNMX3). `one` is 1, which only
# the caller knows: a multiplication by a constant 1 would become an addition. Two 16-bit sums in a word do not carry: both stay
# below 2^15
_MIXED = "{ .reg .b32 t, u; mad.lo.s32 t, $1, $5, $2; mad.lo.s32 u, $3, $5, $4; min.%s t, t, u; min.%s $0, t, $6; }"
_FLOATS = "{ .reg .f32 a, b, c; mov.b32 a, $1; mov.b32 b, $2; mov.b32 c, $3; add.f32 a, a, b; min.f32 c, a, c; mov.b32 $0, c; }"
# floats that are not negative are ordered as their bits are, and integers have a minimum of three
_TWO_FLOATS = (
    "{ .reg .f32 a, b; .reg .b32 t, u; mov.b32 a, $1; mov.b32 b, $2; add.f32 a, a, b; mov.b32 t, a; "
    "mov.b32 a, $3; mov.b32 b, $4; add.f32 a, a, b; mov.b32 u, a; min.s32 t, t, u; min.s32 $0, t, $6; }"
)
ASM: dict[str, Asm] = {
    "float32": Asm(_FLOATS, share=0),
    "float32-two": Asm(_FLOATS, _TWO_FLOATS),
    "int32": Asm(_FUSED % ("s32", "s32"), share=0),
    "int32-mixed": Asm(_FUSED % ("s32", "s32"), _MIXED % ("s32", "s32"), share=1),
    "int16": Asm(_FUSED % ("u16x2", "u16x2"), share=0),
    "int16-mixed": Asm(_FUSED % ("u16x2", "u16x2"), _MIXED % ("u16x2", "u16x2"), share=1),
}


def takes_two(cell: int, share: int) -> bool:
    """Whether a cell of a thread takes two k at once: `share` of every three, spread evenly over rows and columns."""
    return (cell // RESULTS + cell % RESULTS) % 3 < share


def build(form: str) -> Any:
    """probe(cells, source, one, stride, turns, clocks), to be launched with BLOCK threads and any number of blocks.

    `cells` are CELLS words for each thread, input and result; `source` the slabs a and b, one behind the other; `clocks` gets the
    clock cycles that each block took. `stride` is 0, which only the caller knows, so that the loads stay inside the loop.
    """
    global cuda, relax, clock
    from kernels.device import ALIGN16, SIM, cuda, jit, uint32

    relax = _twin(form) if SIM else _intrinsic(ASM[form])
    clock = _no_clock if SIM else _clock()

    # no disk cache: what is compiled for a form closes over it
    @jit(cache=False, launch_bounds=(BLOCK, BLOCKS_PER_MULTIPROCESSOR))
    def probe(cells, source, one, stride, turns, clocks):
        a = cuda.shared.array(SLAB, uint32, ALIGN16)
        b = cuda.shared.array(SLAB, uint32, ALIGN16)
        thread = cuda.threadIdx.x
        for at in range(thread, SLAB, BLOCK):
            a[at] = source[at]
            b[at] = source[SLAB + at]
        lane, warp = thread & 31, thread >> 5
        row = ((warp >> 1) << 2) + (lane >> 3)
        column = ((warp & 1) << 3) + (lane & 7)
        cuda.syncthreads()
        begin = clock()
        relax(cells, (cuda.blockIdx.x * BLOCK + thread) * CELLS, a, row * 4, b, column * 4, one, stride, turns)
        cuda.syncthreads()
        end = clock()
        if thread == 0:
            clocks[cuda.blockIdx.x] = end - begin

    return probe


def expected(form: str, cells: Any, source: Any) -> Any:
    """What one block of `probe` makes of its cells, by NumPy: the same words, (BLOCK, CELLS)."""
    import numpy as np

    thread = np.arange(BLOCK)
    lane, warp = thread & 31, thread >> 5
    step = np.arange(RESULTS) // 4 * (SIDE // 2) + np.arange(RESULTS) % 4
    rows = (((warp >> 1 << 2) + (lane >> 3)) * 4)[:, None] + step
    columns = (((warp & 1) << 3) + (lane & 7))[:, None] * 4 + step
    kind = {"float32": np.float32, "int32": np.int32, "int16": np.uint16}[form.partition("-")[0]]
    a, b = source[:SLAB].reshape(DEPTH, SIDE), source[SLAB : 2 * SLAB].reshape(DEPTH, SIDE)
    halves = 4 // np.dtype(kind).itemsize
    best = cells.reshape(BLOCK, RESULTS, RESULTS).copy().view(kind).reshape(BLOCK, RESULTS, RESULTS, halves)
    for k in range(DEPTH):
        to_k = a[k][rows].view(kind).reshape(BLOCK, RESULTS, 1, halves)
        onward = b[k][columns].view(kind).reshape(BLOCK, 1, RESULTS, halves)
        best = np.minimum(best, to_k + onward)
    return np.ascontiguousarray(best).view(np.uint32).reshape(BLOCK, CELLS)


def words(form: str, numbers: Any) -> Any:
    """Small whole numbers as the 32-bit words that a form computes with; packed ones in both halves."""
    import numpy as np

    if form.startswith("float32"):
        return numbers.astype(np.float32).view(np.uint32)
    whole = numbers.astype(np.uint32)
    return whole | whole << 16 if form.startswith("int16") else whole


def _intrinsic(asm: Asm) -> Any:
    """relax(cells, first, a, row, b, column, one, stride, turns): one thread's part, with its cells in registers."""
    from llvmlite import ir
    from numba.core import types
    from numba.cuda.extending import intrinsic

    word, index = ir.IntType(32), ir.IntType(64)
    four = ir.VectorType(word, 4)

    def instruction(text: str, operands: int) -> Any:
        kind = ir.FunctionType(word, [word] * operands)
        return ir.InlineAsm(kind, text, "=r" + ",r" * operands, side_effect=False)

    single, double = instruction(asm.single, 3), instruction(asm.double, 6)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def first(argument: int) -> Any:
            return context.make_array(signature.args[argument])(context, builder, args[argument]).data

        def whole(argument: int) -> Any:
            return context.cast(builder, args[argument], signature.args[argument], types.int64)

        own = builder.gep(first(0), [whole(1)])
        a, b = builder.gep(first(2), [whole(3)]), builder.gep(first(4), [whole(5)])
        one, stride, turns = args[6], whole(7), whole(8)

        def eight(slab: Any, offset: Any, k: int) -> list[Any]:
            """A thread's rows or columns of slab row k: two loads of four words."""
            found = []
            for half in range(2):
                at = builder.gep(slab, [builder.add(offset, index(k * SIDE + half * SIDE // 2))])
                loaded = builder.load(builder.bitcast(at, four.as_pointer()))
                loaded.align = 16
                found += [builder.extract_element(loaded, word(lane)) for lane in range(4)]
            return found

        cells = [builder.load(builder.gep(own, [index(cell)])) for cell in range(CELLS)]
        before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        turn = builder.phi(index)
        kept = [builder.phi(word) for _ in cells]
        offset = builder.mul(turn, stride)
        now = list(kept)
        for k in range(0, DEPTH, 2):
            to = [eight(a, offset, k + h) for h in range(2)]
            onward = [eight(b, offset, k + h) for h in range(2)]
            for cell in range(CELLS):
                i, j = divmod(cell, RESULTS)
                if takes_two(cell, asm.share):
                    pairs = [to[0][i], onward[0][j], to[1][i], onward[1][j]]
                    now[cell] = builder.call(double, [*pairs, one, now[cell]])
                else:
                    for h in range(2):
                        now[cell] = builder.call(single, [to[h][i], onward[h][j], now[cell]])
        following = builder.add(turn, index(1))
        for phi, start, last in zip([turn, *kept], [index(0), *cells], [following, *now], strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(last, loop)
        builder.cbranch(builder.icmp_signed("<", following, turns), loop, after)
        builder.position_at_end(after)
        for cell, value in enumerate(now):
            builder.store(value, builder.gep(own, [index(cell)]))
        return context.get_dummy_value()

    @intrinsic
    def relax(
        typingctx: Any, cells: Any, at: Any, a: Any, row: Any, b: Any, column: Any, one: Any, stride: Any, turns: Any
    ) -> Any:
        return types.void(cells, at, a, row, b, column, types.uint32, stride, turns), emit

    return relax


def _clock() -> Any:
    """The multiprocessor's own clock, in cycles."""
    from llvmlite import ir
    from numba.core import types
    from numba.cuda.extending import intrinsic

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # memory is named so that nothing moves past it
        read = ir.InlineAsm(ir.FunctionType(ir.IntType(64), []), "mov.u64 $0, %clock64;", "=l,~{memory}", side_effect=True)
        return builder.call(read, [])

    @intrinsic
    def clock(typingctx: Any) -> Any:
        return types.int64(), emit

    return clock


def _no_clock() -> int:
    return 0


def _twin(form: str) -> Callable[..., None]:
    """`relax` in plain Python, for the simulator."""
    import numpy as np

    asm = ASM[form]
    kind = {"float32": np.float32, "int32": np.int32, "int16": np.uint16}[form.partition("-")[0]]
    # two floats at once are compared by their bits
    compared = np.int32 if form == "float32-two" else kind

    def total(x: Any, y: Any) -> Any:
        return (x.view(kind) + y.view(kind)).view(np.uint32)

    def least(x: Any, y: Any) -> Any:
        return np.minimum(x.view(compared), y.view(compared)).view(np.uint32)

    def eight(slab: Any, at: int) -> Sequence[Any]:
        return [slab[at + half * SIDE // 2 + lane] for half in range(2) for lane in range(4)]

    def relax(cells, first, a, row, b, column, one, stride, turns):
        now = np.array([cells[first + cell] for cell in range(CELLS)], np.uint32)
        two = np.array([takes_two(cell, asm.share) for cell in range(CELLS)])
        for turn in range(turns):
            for k in range(0, DEPTH, 2):
                via = []
                for h in range(2):
                    at = turn * stride + (k + h) * SIDE
                    to, onward = np.array(eight(a, at + row), np.uint32), np.array(eight(b, at + column), np.uint32)
                    via.append(total(np.repeat(to, RESULTS), np.tile(onward, RESULTS)))
                now = np.where(two, least(least(via[0], via[1]), now), least(via[1], least(via[0], now)))
        for cell in range(CELLS):
            cells[first + cell] = now[cell]

    return relax
