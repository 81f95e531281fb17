"""The user's kernels: a file anywhere with `plan` and `build` in it, read as a rung's file is.

Loading a file runs it, and it can do whatever Python can do: only a worker process does this, for a file that was asked for.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from fwtui_kernels import plan_only
from fwtui_kernels.plan import DTYPES, Kernel, Shape, Step
from fwtui_kernels.regular_file import read_regular

# what such a file says of its kernel, where it says it: own(plan, build, tiles=(16, 32), default_tile=32)
_KERNEL = partial(Kernel, id="", title="", papers=(), summary="", lesson="", launch_modes=("eager", "graph"), simulator_tiles=())
_DESCRIBING = [field for field in fields(Kernel) if field.name != "build"]
SOURCES = (".cu", ".cuh")  # beside the file, with its name: they are part of the kernel
BEGUN = "# begun from the rung "  # a line that `fwtui new --from` writes first: what a changed copy is compared with
LOOKED_AT = 1000  # steps of a plan that are checked
LARGEST_FILE = 2**20  # bytes
_SIGNATURES = {"plan": ("shape", "stepwise"), "build": ("shape", "target")}
_MAX_WORDS = 300
_IMPORTED: dict[str, set[str]] = {}  # modules that files of a folder brought from beside them


class UserKernelError(Exception):
    """An error in a user kernel, in one sentence; if possible with file, line number and the line itself."""


class NoTrial(Exception):
    """The reason why a correct kernel cannot be tested on this machine, in one sentence."""


def own(plan: Callable[..., Any], build: Callable[..., Any], **more: Any) -> Kernel:
    """The kernel of a user's file; `more` are fields of Kernel, and what is not said is found by loading it."""
    return _KERNEL(plan=plan, build=build, **more)


def files_of(path: Path) -> tuple[Path, ...]:
    """The file and those beside it that belong to its kernel."""
    return (path, *(beside for suffix in SOURCES if (beside := path.with_suffix(suffix)).is_file()))


def text_of(path: Path) -> str:
    """Return the text of a kernel's source file. Raises OSError, also for a file that is too large or not a regular one."""
    return read_regular(path, LARGEST_FILE).decode("utf-8", "replace")


def fingerprint(path: Path) -> str:
    """Return a hash of the kernel's files. Raises OSError."""
    digest = sha256()
    for file in files_of(path):
        text = read_regular(file, LARGEST_FILE)
        digest.update(b"%d " % len(text))
        digest.update(text)
    return digest.hexdigest()[:16]


def begun_from(text: str) -> str:
    """The rung that a file's text was copied from; empty if it does not say so."""
    first = text.partition("\n")[0]
    return first.removeprefix(BEGUN).strip() if first.startswith(BEGUN) else ""


def about(path: Path) -> str | None:
    """The first line of a kernel's docstring, read without running the file; None for a file that is no kernel."""
    try:
        text = read_regular(path, LARGEST_FILE)
        if not re.search(rb"^(def +plan|KERNEL)\b", text, re.MULTILINE):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about the user's code
            return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    except OSError:
        return None
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a kernel with a mistake, which running it tells
        return ""


def load(path: Path, name: str, for_plan: bool = False) -> Kernel:
    """The kernel in the file, under that name. Runs the file. Raises UserKernelError.

    `for_plan`: without numba, so the kernel cannot be built; and what needs numba to be loaded fails somehow.
    """
    module = _run(path, name, plan_only.run if for_plan else exec)
    kernel = getattr(module, "KERNEL", None)
    if kernel is None:
        for word, takes in _SIGNATURES.items():
            if not callable(getattr(module, word, None)):
                raise UserKernelError(f"{path.name} has no {word}({', '.join(takes)}); `fwtui new` writes a file that works")
        kernel = own(module.plan, module.build)
    elif not isinstance(kernel, Kernel):
        raise UserKernelError(f"KERNEL in {path.name} is of type {type(kernel).__name__}; make it by own(plan, build, ...)")
    for word in _SIGNATURES:
        _check_signature(getattr(kernel, word), word, path)
    if for_plan and any(isinstance(getattr(kernel, field.name), plan_only.Placeholder) for field in _DESCRIBING):
        raise UserKernelError(f"KERNEL in {path.name} has values from numba")
    about = (module.__doc__ or "").strip().partition("\n")[0]
    # a user's kernel is never chosen for him
    return replace(kernel, id=name, title=kernel.title or name, summary=kernel.summary or about, preference=0)


def check(kernel: Kernel, path: Path) -> None:
    """Look at the first steps of a small plan. Raises UserKernelError."""
    _check_choices(kernel, path)
    tile = kernel.tile_for(64) or 1
    shape = Shape(2 * tile + 1, tile, kernel.dtypes[0], options=kernel.defaults)
    try:
        if kernel.refuses(shape):
            return
        steps = list(islice(kernel.plan(shape, True), LOOKED_AT))
    except Exception as error:
        raise UserKernelError(complaint(error, path)) from None
    if not steps:
        raise UserKernelError(f"plan in {path.name} has no steps for n = {shape.n}; it must yield a Step for each launch")
    for step in steps:
        if not isinstance(step, Step):
            kind = type(step).__name__
            raise UserKernelError(f"plan in {path.name} yields values of type {kind}; it must yield a Step for each launch")
        if step.phase not in kernel.phases:
            phases = ", ".join(kernel.phases)
            raise UserKernelError(f"a step in {path.name} is of the phase {step.phase!r}, and KERNEL's phases are: {phases}")


def _check_choices(kernel: Kernel, path: Path) -> None:
    for word, values, offered in (
        ("backend", (kernel.backend,), ("cpu", "cuda")),
        ("dtypes", kernel.dtypes, DTYPES),
        ("launch_modes", kernel.launch_modes, ("eager", "graph")),
        ("memories", kernel.memories, ("device", "pinned", "mapped", "managed")),
        ("default_tile", (kernel.default_tile,) if kernel.tiles else (1,), kernel.tiles or (1,)),
    ):
        if not values or any(value not in offered for value in values):
            text, offers = ", ".join(map(str, values)) or "empty", ", ".join(map(str, offered))
            raise UserKernelError(f"{word} of KERNEL in {path.name} is {text}; choose among {offers}")


def complaint(error: BaseException, path: Path) -> str:
    """Describe an error in the user's file in one sentence: `mine.py:12: IndexError: list index out of range: x = steps[9]`.

    What could not be compiled has its column, too: `mine.py:14:24: SyntaxError: expected ':': for k in range(n)`.
    """
    if isinstance(error, UserKernelError):
        return str(error)
    words = _one_line(str(error))
    if isinstance(error, SyntaxError):
        file, words = Path(error.filename or path).name, f"{type(error).__name__}: {_one_line(error.msg)}"
        return _sentence(file, error.lineno or 0, error.text or "", words, error.offset or 0)
    kind = type(error).__name__
    file, line, column = _place(error, path)
    message = f"{kind}: {words}" if words else kind
    text = linecache.getline(str(file), line) if line else ""
    return _sentence(file.name, line, text, message, column) if line else f"{path.name}: {message}"


def at_function(path: Path, name: str, message: str, *within: str) -> UserKernelError:
    """What is wrong with a function of that file, Python's or CUDA's, at its line, or at the first in it with one of `within`."""
    begins = re.compile(rf"\s*def\s+{name}\s*\(" if path.suffix == ".py" else rf".*\b{name}\s*\(.*")
    ends = re.compile(r"\s*(def|@jit|@cuda\.jit)\b" if path.suffix == ".py" else r".*__global__")
    lines = text_of(path).splitlines()
    first = next((at for at, line in enumerate(lines) if begins.match(line)), None)
    if first is None:
        return UserKernelError(f"{path.name}: {message}")
    last = next((at for at in range(first + 1, len(lines)) if ends.match(lines[at])), len(lines))
    place = next((at for at in range(first, last) if any(word in lines[at] for word in within)), first)
    return UserKernelError(_sentence(path.name, place + 1, lines[place], message))


def _sentence(file: str, line: int, text: str, message: str, column: int = 0) -> str:
    """Lines and columns count from 1; column 0: none is known."""
    message = f"{file}:{line}{f':{column}' if column else ''}: {message}"
    return f"{message}: {text.strip()}" if text.strip() else message


def _place(error: BaseException, path: Path) -> tuple[Path, int, int]:
    """The innermost line of the user's code that the error passed through, or that numba was compiling, and there its column.

    Line 0: none is known.
    """
    user_frames = [
        (Path(f.filename), f.lineno or 0) for f in traceback.extract_tb(error.__traceback__) if _of_user(f.filename, path)
    ]
    compiled = getattr(error, "loc", None)  # numba's errors
    named = re.findall(r'File "([^"\n]+)", line (\d+)', str(error))
    lines = [(Path(file), int(line)) for file, line in named if _of_user(file, path) or Path(file).name == path.name]
    if compiled is not None and _of_user(str(getattr(compiled, "filename", "")), path):
        return Path(compiled.filename), compiled.line, column + 1 if (column := getattr(compiled, "col", None)) is not None else 0
    if lines:
        return path if lines[-1][0].name == path.name else lines[-1][0], lines[-1][1], 0
    return (*user_frames[-1], 0) if user_frames else (path, 0, 0)


def _of_user(file: str | None, path: Path) -> bool:
    return bool(file) and Path(file or "").parent == path.parent


def _one_line(words: str) -> str:
    """Return an error's message without numba's colours, advice and place."""
    words = re.sub(r"\x1b\[[0-9;]*m", "", words)
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if lines and lines[0].startswith("Failed in ") and len(lines) > 1:
        del lines[0]
    rest: list[str] = []
    for line in lines:
        if line.startswith(("File ", "There are ", "During: ", "This error ", "To see ", "If you think ")):
            break
        rest.append(line)
    return " ".join(rest or lines[:1])[:_MAX_WORDS]


def _check_signature(function: Any, word: str, path: Path) -> None:
    takes = _SIGNATURES[word]
    if not callable(function):
        raise UserKernelError(f"{word} in {path.name} is no function; it must take ({', '.join(takes)})")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*takes)
    except TypeError:
        code = getattr(function, "__code__", None)
        line = code.co_firstlineno if code is not None and _of_user(code.co_filename, path) else 0
        message = f"{word} must take ({', '.join(takes)}), and takes {str(signature).partition(' -> ')[0]}"
        text = linecache.getline(str(path), line) if line else ""
        raise UserKernelError(_sentence(path.name, line, text, message) if line else f"{path.name}: {message}") from None


def _run(path: Path, name: str, run: Callable[[CodeType, dict[str, Any]], object]) -> ModuleType:
    """The file as a module, run anew each time; beside it may stand modules that it imports."""
    folder = str(path.parent)
    try:
        text = read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise UserKernelError(f"{path.name} cannot be read: {(error.strerror or str(error)).lower()}") from None
    for imported in _IMPORTED.pop(folder, ()):  # they may have changed since
        sys.modules.pop(imported, None)
    before = set(sys.modules)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: a random.py of the user's must not stand for Python's
    linecache.checkcache()
    sys.dont_write_bytecode = True  # Python takes two files of one second and one length for the same
    module = ModuleType(f"own_{re.sub(r'[^A-Za-z0-9_]', '_', name)}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        # compiled here, so that no cache of Python's stands for a file that was just saved
        run(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # it may as well end the program
        raise UserKernelError(complaint(error, path)) from None
    finally:
        new = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
        _IMPORTED[folder] = {name for name, file in new.items() if _of_user(file, path)}
    return module
