"""Undocumented members of numba's compiler for CPUs that the program uses: each is a row of NEEDS.

Importing this module checks all of them, so a module that uses one imports this one first.
"""

from __future__ import annotations

from functools import lru_cache, partial
from inspect import signature
from typing import Any

import numba

from fwtui_kernels.needs import Need, lacking, member, member_needed

TO_INSTRUCTIONS = ("parallel", "nogil", "fastmath", "error_model")  # options that change what is compiled
FOR_PYTHON: dict[str, Any] = {"no_cfunc_wrapper": True}  # the entry that C would call takes a tenth of the time to compile


def _there(path: str, otherwise: str) -> Need:
    return member_needed("numba.core", path, otherwise)


def _given_at_birth(name: str) -> bool:
    """Return whether the constructor of a dispatcher sets an attribute of that name."""
    made = (getattr(kind.__init__, "__code__", None) for kind in member("numba.core", "dispatcher.Dispatcher").__mro__)
    return any(code is not None and name in code.co_names for code in made)


NEEDS = (
    _there("options.DefaultOptions.no_cfunc_wrapper", "no kernel of the CPU would compile"),
    _there("compiler_lock.global_compiler_lock", "two threads that compile could wait for each other"),
    _there("dispatcher.Dispatcher.compile", "several processes would compile the same function"),
    _there("dispatcher.Dispatcher.stats", "nobody would know what came from the disk"),
    _there("types.unliteral", "a function would be compiled anew for each constant"),
    Need("Dispatcher.targetoptions", "a loop would be shown as another one", lambda: _given_at_birth("targetoptions")),
)


def check() -> None:
    """Raises ImportError, naming the first member that the installed numba lacks."""
    if sentence := lacking(f"numba {numba.__version__}", NEEDS, "numba>=0.62,<0.69"):
        raise ImportError(sentence)


check()
COMPILER_LOCK: Any = member("numba.core", "compiler_lock.global_compiler_lock")


def assembly(function: Any, *args: Any) -> str:
    """Return the assembly of a function for arguments of those types; empty for a function that numba did not compile.

    Numba does not show code that came from its cache, so the function is compiled again; the functions that it calls are not.
    """
    keywords: dict[str, Any] = {}
    while not hasattr(function, "inspect_asm"):
        if isinstance(function, partial):
            args, keywords = (*function.args, *args), {**function.keywords, **keywords}
            function = function.func
        elif (function := getattr(function, "__wrapped__", None)) is None:
            return ""
    return _text(function, tuple(map(numba.typeof, signature(function.py_func).bind(*args, **keywords).args)))


@lru_cache(maxsize=2)  # several ops of a kernel may be one function
def _text(dispatcher: Any, types: tuple[Any, ...]) -> str:
    if types not in dispatcher.stats.cache_misses:
        dispatcher = numba.njit(**{key: value for key, value in dispatcher.targetoptions.items() if key in TO_INSTRUCTIONS})(
            dispatcher.py_func
        )
        dispatcher.compile(types)
    return dispatcher.inspect_asm(types)
