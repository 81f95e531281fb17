"""Kernels in CUDA C++: compiled by NVRTC (nvrtc), and where GPUs are simulated by the machine's C++ compiler (cuda_on_host).

A function takes pointers to its buffers, then n (the vertices of a row in memory, padded to whole tiles), then the integers of
the step: `template <typename T> __global__ void relax(T *distance, int n, int k)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fwtui_kernels.own import at_function
from fwtui_kernels.plan import Shape, Target
from fwtui_kernels.programs import cuda_on_host
from fwtui_kernels.programs.cuda_program import Args, CudaProgram, Op

NUMBER = {"float32": "float", "int32": "int", "int16": "short"}


@dataclass(frozen=True, slots=True)
class Launch:
    """How an operation of the plan is launched: the function as C++ calls it, its block, and its grid by the step's args."""

    function: str  # relax, or relax<float>
    block: tuple[int, int]
    grid: Callable[[Args], tuple[int, int]]
    buffers: Callable[[Args], tuple[int, ...]] = lambda args: (0,)
    shared: int = 0  # bytes of dynamic shared memory

    @property
    def name(self) -> str:
        """The function's name as it stands in the file."""
        return self.function.partition("<")[0].split("::")[-1]


def number(shape: Shape) -> str:
    """What C++ calls the shape's number type."""
    return NUMBER[shape.dtype]


def macros(shape: Shape) -> dict[str, str]:
    """What the compiler defines: TILE, NUMBER, and each option of the kernel in capitals."""
    options = {name.upper(): str(value) for name, value in shape.options}
    return {"TILE": str(shape.tile), "NUMBER": number(shape), **options}


def program(
    shape: Shape,
    target: Target,
    file: str | Path,
    launches: Mapping[str, Launch],
    include: Sequence[str | Path] = (),
    define: Mapping[str, object] = {},
    **more: Any,
) -> CudaProgram:
    """The operations of a plan from the .cu file with that name; `more` are those of CudaProgram.

    Folders to `include` are meant from the file's own. What is wrong in the source raises OwnKernelError.
    """
    source = Path(file).with_suffix(".cu")
    defined = {**macros(shape), **{name: str(value) for name, value in define.items()}}
    folders = [source.parent, *(source.parent / folder for folder in include)]
    functions = [launch.function for launch in launches.values()]
    if target.cc is None:
        here = cuda_on_host.compiled(source, functions, defined, folders)

        def made(launch: Launch) -> Any:
            check = partial(check_parameters, source, launch.name)
            return cuda_on_host.HostKernel(source, here, launch.function, launch.name, shape.padded, check)

    else:
        from fwtui_kernels.programs import nvrtc  # for which a machine without a GPU needs no packages

        code = nvrtc.compiled(source, functions, defined, folders, target.cc)

        def made(launch: Launch) -> Any:
            return nvrtc.SourceKernel(source, code, launch.function, launch.name, launch.shared, shape.padded)

    ops = {name: Op(made(launch), launch.block, launch.grid, launch.buffers) for name, launch in launches.items()}
    return CudaProgram(shape, target, ops, **more)


def check_parameters(source: Path, name: str, takes: tuple[int, ...], buffers: int, integers: int) -> None:
    """Raises OwnKernelError if a function with parameters of those bytes is not given these by its launches."""
    gives = (*[8] * buffers, *[4] * (1 + integers))
    if takes and takes != gives:
        counts = f"{len(takes)} parameters" if len(takes) > 1 else "1 parameter"
        differs = counts if len(takes) != len(gives) else f"parameters of {', '.join(map(str, takes))} bytes"
        expected = f"{buffers} pointer{'s' * (buffers != 1)}, n and {integers} integer{'s' * (integers != 1)} of its step"
        raise at_function(source, name, f"{name} takes {differs}, and gets {len(gives)}: {expected}")
