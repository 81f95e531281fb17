"""A kernel from a Python file, and what is wrong with one in a sentence that names file, line and the line itself."""

from __future__ import annotations

import linecache
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from kernels.plan import Kernel


def load(path: Path, name: str) -> Kernel:
    """Run the file and take its KERNEL. Raises whatever is wrong with it."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    sys.path.append(str(path.parent))
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module.KERNEL


def complaint(error: BaseException, path: Path) -> str:
    """What went wrong in the file: `mine.py:12: NameError: name 'x' is not defined: x = 3`."""
    if isinstance(error, SyntaxError):
        return f"{path.name}:{error.lineno}: {type(error).__name__}: {error.msg}: {(error.text or '').strip()}"
    words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split())[:300]
    said = f"{type(error).__name__}: {words}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    lines += [int(line) for file, line in re.findall(r'File "([^"\n]+)", line (\d+)', str(error)) if Path(file).name == path.name]
    if not lines or lines[-1] is None:
        return f"{path.name}: {said}"
    text = linecache.getline(str(path), lines[-1]).strip()
    return f"{path.name}:{lines[-1]}: {said}: {text}"
