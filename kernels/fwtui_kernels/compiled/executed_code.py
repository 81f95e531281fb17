"""The machine code that one call of a compiled function executes.

If two rows may overlap, LLVM compiles a loop twice and chooses the vector loop or the scalar one when the function runs. Here the
arguments of a call replace the parameters, so that LLVM evaluates the choice and removes the other loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from llvmlite import binding

from fwtui_kernels.compiled.array_abi import array_words
from fwtui_kernels.compiled.cpu_vectors import features_of_cpu

# the function itself; those that it calls are linked or internal, and the entry point for Python has no retptr
_HEAD = re.compile(r"^define (?!linkonce_odr|internal)[^\n]*%retptr[^\n]*\{\n", re.M)
_PARAMETER = re.compile(r"(ptr|i\d+)[^,%]* %(arg\.(\w+)[\w.]*)")
_NAME = re.compile(r"%([\w.]*\w)")
_BLOCK_OR_VALUE = re.compile(r"^(?:([\w.]+):|  %([\w.]*\w) = (.*)$)", re.M)
_PHI = re.compile(r"phi \S+ \[ (\S+), %\S+ \], \[ (\S+), %\S+ \]")


def executed(code: str, arguments: Mapping[str, Any]) -> str:
    """Return the assembly of numba's LLVM code for a call with these arguments, of which arrays and integers are evaluated."""
    head = _HEAD.search(code)
    if head is None:
        return ""
    constants: dict[str, str] = {}
    for name, value in arguments.items():
        parameters = [one for one in _PARAMETER.findall(head[0]) if one[2] == name]
        if len(words := _words(value)) == len(parameters):
            for (kind, parameter, _), word in zip(parameters, words, strict=True):
                constants[parameter] = f"inttoptr (i64 {word} to ptr)" if kind == "ptr" else str(word)
    end = code.index("\n}\n", head.end())
    body = code[head.end() : end]
    firsts = dict(_first_iteration(body))
    for name, value in firsts.items():
        while value.lstrip("%") in firsts:  # an outer loop's variable
            value = firsts[value.lstrip("%")]
        body = re.sub(rf"^  %{re.escape(name)} = .*\n", "", body, flags=re.M)
        constants[name] = constants.get(value.lstrip("%"), value)
    body = _NAME.sub(lambda match: constants.get(match[1], match[0]), body)
    return _assembly(f"{code[: head.end()]}{body}{code[end:]}")


def _words(value: Any) -> tuple[int, ...]:
    """Return the words that pass an array or an integer to a compiled function; none for another value."""
    if isinstance(value, np.ndarray):
        return array_words(value.ctypes.data, value.itemsize, value.shape, value.strides)
    return (int(value),) if isinstance(value, int | np.integer) else ()


def _first_iteration(body: str) -> Iterator[tuple[str, str]]:
    """Yield the variables of a loop on which a check for overlap depends, with their values in its first iteration.

    A check that depends on two loops, such as one for each pair of rows, is left to the code.
    """
    values: dict[str, str] = {}
    blocks: dict[str, str] = {}
    block = ""
    for label, name, value in _BLOCK_OR_VALUE.findall(body):
        block = label or block
        if name:
            values[name], blocks[name] = value, block
    order = {name: place for place, name in enumerate(values)}
    for condition in re.findall(r"br i1 %([\w.]*\w),", body):
        needed = [condition]
        for name in needed:  # the list grows in this loop
            if not values.get(name, "phi").startswith("phi "):
                needed += [one for one in _NAME.findall(values[name]) if one in values and one not in needed]
        phis = {name: match.groups() for name in needed if (match := _PHI.match(values.get(name, "")))}
        checks = any("icmp ult ptr" in values.get(name, "") for name in needed)
        if checks and len({blocks[name] for name in phis}) == 1:
            for name, both in phis.items():
                yield from ((name, one) for one in both if order.get(one.lstrip("%"), -1) < order[name])  # defined before


def _assembly(code: str) -> str:
    """Return the assembly of LLVM code without branches that are never taken."""
    module = binding.parse_assembly(code)
    features = ",".join(f"{'+' if there else '-'}{name}" for name, there in features_of_cpu().items())
    machine = binding.Target.from_triple(module.triple).create_target_machine(binding.get_host_cpu_name(), features, opt=3)
    passes = binding.create_new_module_pass_manager()
    passes.add_sccp_pass()  # evaluates the choices
    passes.add_simplify_cfg_pass()  # removes the other loops
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=0)))
    return machine.emit_assembly(module)
