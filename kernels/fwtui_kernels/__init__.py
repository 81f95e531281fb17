"""The ladder: one file per algorithm. A file named kNN_name.py with a KERNEL in it is on the list, in file order."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from functools import cache

from fwtui_kernels.plan import Kernel

_RUNG = re.compile(r"k\d\d_\w+")


@cache
def registry() -> Mapping[str, Kernel]:
    """Every kernel by id, in the order of the ladder. Imports no numba."""
    ladder: list[Kernel] = [importlib.import_module(f"{__name__}.{name}").KERNEL for name in _files()]
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
