"""CUDA C++ kernels: compiled by NVRTC, with or without a GPU, and launched like Numba's kernels."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cuda import core
from cuda.pathfinder import find_nvidia_header_directory

from fwtui_kernels.compiled import gpu
from fwtui_kernels.compiled.cubin_cache import CompiledCode
from fwtui_kernels.compiled.driver_calls import allow_dynamic_shared_memory
from fwtui_kernels.compiled.ptxas import KernelUse, used_in
from fwtui_kernels.own import UserKernelError, at_function, cuda_functions, text_of

toolkit: Any = core
STANDARD = "c++17"
_NAMES = "__nv_name_map"  # the pseudo file in which NVRTC resolves name expressions
_TOO_MUCH = re.compile(r"Entry function '_Z(\d+)(\w+)' uses too much shared data \(0x([0-9a-f]+) bytes, 0x([0-9a-f]+) max\)")
_ERROR = re.compile(r"^(?P<file>[^\n]*?)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$")


class SourceCode(NamedTuple):
    """Compiled functions, and their resources by C++ name."""

    binary: Any  # cuda.core's ObjectCode
    used: Mapping[str, KernelUse]
    ptx: Callable[[str], str]  # PTX of a function, from another compilation


def compiled(
    source: Path, functions: Sequence[str], define: Mapping[str, str], include: Sequence[Path], cc: tuple[int, int]
) -> SourceCode:
    """Compile functions of a file for a compute capability; needs no GPU. Raises UserKernelError."""
    try:
        text = text_of(source)
    except OSError as error:
        raise UserKernelError(f"{source.name} cannot be read: {(error.strerror or str(error)).lower()}") from None
    headers = find_nvidia_header_directory("cudart")
    options = toolkit.ProgramOptions(
        name=source.name,  # the file name in error messages
        std=STANDARD,
        arch=f"sm_{cc[0]}{cc[1]}",
        lineinfo=True,
        define_macro=list(define.items()),
        include_path=[str(folder) for folder in (*include, headers) if folder],
        ptxas_options=["-v"],
    )
    log, names = io.StringIO(), list(dict.fromkeys(functions))
    try:
        binary = toolkit.Program(text, "c++", options).compile("cubin", name_expressions=names, logs=log)
    except Exception as error:
        raise _first_error(str(error), source) from None
    mangled = {name: symbol.decode() for name, symbol in binary.symbol_mapping.items()}

    def ptx(function: str) -> str:
        # the version comes from the linker, because cuda.core's NVRTC program looks for a driver when it compiles to PTX
        linked = replace(options, link_time_optimization=True, relocatable_device_code=True)
        code = toolkit.Program(text, "c++", linked).compile("ltoir", name_expressions=names)
        linker = toolkit.Linker(code, options=toolkit.LinkerOptions(arch=options.arch, link_time_optimization=True, ptx=True))
        return linker.link("ptx").code.decode().partition(f".entry {mangled[function]}(")[2].partition("\n}")[0]

    return SourceCode(binary, {name: used_in(log.getvalue(), symbol) for name, symbol in mangled.items()}, ptx)


class SourceKernel:
    """A compiled function that is launched like one of Numba: `function[grid, block, stream](*buffers, *int32s)`."""

    def __init__(self, source: Path, code: SourceCode, function: str, name: str, dynamic: int, n: int):
        used = code.used[function]
        self.source, self.name, self.dynamic = source, name, dynamic
        self.used = used._replace(shared_bytes=used.shared_bytes + dynamic)
        self.ptx = partial(code.ptx, function)
        self.overloads: dict[str, gpu.LoadedFunction] = {}  # the loaded function, if any
        self._code, self._name, self._n = code, function, np.int32(n)
        self.entry, self.cubin = code.binary.symbol_mapping[function].decode(), bytes(code.binary.code)

    @property
    def parameters(self) -> tuple[int, ...]:
        """The bytes of each of its parameters."""
        return parameters(self.cubin, self.entry)

    def __getitem__(self, configuration: tuple[tuple[int, int], tuple[int, int], Any]) -> Callable[..., None]:
        launcher = (self.overloads.get(self._name) or self._load()).launcher(*configuration)

        def launch(*arguments: Any) -> None:
            places = [buffer.address for buffer in arguments if hasattr(buffer, "address")]
            launcher(*places, self._n, *arguments[len(places) :])

        return launch

    def _load(self) -> gpu.LoadedFunction:
        """Load the function into the current context."""
        kernel = self._code.binary.get_kernel(self._name)
        if self.dynamic:
            allow_dynamic_shared_memory(kernel, self.dynamic, toolkit.Device().device_id)
        self.overloads[self._name] = gpu.LoadedFunction(kernel, CompiledCode(self.entry, self.cubin), self.dynamic)
        return self.overloads[self._name]


def parameters(cubin: bytes, entry: str) -> tuple[int, ...]:
    """Return the size in bytes of each parameter of a function in a cubin; empty if the cubin does not record them.

    A cubin is an ELF file. The section .nv.info of the function has a header of 4 bytes (format, attribute, size) before each
    value. Attribute 0x17 is a parameter (index, ordinal, offset, and the size above bit 18), as `cuobjdump -elf` shows it.
    """
    (table,), (size, count, names) = struct.unpack_from("<Q", cubin, 0x28), struct.unpack_from("<HHH", cubin, 0x3A)
    heads = [struct.unpack_from("<I20xQQ", cubin, table + at * size) for at in range(count)]
    section = f".nv.info.{entry}\0".encode()
    sizes: dict[int, int] = {}
    for name, offset, length in heads:
        if not cubin.startswith(section, heads[names][1] + name):
            continue
        at = offset
        while at < offset + length:
            form, attribute, bytes_of_value = struct.unpack_from("<BBH", cubin, at)
            if form == 4 and attribute == 0x17:
                ordinal, _, packed = struct.unpack_from("<HHI", cubin, at + 8)
                sizes[ordinal] = packed >> 18
            at += 4 + (bytes_of_value if form == 4 else 0)
    return tuple(sizes[ordinal] for ordinal in sorted(sizes))


def _first_error(log: str, source: Path) -> UserKernelError:
    """Return the first compiler error with file:line:column and the source line, and the number of further errors."""
    lines = log.replace("\0", "").splitlines()
    places = [place for place, line in enumerate(lines) if (error := _ERROR.match(line)) and error["file"] != _NAMES]
    missing, beyond = re.search(r"#pragma nv_mangled_name (.+)", log), _TOO_MUCH.search(log)
    if beyond:
        function, needs, most = beyond[2][: int(beyond[1])], int(beyond[3], 16), int(beyond[4], 16)
        message = f"{function} takes {needs:,} bytes of shared memory per block; the maximum is {most:,}"
        return at_function(source, function, message, "__shared__")
    if not places and missing:
        names = ", ".join(name for _, name, _ in cuda_functions(source))
        has = f"; its __global__ functions are: {names}" if names else ""
        return UserKernelError(f"{source.name} has no function {missing[1].strip()}, which build launches{has}")
    if not places:
        named = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
        return UserKernelError(f"{source.name}: {named.strip()}")
    first = places[0]
    match = _ERROR.match(lines[first])
    assert match is not None
    message = match["text"]
    # the source line and a line with a caret follow; a long message continues in the lines before them
    caret = next((i for i in range(first + 1, min(first + 12, len(lines))) if lines[i].strip() == "^"), None)
    column, text = "", ""
    if caret is not None:
        text = lines[caret - 1]
        indent = len(text) - len(text.lstrip())
        written = _line(source, match)
        shift = len(written) - len(written.lstrip()) - indent if written.strip() == text.strip() else 0
        column = f":{lines[caret].index('^') + 1 + shift}"
        message = " ".join([message, *(line.strip() for line in lines[first + 1 : caret - 1])])
    if " host function" in message or ("cannot open source file" in message and "<" in text):
        way = "put main and the headers of the host between `#ifndef __CUDACC_RTC__` and `#endif`"
        message = f"{message.partition('. ')[0]}; NVRTC compiles only the kernels: {way}"
    others = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
    where = f"{Path(match['file']).name}:{match['line']}{column}"
    return UserKernelError(f"{where}: {message.strip()}{f': {text.strip()}' if text.strip() else ''}{others}")


def _line(source: Path, match: re.Match[str]) -> str:
    """Return the line of the user's file that an error names; the compiler's copy is indented by two."""
    if Path(match["file"]).name != source.name:
        return ""
    lines = text_of(source).splitlines()
    number = int(match["line"])
    return lines[number - 1] if number <= len(lines) else ""
