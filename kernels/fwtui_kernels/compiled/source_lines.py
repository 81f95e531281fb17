"""Source lines of instructions.

Numba inlines a function with its own line numbers but under its caller's file, so the file of a function of this package is
written into the upper bits of its line numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple
from zlib import crc32

LINE_BITS = 16
PACKAGE = "fwtui_kernels"


class SourceLine(NamedTuple):
    path: str
    line: int  # from 1; 0 if it is not known


NOWHERE = SourceLine("", 0)


def tagged(function: Any) -> Any:
    """Return a function of this package with its file in its line numbers; others unchanged, as errors name their lines."""
    if function.__module__.partition(".")[0] != PACKAGE:
        return function
    code = function.__code__
    code = code.replace(co_firstlineno=code.co_firstlineno + (_tag(code.co_filename) << LINE_BITS))
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy


def source_line(path: str, line: int, package: Iterable[Path] = ()) -> SourceLine:
    """Return the source line for a compiler's line number in the file `path`; `package` are the files that a tag can name."""
    tag, line = line >> LINE_BITS, line & (1 << LINE_BITS) - 1
    return SourceLine(next((str(one) for one in package if _tag(str(one)) == tag), path) if tag else path, line)


def package_files() -> tuple[Path, ...]:
    return tuple(sorted(Path(__file__).parents[1].rglob("*.py")))


def _tag(path: str) -> int:
    """Return a file's tag, from 1 to 2^15 - 1, as LLVM's line numbers have 32 bits; a test checks that each file has another."""
    return crc32("/".join(Path(path).parts[-2:]).encode()) % 32749 + 1
