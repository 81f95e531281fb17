"""Kernels in CUDA C++. NVRTC compiles them on any machine; they run only on a GPU.

A function takes pointers to its buffers, then n (the vertices of a row in memory, padded to whole tiles), then the integers of
the step: `template <typename T> __global__ void relax(T *distance, int n, int k)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwtui_kernels.own import NoTrial, at_function, source_of
from fwtui_kernels.plan import Shape, Target
from fwtui_kernels.programs.cuda_program import Args, CudaProgram, Op

NUMBER = {"float32": "float", "int32": "int", "int16": "short", "float64": "double"}


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch of an op: the C++ name of its function, its block, and its grid as a function of the step's args."""

    function: str  # for example relax, or relax<float>
    block: tuple[int, int]
    grid: Callable[[Args], tuple[int, int]]
    buffers: Callable[[Args], tuple[int, ...]] = lambda args: (0,)
    shared: int = 0  # bytes of dynamic shared memory

    @property
    def name(self) -> str:
        """The function's name in the file, without namespace and template arguments."""
        return self.function.partition("<")[0].split("::")[-1]


def number(shape: Shape) -> str:
    """Return the C++ name of the shape's data type."""
    return NUMBER[shape.dtype]


def macros(shape: Shape) -> dict[str, str]:
    """Return the macros TILE, NUMBER, and each option of the kernel in capitals."""
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
    """Return the program whose ops are functions of mine.cu if `file` is mine.cu.py; `more` is passed to CudaProgram.

    Paths in `include` are relative to the file's folder. Raises UserKernelError for an error in the source, and NoTrial if the
    target is not a GPU.
    """
    source = source_of(Path(file))
    defined = {**macros(shape), **{name: str(value) for name, value in define.items()}}
    folders = [source.parent, *(source.parent / folder for folder in include)]
    if target.cc is None:
        raise NoTrial(f"{source.name} compiles on any machine but runs only on a GPU")

    from fwtui_kernels.programs import nvrtc  # imported late: its packages may be missing on a machine without a GPU

    code = nvrtc.compiled(source, [launch.function for launch in launches.values()], defined, folders, target.cc)

    def operation(launch: Launch) -> Op:
        function = nvrtc.SourceKernel(source, code, launch.function, launch.name, launch.shared, shape.padded)
        check_type(source, launch.name, function.entry, shape.dtype)
        return Op(function, launch.block, launch.grid, launch.buffers)

    return CudaProgram(shape, target, {name: operation(launch) for name, launch in launches.items()}, **more)


def check_type(source: Path, name: str, entry: str, dtype: str) -> None:
    """Raise UserKernelError if the first parameter of a function, by its mangled name, points to another type of distances."""
    letters = {NUMBER[number][0]: number for number in NUMBER}  # the Itanium ABI abbreviates float to f
    mangled = re.fullmatch(rf"_Z{len(name)}{name}(?:I.*?Ev)?Pr?K?([{''.join(letters)}]).*", entry)
    if mangled and letters[mangled[1]] != dtype:
        takes = letters[mangled[1]]
        fix = f'make it a template, or write own(plan, build, dtypes=("{takes}",))'
        raise at_function(source, name, f"{name} takes {NUMBER[takes]} *, but the distances of this run are {dtype}; {fix}")


def check_parameters(source: Path, name: str, takes: tuple[int, ...], buffers: int, integers: int) -> None:
    """Raise UserKernelError if the sizes of a function's parameters do not match the arguments of its launches."""
    gives = (*[8] * buffers, *[4] * (1 + integers))
    if takes and takes != gives:
        counts = f"{len(takes)} parameters" if len(takes) > 1 else "1 parameter"
        differs = counts if len(takes) != len(gives) else f"parameters of {', '.join(map(str, takes))} bytes"
        expected = f"{buffers} pointer{'s' * (buffers != 1)}, n and {integers} integer{'s' * (integers != 1)} of its step"
        raise at_function(source, name, f"{name} takes {differs}, but its launch passes {len(gives)}: {expected}")
