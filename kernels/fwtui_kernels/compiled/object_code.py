"""Compiled functions without their compiler: object code is loaded by llvmlite, and numba stays out of the process."""

from __future__ import annotations

from ctypes import CFUNCTYPE, addressof, c_double, c_int, c_ssize_t, c_void_p
from typing import Any

import llvmlite
import numpy as np
from llvmlite import binding

from fwtui_kernels.compiled.array_abi import BEFORE_SHAPE, array_words


def machine() -> Any:
    """This machine's processor, for LLVM."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return binding.Target.from_default_triple().create_target_machine(name, features, 3, jit=True)


def suits() -> str:
    """What object code depends on, apart from its source."""
    features = binding.get_host_cpu_features().flatten()
    return " ".join((llvmlite.__version__, binding.get_process_triple(), binding.get_host_cpu_name(), features))


class ObjectCode:
    """The functions of some object code, each called with arrays in C order and real numbers, as numba does.

    It is run as it is: give only what this user's programs have written. Raises RuntimeError if it is none.
    """

    def __init__(self, code: bytes):
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._functions: dict[str, Any] = {}
        self._result = c_void_p()  # into which each writes that it returns nothing
        self._nothing = addressof(self._result)

    def call(self, name: str, *arguments: np.ndarray | float) -> None:
        values: list[Any] = [self._nothing, None]
        for one in arguments:
            if isinstance(one, np.ndarray):
                values += array_words(one.ctypes.data, one.itemsize, one.shape, one.strides)
            else:
                values.append(one)
        function = self._functions.get(name)
        if function is None:
            kinds: list[Any] = [c_void_p, c_void_p]
            for one in arguments:
                if isinstance(one, np.ndarray):
                    kinds += [c_ssize_t] * (len(BEFORE_SHAPE) + 2 * one.ndim)  # an address is as wide
                else:
                    kinds.append(c_double)
            address = self._engine.get_function_address(name)
            if not address:
                raise RuntimeError(f"the object code has no function {name}")
            function = self._functions[name] = CFUNCTYPE(c_int, *kinds)(address)
        function(*values)
