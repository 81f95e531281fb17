"""The ladder: one file kNN_name.py per algorithm, each with a KERNEL, in the order of their names."""

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
    """Return every kernel by id, in the order of the ladder. Building a kernel imports numba; listing does not."""
    ladder = [_described(f"{__name__}.{name}") for name in _files()]
    if len({kernel.id for kernel in ladder}) != len(ladder):
        raise ValueError("two kernel files share an id")
    return {kernel.id: kernel for kernel in ladder}


@cache
def rungs() -> Mapping[str, int]:
    """Return the number in the file name of every kernel, by id."""
    return {kernel: int(name[1:3]) for kernel, name in files().items()}


def files() -> Mapping[str, str]:
    """Return the file name of every kernel without the suffix, by id."""
    return dict(zip(registry(), _files(), strict=True))


def _files() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if _RUNG.fullmatch(m.name))


def _described(module: str) -> Kernel:
    """Return the kernel in that file. Only its `build` and `ordered` import the file itself, with numba."""

    def build(shape: Shape, target: Target) -> Program:
        return import_module(module).KERNEL.build(shape, target)

    def ordered(shape: Shape, matrix: Any) -> Shape:
        return import_module(module).KERNEL.ordered(shape, matrix)

    kernel = plan_only.rung(module).KERNEL
    return replace(kernel, build=build, ordered=ordered if kernel.ordered is not None else None)
