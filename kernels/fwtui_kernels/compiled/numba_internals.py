"""Undocumented members of numba's CPU compiler that the program uses, each a row of NEEDS.

Importing this module checks all of them, so every module that uses one imports this module first.
"""

from __future__ import annotations

from functools import lru_cache, partial
from inspect import signature
from typing import Any

import numba

from fwtui_kernels.compiled.executed_code import executed
from fwtui_kernels.needs import Need, lacking, member, member_needed

TO_INSTRUCTIONS = ("parallel", "nogil", "fastmath", "error_model")  # options that affect the compiled code
FOR_PYTHON: dict[str, Any] = {"no_cfunc_wrapper": True}  # the entry point for C takes a tenth of the compile time


def _there(path: str, otherwise: str) -> Need:
    return member_needed("numba.core", path, otherwise)


def _set_by_constructor(name: str) -> bool:
    """Return True if the constructor of a dispatcher sets an attribute of that name."""
    made = (getattr(kind.__init__, "__code__", None) for kind in member("numba.core", "dispatcher.Dispatcher").__mro__)
    return any(code is not None and name in code.co_names for code in made)


NEEDS = (
    _there("options.DefaultOptions.no_cfunc_wrapper", "no kernel of the CPU would compile"),
    _there("options.DefaultOptions.no_cpython_wrapper", "no kernel of the CPU would compile"),
    _there("compiler_lock.global_compiler_lock", "two threads that compile could wait for each other"),
    _there("dispatcher.Dispatcher.compile", "several processes would compile the same function"),
    _there("dispatcher.Dispatcher.stats", "cached code could not be recognised"),
    _there("dispatcher.Dispatcher.get_compile_result", "no parallel loop of the CPU would compile"),
    _there("base.BaseContext.call_internal_no_propagate", "no parallel loop of the CPU would compile"),
    _there("types.unliteral", "a function would be compiled for each constant"),
    Need("Dispatcher.targetoptions", "the assembly of another loop would be shown", lambda: _set_by_constructor("targetoptions")),
)


def check() -> None:
    """Raise ImportError with the first member that the installed numba lacks."""
    if sentence := lacking(f"numba {numba.__version__}", NEEDS, "numba>=0.62,<0.69"):
        raise ImportError(sentence)


check()
COMPILER_LOCK: Any = member("numba.core", "compiler_lock.global_compiler_lock")


def assembly(function: Any, *args: Any) -> tuple[str, str]:
    """Return the assembly of a function for arguments of those types, and the part of it that these arguments execute.

    Both are empty for a function that numba did not compile. Numba does not show code from its cache, so the function, without
    the functions that it calls, is compiled again.
    """
    keywords: dict[str, Any] = {}
    while not hasattr(function, "inspect_asm"):
        if isinstance(function, partial):
            args, keywords = (*function.args, *args), {**function.keywords, **keywords}
            function = function.func
        elif (function := getattr(function, "__wrapped__", None)) is None:
            return "", ""
    arguments = signature(function.py_func).bind(*args, **keywords).arguments
    assembly, code = _compiled(function, tuple(map(numba.typeof, arguments.values())))
    try:
        return assembly, executed(code, arguments)
    except RuntimeError:  # LLVM rejects the changed code
        return assembly, assembly


@lru_cache(maxsize=2)  # several ops of a kernel may share a function
def _compiled(dispatcher: Any, types: tuple[Any, ...]) -> tuple[str, str]:
    """Return the assembly and the LLVM code of a function for these types."""
    if types not in dispatcher.stats.cache_misses:
        dispatcher = numba.njit(**{key: value for key, value in dispatcher.targetoptions.items() if key in TO_INSTRUCTIONS})(
            dispatcher.py_func
        )
        dispatcher.compile(types)
    return dispatcher.inspect_asm(types), dispatcher.inspect_llvm(types)
