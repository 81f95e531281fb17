"""The assembly text of compiled CPU functions, by numba's own `inspect_asm`."""

from __future__ import annotations

from functools import lru_cache, partial
from inspect import signature
from typing import Any

import numba

KEPT = ("parallel", "nogil", "fastmath", "error_model")  # options that change the instructions


def assembly(function: Any, *args: Any) -> str:
    """What it was compiled to for arguments of those types; empty for a function that numba did not compile.

    Numba does not show code that came from its cache, so that function is compiled again; what it calls is not.
    """
    given: dict[str, Any] = {}
    while not hasattr(function, "inspect_asm"):
        if isinstance(function, partial):
            args, given = (*function.args, *args), {**function.keywords, **given}
            function = function.func
        elif (function := getattr(function, "__wrapped__", None)) is None:
            return ""
    return _text(function, tuple(map(numba.typeof, signature(function.py_func).bind(*args, **given).args)))


@lru_cache(maxsize=2)  # several ops of a kernel may be one function
def _text(dispatcher: Any, types: tuple[Any, ...]) -> str:
    if types not in dispatcher.stats.cache_misses:
        dispatcher = numba.njit(**{key: value for key, value in dispatcher.targetoptions.items() if key in KEPT})(
            dispatcher.py_func
        )
        dispatcher.compile(types)
    return dispatcher.inspect_asm(types)
