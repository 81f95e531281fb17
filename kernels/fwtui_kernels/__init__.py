"""The ladder: one file per algorithm. A file named kNN_name.py with a KERNEL in it is on the list, in file order."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from fwtui_kernels import plan_only
from fwtui_kernels.plan import Kernel, Program, Shape, Target

_RUNG = re.compile(r"k\d\d_\w+")


@cache
def registry() -> Mapping[str, Kernel]:
    """Every kernel by id, in the order of the ladder. Imports no numba; building a kernel does."""
    ladder = [_described(f"{__name__}.{name}") for name in _files()]
    if len({kernel.id for kernel in ladder}) != len(ladder):
        raise ValueError("two kernel files share an id")
    return {kernel.id: kernel for kernel in ladder}


@cache
def rungs() -> Mapping[str, int]:
    """The number that every kernel of the registry has in its file's name, by its id."""
    return {kernel: int(name[1:3]) for kernel, name in files().items()}


def files() -> Mapping[str, str]:
    """The name of every kernel's file, without its suffix, by the kernel's id."""
    return dict(zip(registry(), _files(), strict=True))


def _files() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if _RUNG.fullmatch(m.name))


def _described(module: str) -> Kernel:
    """The rung in that file, of which only a build and an order import what they need."""

    def build(shape: Shape, target: Target) -> Program:
        return import_module(module).KERNEL.build(shape, target)

    def ordered(shape: Shape, matrix: Any) -> Shape:
        return import_module(module).KERNEL.ordered(shape, matrix)

    kernel = plan_only.rung(module).KERNEL
    return replace(kernel, build=build, ordered=ordered if kernel.ordered is not None else None)
