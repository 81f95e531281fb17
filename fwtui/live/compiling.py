"""Compiling a kernel for a GPU that need not be here, in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Event

import msgspec

from fwtui.analysis.occupancy import TABLE
from fwtui.common.child_process import ChildProcess, ModuleProcess
from fwtui.common.container import Container
from fwtui.common.errors import Refused
from fwtui.common.text import shown
from fwtui.stream.trials import Compiled, CompileRequest

SECONDS = 30.0  # that a compiler may take


def compiler(within: Container | None = None) -> ChildProcess:
    """A process that compiles one kernel, once it is asked. Raises OSError."""
    return ModuleProcess("fwtui.measure.off_gpu_compile", within=within)


def compile_kernel(
    request: CompileRequest, stop: Event | None = None, start: Callable[[], ChildProcess] = compiler
) -> Compiled | None:
    """What the compiler says; None if it did not answer, or if another thread sets `stop`."""
    try:
        return msgspec.json.decode(start().finish(SECONDS, request, stop).stdout, type=Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def architecture(capability: tuple[int, int]) -> str:
    """As compilers call it: sm_90."""
    return "sm_{}{}".format(*capability)


def capability_of(text: str) -> tuple[int, int]:
    """The compute capability of an architecture. Raises Refused for an unknown one."""
    found = re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)a?", text)
    capability = (int(found[1]), int(found[2])) if found else (0, 0)
    if capability not in TABLE:
        known = ", ".join(map(architecture, TABLE))
        raise Refused(f"{shown(text)} is no architecture of a GPU that is known here; choose one of {known}")
    return capability
