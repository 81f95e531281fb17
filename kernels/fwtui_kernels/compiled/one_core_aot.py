"""A whole graph on one thread of a CPU: looked through, searched, closed tile by tile, and its distances finished.

The functions need nothing of Python or numba while they run, so they are kept as plain object code, which object_code.py loads in
a fraction of the time that importing numba takes. `weights` are n x n float64; a value that is not finite means no edge.
`cells` is the padded matrix in a kernel's type, `far` the least value that means no path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding
from numba import njit, types

from fwtui_kernels.compiled.cpu_vectors import ROWS, copy_cells, relax_registers, width_of
from fwtui_kernels.compiled.numba_internals import BARE, module_of
from fwtui_kernels.compiled.object_code import machine
from fwtui_kernels.compiled.survey import EDGES, FRACTION, HIGH, LOW, MISSING, TILE, ZEROS
from fwtui_kernels.plan import DTYPES, ITEMSIZE

_SHIFT = 1.5 * 2.0**52  # float64 has no digit behind the point here
# without reference counts and exceptions nothing in the code calls numba
_BARE: dict[str, Any] = {**BARE, "error_model": "numpy", "nogil": True}
_LOOP: dict[str, Any] = {**_BARE, "fastmath": {"nnan", "nsz"}}  # a minimum may be found in any order
_NUMBER: dict[str, Any] = {"float32": types.float32, "int32": types.int32, "int16": types.int16}


# without the freedoms of the loops below, as a weight may be NaN
@njit(**_BARE)
def _is_edge(weight):
    return weight < np.inf


@njit(**_BARE)
def _or(weight, other):
    """A weight, or another number for no edge."""
    return weight if weight < np.inf else other


@njit(**_LOOP)
def _part(row, begin, end, surveyed):
    """Add what is known of the weights begin .. end - 1 of a row."""
    low, high = surveyed[LOW], surveyed[HIGH]
    missing = zeros = broken = finer = vanished = 0
    for j in range(begin, end):
        weight = _or(row[j], np.inf)
        low = weight if weight < low else low
        weight = _or(row[j], -np.inf)
        high = weight if weight > high else high
        weight = _or(row[j], 0.5)
        missing += not _is_edge(row[j])
        zeros += weight == 0
        weight = _or(row[j], 0.0)
        # without a fraction, a number survives the loss of all digits behind the point
        broken += (weight + _SHIFT) - _SHIFT != weight
        finer += (weight + _SHIFT / 256) - _SHIFT / 256 != weight
        vanished += (np.float32(weight) == 0) != (weight == 0)
    surveyed[LOW] = low
    surveyed[HIGH] = high
    surveyed[MISSING] += missing
    surveyed[ZEROS] += zeros
    surveyed[EDGES] += end - begin - missing
    surveyed[FRACTION] = max(surveyed[FRACTION], 3.0 if vanished else 2.0 if finer else 1.0 if broken else 0.0)


@njit(**_LOOP)
def survey(weights, surveyed, loop):
    """What is known of the weights; FRACTION as fwtui.graphs.bounds.fineness. Right up to 2^50."""
    n = len(weights)
    surveyed[:] = 0
    surveyed[LOW] = np.inf
    surveyed[HIGH] = -np.inf
    for i in range(n):
        _part(weights[i], 0, i, surveyed)
        _part(weights[i], i + 1, n, surveyed)
    # of loops only negative ones count, and only their weight
    for which in range(EDGES + 1):
        loop[which] = surveyed[which]
    for i in range(n):
        if _or(weights[i, i], 0.0) < 0:
            _part(weights[i], i, i + 1, loop)
    surveyed[LOW] = loop[LOW]
    surveyed[FRACTION] = loop[FRACTION]


@njit(**_LOOP)
def search(weights, outward, inward):
    """A round of a search from vertex 0 and of one to it; negative weights count as 0. The lengths are those of paths."""
    for i in range(len(weights)):
        here = outward[i]
        if here < np.inf:
            for j in range(len(weights)):
                via = here + max(_or(weights[i, j], np.inf), 0.0)
                outward[j] = via if via < outward[j] else outward[j]
        least = inward[i]
        for j in range(len(weights)):
            via = max(_or(weights[i, j], np.inf), 0.0) + inward[j]
            least = via if via < least else least
        inward[i] = least


# without the freedoms of the loops: a weight may be NaN, and -0 becomes +0
@njit(**_BARE)
def enter(weights, no_edge, cells):
    """The weights in a kernel's type, its sentinel for no edge, and nothing above 0 on the diagonal."""
    number = cells.dtype.type
    n = len(weights)
    for i in range(len(cells)):
        for j in range(cells.shape[1]):
            cells[i, j] = number(no_edge)
        if i < n:
            for j in range(n):
                if weights[i, j] < no_edge:
                    cells[i, j] = number(weights[i, j])
        cells[i, i] = min(cells[i, i], number(0))


@njit(**_LOOP)
def largest(cells, far, extremes):
    """The greatest absolute distance."""
    number = cells.dtype.type
    least = most = number(0)
    limit = number(far)
    for i in range(len(cells)):
        for j in range(len(cells)):
            cell = cells[i, j] if cells[i, j] < limit else number(0)
            least = cell if cell < least else least
            most = cell if cell > most else most
    extremes[0] = max(np.float64(most), -np.float64(least))


@njit(**_BARE)
def leave(cells, far, result):
    """The distances in the form of a result: +inf for no path, 0 on the diagonal."""
    number = result.dtype.type
    limit = cells.dtype.type(far)
    for i in range(len(result)):
        for j in range(len(result)):
            # -0 becomes +0
            result[i, j] = number(cells[i, j]) + number(0) if cells[i, j] < limit else number(np.inf)
        result[i, i] = 0


def _closing(width: int) -> Any:
    """The blocked algorithm with vectors of that many cells: the width is part of the instructions."""

    @njit(**_BARE)
    def relax(own, top, left, to, to_top, to_left, strips):
        for begin in range(0, TILE, width):
            at, first, ahead = left + begin, begin // width * TILE, TILE * own.shape[1]
            for i in range(0, TILE, ROWS):
                relax_registers(own, top + i, at, to, to_top + i, to_left, strips, first, TILE, width, ahead)  # pyright: ignore[reportCallIssue]

    @njit(**_BARE)
    def pack(strips, source, top, left):
        for k in range(TILE):
            for begin in range(0, TILE, width):
                copy_cells(strips, 0, begin * TILE + k * width, source, top + k, left + begin, width)  # pyright: ignore[reportCallIssue]

    @njit(**_LOOP)
    def close(cells, pivot, strips, line):
        number = cells.dtype.type
        for base in range(0, len(cells), TILE):
            for i in range(TILE):
                copy_cells(pivot, i, 0, cells, base + i, base, TILE)  # pyright: ignore[reportCallIssue]
            for k in range(TILE):
                for j in range(TILE):
                    line[j] = pivot[k, j]
                for i in range(TILE):
                    to_k = pivot[i, k]
                    for j in range(TILE):
                        via = number(to_k + line[j])
                        pivot[i, j] = via if via < pivot[i, j] else pivot[i, j]
            for i in range(TILE):
                copy_cells(cells, base + i, base, pivot, i, 0, TILE)  # pyright: ignore[reportCallIssue]
            # with a closed pivot a panel is one product: no step depends on the one before
            pack(strips, pivot, 0, 0)
            for top in range(0, len(cells), TILE):
                if top != base:
                    relax(cells, top, base, cells, top, base, strips)
            for left in range(0, len(cells), TILE):
                if left != base:
                    pack(strips, cells, base, left)
                    relax(cells, base, left, pivot, 0, 0, strips)
                    pack(strips, cells, base, left)
                    for top in range(0, len(cells), TILE):
                        if top != base:
                            relax(cells, top, left, cells, top, base, strips)

    return close


def compiled() -> bytes:
    """The object code of all functions, for this machine's processor."""
    line, matrix = types.float64[::1], types.float64[:, ::1]
    functions: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("survey", survey, (matrix, line, line)),
        ("search", search, (matrix, line, line)),
    ]
    for dtype in DTYPES:
        number, kind = _NUMBER[dtype], np.dtype(dtype).char
        cells = number[:, ::1]
        functions += [
            (f"enter_{kind}", enter, (matrix, types.float64, cells)),
            (f"close_{kind}", _closing(width_of(ITEMSIZE[dtype], TILE)), (cells, cells, cells, number[::1])),
            (f"largest_{kind}", largest, (cells, types.float64, line)),
            (f"leave_{kind}_f", leave, (cells, types.float64, types.float32[:, ::1])),
        ]
    functions.append(("leave_i_d", leave, (types.int32[:, ::1], types.float64, matrix)))
    return object_code_of(functions)


def object_code_of(functions: list[tuple[str, Any, tuple[Any, ...]]]) -> bytes:
    """Functions under these names, for arguments of these types."""
    modules = [_bare(*one) for one in functions]
    for module in modules[1:]:
        modules[0].link_in(module)
    return machine().emit_object(modules[0])


def _bare(name: str, dispatcher: Any, signature: tuple[Any, ...]) -> Any:
    """The function's module without what only numba needs, the function under that name. It is called as numba calls it."""
    dispatcher.compile(types.void(*signature))
    module, its_name = module_of(dispatcher, signature)
    for each in module.functions:
        if each.name == its_name:
            each.name = name
        elif not each.is_declaration:
            each.linkage = "internal"
    unused = binding.create_new_module_pass_manager()
    unused.add_global_dead_code_eliminate_pass()
    unused.run(module, binding.create_pass_builder(machine(), binding.PipelineTuningOptions()))
    return module
