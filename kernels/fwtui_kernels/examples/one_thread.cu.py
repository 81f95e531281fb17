"""The naive algorithm: one thread per pair (i, j), one launch per k; the kernel is in the .cu file next to this one."""

from __future__ import annotations

from collections.abc import Iterator

from fwtui_kernels.own import own
from fwtui_kernels.parts import by_vertex
from fwtui_kernels.plan import Cost, Program, Shape, Step, Target
from fwtui_kernels.programs.cuda_source import Launch, number, program

MAX_N = 32768  # the kernel numbers the cells with an int
INCLUDE: tuple[str, ...] = ()  # folders for #include, relative to this file's
DEFINE: dict[str, object] = {}  # further macros; TILE, NUMBER and the kernel's options are defined


def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
    return by_vertex.plan(shape.n, Cost(shape.n**2, 4 * shape.n**2 * shape.itemsize))


def build(shape: Shape, target: Target) -> Program:
    grid = (-(-shape.n // 32), -(-shape.n // 8))
    relax = Launch(f"relax<{number(shape)}>", block=(32, 8), grid=lambda args: grid)
    return program(shape, target, __file__, {"relax": relax}, INCLUDE, DEFINE)


KERNEL = own(plan, build, max_n=MAX_N)
