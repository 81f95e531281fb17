"""Source lines of machine instructions.

Numba inlines a function with its line numbers but under its caller's file. So the upper bits of the line numbers of this
package's functions hold a tag of their file.
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
    line: int  # counts from 1; 0 if unknown


NOWHERE = SourceLine("", 0)


def tagged(function: Any) -> Any:
    """Return a function of this package with its file's tag in its line numbers. Others stay unchanged for error messages."""
    if function.__module__.partition(".")[0] != PACKAGE:
        return function
    code = function.__code__
    code = code.replace(co_firstlineno=code.co_firstlineno + (_tag(code.co_filename) << LINE_BITS))
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy


def source_line(path: str, line: int, package: Iterable[Path] = ()) -> SourceLine:
    """Return the source line of a compiler's line number in the file `path`; `package` has the files that a tag can name."""
    tag, line = line >> LINE_BITS, line & (1 << LINE_BITS) - 1
    return SourceLine(next((str(one) for one in package if _tag(str(one)) == tag), path) if tag else path, line)


def package_files() -> tuple[Path, ...]:
    """Return the files whose functions Numba compiles: all but plans of CUDA C++, which has line numbers of its own."""
    return tuple(sorted(path for path in Path(__file__).parents[1].rglob("*.py") if not path.name.endswith(".cu.py")))


def _tag(path: str) -> int:
    """Return a file's tag, from 1 to 2^15 - 1 (LLVM's line numbers have 32 bits). A test checks that all tags differ."""
    return crc32("/".join(Path(path).parts[-2:]).encode()) % 32749 + 1
