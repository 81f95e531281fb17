"""A kernel's file, run for its description and its plan alone: what brings numba is not imported.

Such a file imports numba at its top, as Numba's own examples do. Listing kernels and drawing plans do not need it, and it takes
longer than everything else together. So here each name from a module that brings it is a placeholder. To build a kernel, its
file is imported as it is.
"""

from __future__ import annotations

import builtins
import re
from functools import cache
from importlib.util import find_spec
from types import CodeType, SimpleNamespace
from typing import Any

_COMPILED_PARTS = "blocked_tiles|flat_tiles|pivot|products|rank_products|stacks"
_LEFT_OUT = re.compile(rf"(numba|numpy|scipy|fwtui_kernels\.(compiled|programs|parts\.({_COMPILED_PARTS})))(\.|$)")
_RUNG = re.compile(r"fwtui_kernels\.(k\d\d_\w+)")


class _Placeholder:
    """A name that was left out. What a file makes of it at its top, such as a decorated function, is another one."""

    def __getattr__(self, name: str) -> _Placeholder:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **options: Any) -> _Placeholder:
        return self

    def __getitem__(self, key: Any) -> _Placeholder:
        return self


def run(code: CodeType, names: dict[str, Any]) -> None:
    """Run the compiled text of a kernel's file with these globals."""
    names["__builtins__"] = {**vars(builtins), "__import__": _import}
    exec(code, names)  # noqa: S102 as an import would


@cache
def rung(module: str) -> SimpleNamespace:
    """What the file of a rung defines."""
    spec = find_spec(module)
    assert spec is not None and spec.loader is not None
    names = {"__name__": module, "__file__": spec.origin}
    run(spec.loader.get_code(module), names)  # type: ignore[attr-defined]  # with Python's own cache of it
    return SimpleNamespace(**names)


def _import(name: str, names: Any = None, local: Any = None, wanted: tuple[str, ...] | None = (), level: int = 0) -> Any:
    found = _replaced(name)
    if found is not None:
        return found
    replaced = {each: place for each in wanted or () if (place := _replaced(f"{name}.{each}")) is not None}
    others = tuple(each for each in wanted or () if each not in replaced)
    module = __import__(name, names, local, others if wanted else wanted, level)
    return SimpleNamespace(**{each: getattr(module, each) for each in others}, **replaced) if replaced else module


def _replaced(module: str) -> Any:
    """What stands for a module here, if anything does."""
    return _Placeholder() if _LEFT_OUT.match(module) else rung(module) if _RUNG.fullmatch(module) else None
