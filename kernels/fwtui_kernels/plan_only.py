"""Kernel files, run only for their description and plan, without importing numba.

A kernel file imports numba at its top, as Numba's examples do. Listing kernels and drawing plans do not need numba, and importing
it takes longer than everything else together. So each name from a module that imports numba is a placeholder here. To build a
kernel, its file is imported normally.
"""

from __future__ import annotations

import builtins
import re
from functools import cache
from importlib.util import find_spec
from types import CodeType, SimpleNamespace
from typing import Any

_PARTS = "blocked_tiles|cpu_sparse|cuda_sparse|flat_tiles|fronts|ordering|pivot|products|rank_products"
_NUMBA = rf"numba|fwtui_kernels\.(compiled|programs|parts\.({_PARTS}))"
_RUNG = re.compile(r"fwtui_kernels\.(k\d\d_\w+)")


class Placeholder:
    """Stand-in for a name that needs numba. Calls, items and attributes of a placeholder are placeholders."""

    def __getattr__(self, name: str) -> Placeholder:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **options: Any) -> Placeholder:
        return self

    def __getitem__(self, key: Any) -> Placeholder:
        return self

    def __bool__(self) -> bool:
        raise TypeError("the description of this kernel depends on a package that is not imported")

    __iter__ = None


def run(code: CodeType, names: dict[str, Any], omitted: str = _NUMBA) -> None:
    """Run the compiled code of a kernel file with these globals; `omitted` is a pattern of modules to replace."""
    pattern = re.compile(rf"({omitted})(\.|$)")

    def replaced(module: str) -> Any:
        return Placeholder() if pattern.match(module) else rung(module) if _RUNG.fullmatch(module) else None

    def import_(name: str, names: Any = None, local: Any = None, fromlist: tuple[str, ...] | None = (), level: int = 0) -> Any:
        found = replaced(name)
        if found is not None:
            return found
        parts = {each: part for each in fromlist or () if (part := replaced(f"{name}.{each}")) is not None}
        others = tuple(each for each in fromlist or () if each not in parts)
        module = __import__(name, names, local, others if fromlist else fromlist, level)
        return SimpleNamespace(**{each: getattr(module, each) for each in others}, **parts) if parts else module

    names["__builtins__"] = {**vars(builtins), "__import__": import_}
    exec(code, names)  # noqa: S102 as an import would


@cache
def rung(module: str) -> SimpleNamespace:
    """Return the definitions of the file of a rung."""
    spec = find_spec(module)
    assert spec is not None and spec.loader is not None
    names = {"__name__": module, "__file__": spec.origin}
    code = spec.loader.get_code(module)  # type: ignore[attr-defined]  # uses Python's bytecode cache
    run(code, names, rf"{_NUMBA}|numpy|scipy")  # no plan needs NumPy or SciPy, whose imports take time too
    return SimpleNamespace(**names)
