"""Kernels compiled for GPUs that are not here, as numba-cuda compiles them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from fwtui_kernels.plan import Shape

_COMPILED: dict[Any, Compiled] = {}


class Compiled(NamedTuple):
    cubin: bytes
    registers: int
    shared: int
    stack: int
    spills: int


def compiled(function: Any, signature: tuple[Any, ...], cc: tuple[int, int], bounds: Any = None) -> Compiled:
    """The function for that GPU, linked as numba-cuda links it, with what ptxas says of it. `bounds`: its launch_bounds."""
    core = importlib.import_module("cuda.core")
    from fwtui_kernels.compiled.device import cuda

    arch = f"sm_{cc[0]}{cc[1]}" + ("a" if cc >= (9, 0) else "")
    ir, _ = cuda.compile(function, signature, cc=cc, device=False, abi="numba", output="ltoir", launch_bounds=bounds)
    options = core.LinkerOptions(arch=arch, link_time_optimization=True, ptxas_options=["-v"])
    linker = core.Linker(core.ObjectCode.from_ltoir(ir), options=options)
    code = linker.link("cubin")
    log = linker.get_info_log()
    used = re.search(r"Used (\d+) registers", log)
    shared = re.search(r"(\d+) bytes smem", log)
    frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert used and frame, log
    stack, stores, loads = map(int, frame.groups())
    return Compiled(bytes(code.code), int(used[1]), int(shared[1]) if shared else 0, stack, stores + loads)


def compiled_op(op: Any, shape: Shape, args: int, cc: tuple[int, int]) -> Compiled:
    """An op of a program that takes so many integers, with the launch bounds that its kernel asks for; each one only once."""
    from fwtui_kernels.programs.cuda_program import types_of

    function, bounds = op.function.py_func, op.function.targetoptions.get("launch_bounds")
    types = types_of(op, shape, args)
    key = (function.__code__, tuple(str(c.cell_contents) for c in function.__closure__ or ()), types, cc, bounds)
    if key not in _COMPILED:
        _COMPILED[key] = compiled(function, types, cc, bounds)
    return _COMPILED[key]


def nvdisasm() -> str | None:
    import nvidia

    found = [str(f) for folder in nvidia.__path__ for f in Path(folder).glob("*/bin/nvdisasm")]
    return found[0] if found else None
