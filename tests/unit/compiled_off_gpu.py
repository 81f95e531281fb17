"""Compilation for GPUs that this machine lacks; tests that import this are skipped without the compiler."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import pytest

from fwtui.machine.hardware import installed_version
from fwtui_kernels.compiled import cubin_cache
from fwtui_kernels.plan import Shape


def need_compiler() -> None:
    """Skip the module without the packages of the compiler, whose import takes each test process a second."""
    for package in ("cuda-core", "numba-cuda"):
        if installed_version(package) is None:
            pytest.skip(f"{package} is not installed (pip install 'fwtui[test]' on Linux)", allow_module_level=True)


need_compiler()


class Compiled(NamedTuple):
    cubin: bytes
    registers: int
    shared: int
    spills: int
    stack: int


_COMPILED: dict[str, Compiled] = {}


def compiled(function: Any, signature: tuple[Any, ...], cc: tuple[int, int], bounds: Any = None) -> Compiled:
    """Compile the function for that GPU and return ptxas' report; `bounds` are its launch bounds."""
    from fwtui_kernels.compiled import compiler

    made = compiler.compiled(function, signature, cc, {"lineinfo": True, "launch_bounds": bounds})
    return Compiled(made.cubin, *made.used)


def compiled_op(op: Any, shape: Shape, args: int, cc: tuple[int, int]) -> Compiled:
    """Compile an op with that many integer arguments and its launch bounds, once per process."""
    from fwtui_kernels.programs.cuda_program import types_of

    function, bounds = op.function.py_func, op.function.targetoptions.get("launch_bounds")
    types = types_of(op, shape, args)
    key = cubin_cache.key(function, {"launch_bounds": bounds}, types, cc)
    if key not in _COMPILED:
        _COMPILED[key] = compiled(function, types, cc, bounds)
    return _COMPILED[key]


def instructions(cubin: bytes) -> Counter[str]:
    """Count machine instructions with their modifiers; skips the test without nvdisasm."""
    tool = nvdisasm()
    if tool is None:
        pytest.skip("nvdisasm is not installed (the wheel nvidia-cuda-nvdisasm)")
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool, file.name], capture_output=True, text=True, check=True).stdout
    # "@!PT" is what ptxas writes before what shall never run
    found = Counter(re.findall(r"\*/\s+(?:@!?U?P\d\s+)?([A-Z][\w.]*)", text))
    assert found["EXIT"], text[:2000]
    return found


def nvdisasm() -> str | None:
    import nvidia

    found = [str(f) for folder in nvidia.__path__ for f in Path(folder).glob("*/bin/nvdisasm")]
    return found[0] if found else None
