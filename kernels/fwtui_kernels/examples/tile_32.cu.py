"""Three phases of 32 x 32 tiles in shared memory, one thread for each cell of a tile."""

from __future__ import annotations

from fwtui_kernels.own import own
from fwtui_kernels.parts import blocked
from fwtui_kernels.plan import Program, Shape, Target
from fwtui_kernels.programs.cuda_source import Launch, number, program

MAX_N = 32768  # the kernel numbers the cells with an int
INCLUDE: tuple[str, ...] = ()  # folders for #include, relative to this file's
DEFINE: dict[str, object] = {}  # further macros; TILE, NUMBER and the kernel's options are defined


def build(shape: Shape, target: Target) -> Program:
    kind, block = number(shape), (shape.tile, shape.tile)
    others = shape.padded // shape.tile - 1
    return program(
        *(shape, target, __file__),
        {
            "pivot": Launch(f"pivot<{kind}>", block, lambda args: (1, 1)),
            "panels": Launch(f"panels<{kind}>", block, lambda args: (others, 2)),
            "rest": Launch(f"rest<{kind}>", block, lambda args: (others, others)),
        },
        include=INCLUDE,
        define=DEFINE,
    )


KERNEL = own(blocked.plan, build, phases=blocked.PHASES, tiles=(8, 16, 32), default_tile=32, max_n=MAX_N)
