"""`python -P -m fwtui.measure.off_gpu_compile`: compile a kernel for a GPU that need not be here, and tell what it uses.

A CompileRequest as JSON on stdin, for which it may wait with the compiler loaded; a Compiled on stdout. A separate process,
because only those load a compiler or a kernel's file; what the file prints is discarded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec

from fwtui.analysis.occupancy import occupancy
from fwtui.common.serve import Parent, serve
from fwtui.common.text import clean
from fwtui.experiment.experiment import kernel_named
from fwtui.stream.trials import Compiled, CompileRequest, Used
from fwtui_kernels.own import OwnKernelError, complaint, load
from fwtui_kernels.plan import Kernel, Shape, Target

REST = "rest"  # the phase that does most of the work
_LABEL, _JUMP = re.compile(r"\$\w+:"), re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")
_READ, _WRITTEN = re.compile(r"\bld\.\S*shared"), re.compile(r"\b(?:st|red|atom)\.(?!\S*(?:shared|local|param))")
UNTILED_N = 64  # vertices for a kernel without tiles
REHEARSED = CompileRequest(kernel="naive", capability=(9, 0))  # what makes the compiler ready
ARCHITECTURE_SPECIFIC = (9, 0)  # from this one on Numba compiles for sm_90a


def compiled(request: CompileRequest) -> Compiled:
    """What the compiler says of every operation of the plan."""
    path = Path(request.path) if request.path else None
    try:
        kernel = load(path, request.kernel) if path is not None else kernel_named(request.kernel)
        if kernel.backend == "cpu":
            return Compiled()
        return Compiled(used=tuple(_used(kernel, request)))
    except ImportError as error:
        return Compiled(lacking=f"there is no compiler for GPUs here ({error})")
    except Exception as error:
        if path is None or _outside(error, path):
            return Compiled(lacking=f"{type(error).__name__}: {error}")
        return Compiled(wrong=complaint(error, path))


def _outside(error: Exception, path: Path) -> bool:
    """Whether nothing names a line of the user's: what failed is the driver, or the compiler itself."""
    return not isinstance(error, OwnKernelError) and complaint(error, path).startswith(f"{path.name}: ")


def _used(kernel: Kernel, request: CompileRequest) -> Iterator[Used]:
    tile = request.tile or kernel.tile_for(0) or 1
    chosen = tuple(sorted((name, request.options.get(name, value)) for name, value in kernel.defaults))
    shape = Shape(4 * tile if tile > 1 else UNTILED_N, tile, kernel.dtypes[0], options=chosen)
    program: Any = kernel.build(shape, Target("cuda", request.capability, multiprocessors=1))
    steps = {step.op: step for step in kernel.plan(shape, False)}
    for name, op in program.ops.items():
        if name not in steps:
            continue
        step = steps[name]
        found = _of_cuda(op) if hasattr(op.function, "used") else _of_numba(op, shape, step, request)
        registers, shared, spills = found.registers, found.shared_bytes, found.spill_bytes
        threads = op.block[0] * op.block[1]
        fits = occupancy(request.capability, threads, registers, shared)
        yield Used(
            op=name,
            threads=threads,
            registers=registers,
            shared_bytes=shared,
            spill_bytes=spills,
            blocks=fits.blocks if fits is not None else 0,
            warps=fits.warps if fits is not None else 0,
            max_warps=fits.max_warps if fits is not None else 0,
            limiters=fits.limiters if fits is not None else (),
            phase=clean(step.phase),
            tile=tile if tile > 1 else 0,
            itemsize=shape.itemsize,
            rewrites=step.phase == REST and rewrites(found.ptx()),
        )


def rewrites(ptx: str) -> bool:
    """Whether a loop, with none in it, reads shared memory and writes to global memory: what is kept in registers is written
    after such a loop, however many registers a function has.
    """
    lines = [line.strip() for line in ptx.splitlines()]
    labels = {line[:-1]: place for place, line in enumerate(lines) if _LABEL.fullmatch(line)}
    jumps = [(labels.get(found[1], place), place) for place, line in enumerate(lines) if (found := _JUMP.search(line))]
    loops = [(first, last) for first, last in jumps if first < last]
    innermost = [
        lines[first:last]
        for first, last in loops
        if not any(first <= begin and end <= last and (begin, end) != (first, last) for begin, end in loops)
    ]
    return any(any(map(_READ.search, loop)) and any(map(_WRITTEN.search, loop)) for loop in innermost)


class Found(NamedTuple):
    """What the compiler says of a function; its PTX is asked for where it is needed."""

    registers: int
    shared_bytes: int
    spill_bytes: int
    ptx: Callable[[], str]


def _of_cuda(op: Any) -> Found:
    """Of a function that NVRTC has compiled."""
    used = op.function.used
    return Found(used.registers, used.shared_bytes + op.function.dynamic, used.spill_bytes, op.function.ptx)


def _of_numba(op: Any, shape: Shape, step: Any, request: CompileRequest) -> Found:
    """The same of a function that Numba compiles here, and links as it does for a launch."""
    from fwtui_kernels.compiled.device import cuda
    from fwtui_kernels.programs.cuda_program import types_of

    toolkit = import_module("cuda.core")
    capability = request.capability
    # a function that the kernel calls is compiled for the device that is there, which need not be any
    dispatcher: Any = import_module("numba.cuda.dispatcher")
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    types = types_of(op, shape, len(step.args))
    bounds = op.function.targetoptions.get("launch_bounds")
    ir, _ = cuda.compile(
        op.function.py_func, types, cc=capability, device=False, abi="numba", output="ltoir", launch_bounds=bounds
    )
    arch = f"sm_{capability[0]}{capability[1]}{'a' if capability >= ARCHITECTURE_SPECIFIC else ''}"
    # what comes from the linker's cache has no log, which is where registers and spills are
    linked = partial(toolkit.LinkerOptions, arch=arch, link_time_optimization=True, no_cache=True)
    linker = toolkit.Linker(toolkit.ObjectCode.from_ltoir(ir), options=linked(ptxas_options=["-v"]))
    linker.link("cubin")
    log = linker.get_info_log()

    def of(pattern: str) -> int:
        found = re.search(pattern, log)
        return int(found[1]) if found else 0

    spills = of(r"(\d+) bytes spill stores") + of(r"(\d+) bytes spill loads")

    def ptx() -> str:
        return toolkit.Linker(toolkit.ObjectCode.from_ltoir(ir), options=linked(ptx=True)).link("ptx").code.decode()

    return Found(of(r"Used (\d+) registers"), of(r"(\d+) bytes smem"), spills, ptx)


def _answer(request: CompileRequest, parent: Parent) -> None:
    found = compiled(request)
    parent.send(msgspec.structs.replace(found, wrong=clean(found.wrong), lacking=clean(found.lacking)))


if __name__ == "__main__":
    serve(CompileRequest, _answer, ready=lambda: compiled(REHEARSED), quiet=True)
