"""`python -P -m fwtui.measure.compile_process`: compile a kernel for any GPU, installed or not, and report its resources.

It reads a CompileRequest as JSON from stdin, with the compiler already loaded, and writes a Compiled to stdout. Only separate
processes load a compiler or a user's file; the output that the file prints is discarded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from fwtui.analysis.occupancy import MAX_THREADS, STATIC_SHARED, TABLE, occupancy
from fwtui.common.child_protocol import Parent, serve
from fwtui.common.text import sanitise
from fwtui.experiment.experiment import kernel_named
from fwtui.measure.code_listing import build_listing, innermost
from fwtui.stream.kernel_tests import NO_COMPILER, REST, Compiled, CompileRequest, OperationResources
from fwtui.stream.listing import Listing
from fwtui_kernels.compiled.disassembly import Disassembler
from fwtui_kernels.own import UserKernelError, at_function, describe_error, load
from fwtui_kernels.plan import Kernel, Shape, Target

_LABEL, _JUMP = re.compile(r"\$\w+:"), re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")
_READ, _WRITTEN = re.compile(r"\bld\.\S*shared"), re.compile(r"\b(?:st|red|atom)\.(?!\S*(?:shared|local|param))")
UNTILED_N = 64  # vertices for a kernel without tiles
REHEARSED = CompileRequest(kernel="naive", capability=(9, 0))  # compiled at the start, to load the compiler


def compile_kernel(request: CompileRequest) -> Compiled:
    """Return the compiled resources of every operation of the plan."""
    path = Path(request.path) if request.path else None
    try:
        kernel = load(path, request.kernel) if path is not None else kernel_named(request.kernel)
        if kernel.backend == "cpu":
            return Compiled()
        disassembler = None
        if request.listing:
            with suppress(FileNotFoundError):  # the disassembler is optional
                disassembler = Disassembler()
        return Compiled(used=tuple(_used(kernel, request, disassembler)))
    except ImportError as error:
        return Compiled(lacking=f"{NO_COMPILER} ({error})")
    except Exception as error:
        if path is None or _outside(error, path):
            return Compiled(lacking=f"{type(error).__name__}: {error}")
        return Compiled(wrong=describe_error(error, path))


def _outside(error: Exception, path: Path) -> bool:
    """Return True if the error names no line of the user's file: the driver or the compiler itself failed."""
    return not isinstance(error, UserKernelError) and describe_error(error, path).startswith(f"{path.name}: ")


def _used(kernel: Kernel, request: CompileRequest, disassembler: Disassembler | None) -> Iterator[OperationResources]:
    tile = request.tile or kernel.tile_for(0) or 1
    shape = Shape(4 * tile if tile > 1 else UNTILED_N, tile, kernel.dtypes[0], options=kernel.defaults)
    program: Any = kernel.build(shape, Target("cuda", request.capability, multiprocessors=1))
    steps = {step.op: step for step in kernel.plan(shape, False)}
    compiled_ops = [
        (name, op, steps[name], op.function if hasattr(op.function, "used") else _of_numba(op, shape, steps[name], request))
        for name, op in program.ops.items()
        if name in steps
    ]
    if disassembler is not None:
        for _, _, _, code in compiled_ops:
            disassembler.begin(code.cubin)
    for name, op, step, code in compiled_ops:
        registers, shared, spills, _ = code.used
        threads = op.block[0] * op.block[1]
        if request.path:
            _check_limits(op, step, code, request)
        fits = occupancy(request.capability, threads, registers, shared)
        yield OperationResources(
            op=getattr(op.function, "name", name),  # the name in a .cu file
            threads=threads,
            registers=registers,
            shared_bytes=shared,
            spill_bytes=spills,
            blocks=fits.blocks if fits is not None else 0,
            warps=fits.warps if fits is not None else 0,
            max_warps=fits.max_warps if fits is not None else 0,
            limiters=fits.limiters if fits is not None else (),
            phase=sanitise(step.phase),
            tile=tile if tile > 1 else 0,
            itemsize=shape.itemsize,
            listing=_listing(disassembler, code, request) if disassembler is not None else None,
            rewrites=step.phase == REST and rewrites(code.ptx()),
        )


def _check_limits(op: Any, step: Any, code: Any, request: CompileRequest) -> None:
    """Raise UserKernelError if no GPU of that compute capability can launch the operation with these blocks."""
    from fwtui_kernels.programs.cuda_source import check_parameters

    registers, shared, _, _ = code.used
    threads = op.block[0] * op.block[1]
    has, function = TABLE.get(request.capability), op.function
    source = function.source if hasattr(function, "source") else Path(function.py_func.__code__.co_filename)
    name = function.name if hasattr(function, "name") else function.py_func.__name__
    if threads > MAX_THREADS or threads < 1:
        complaint = f"{name} is launched with blocks of {op.block[0]} x {op.block[1]} threads; a block has 1 to {MAX_THREADS}"
        raise at_function(source, name, complaint)
    fixed = shared - getattr(function, "dynamic", 0)
    most = max(STATIC_SHARED, has.shared_per_block) if has is not None else shared
    for needs, limit in ((fixed, STATIC_SHARED), (shared, most)):
        if needs > limit:
            complaint = f"{name} takes {needs:,} bytes of shared memory per block; the maximum is {limit:,}"
            raise at_function(source, name, complaint, "shared.array", "__shared__")
    fits = occupancy(request.capability, threads, registers, 0)
    if fits is not None and not fits.blocks:
        needs = f"{threads} threads of {registers} registers each"
        complaint = (
            f"{name} is launched with {needs}, and a block has {has.registers_per_block if has else 0:,}; take fewer threads"
        )
        raise at_function(source, name, complaint)
    if hasattr(function, "source"):
        check_parameters(source, name, code.parameters, len(op.buffers(step.args)), len(step.args))


def _listing(disassembler: Disassembler, found: Any, request: CompileRequest) -> Listing:
    code = disassembler.functions(found.cubin).get(found.entry, ())
    return build_listing(code, {}, Path(request.path) if request.path else None)


def rewrites(ptx: str) -> bool:
    """Return True if an innermost loop reads shared memory and writes global memory. A kernel that accumulates in registers
    writes after such a loop, however many registers a function has.
    """
    lines = [line.strip() for line in ptx.splitlines()]
    labels = {line[:-1]: place for place, line in enumerate(lines) if _LABEL.fullmatch(line)}
    jumps = [(labels.get(match[1], place), place) for place, line in enumerate(lines) if (match := _JUMP.search(line))]
    turns = (lines[loop[0] : loop[-1]] for loop in innermost([range(first, last + 1) for first, last in jumps if first < last]))
    return any(any(map(_READ.search, turn)) and any(map(_WRITTEN.search, turn)) for turn in turns)


def _of_numba(op: Any, shape: Shape, step: Any, request: CompileRequest) -> Any:
    """Compile a Numba function: return its `used` resources, and its `ptx` if needed. NVRTC functions have both already.

    Raises UserKernelError for code that Numba rejects, with the line if it is available.
    """
    from fwtui_kernels.compiled.compiler import compiled
    from fwtui_kernels.programs.cuda_program import types_of

    function = op.function.py_func
    try:
        return compiled(function, types_of(op, shape, len(step.args)), request.capability, op.function.targetoptions)
    except (ImportError, OSError, RuntimeError, MemoryError):  # a damaged compiler installation
        raise
    except Exception as error:
        if not request.path or not _outside(error, Path(request.path)):
            raise
        message = describe_error(error, Path(request.path)).partition(": ")[2]
        named = re.search(r"(?:Function\(<(?:built-in )?function (?:\w+\.)*|name ')(\w+)", message)
        what = f"{function.__name__} does not compile: {message}"
        raise at_function(Path(function.__code__.co_filename), function.__name__, what, *([named[1]] if named else [])) from None


def _answer(request: CompileRequest, parent: Parent) -> None:
    reply = compile_kernel(request)
    parent.send(msgspec.structs.replace(reply, wrong=sanitise(reply.wrong), lacking=sanitise(reply.lacking)))


if __name__ == "__main__":
    serve(CompileRequest, _answer, ready=lambda: compile_kernel(REHEARSED), quiet=True)
