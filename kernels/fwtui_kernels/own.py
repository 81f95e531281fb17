"""User kernels: files in any folder that define `plan` and `build`, as a rung's file does.

Loading a file runs it, and it can do whatever Python can do. Only a worker process loads files, and only requested ones.
"""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
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

# the defaults of own()
_KERNEL = partial(Kernel, id="", title="", papers=(), summary="", lesson="", launch_modes=("eager", "graph"), simulator_tiles=())
_DESCRIBING = [field for field in fields(Kernel) if field.name != "build"]
SOURCES, PLAN = (".cu", ".cuh"), ".cu.py"  # suffixes of CUDA C++, and of the file with its plan and build: mine.cu.py for mine.cu
BEGUN = "# begun from the rung "  # first line of a copy that `fwtui new --from` writes; it names the rung to compare with
LOOKED_AT = 1000  # maximum steps of a plan that are checked
MAX_FILE_BYTES = 2**20
_SIGNATURES = {"plan": ("shape", "stepwise"), "build": ("shape", "target")}
_MAX_CHARACTERS = 300  # length of an error message
_IMPORTED: dict[str, set[str]] = {}  # for each folder: its modules that its kernel files have imported
_CUDA_FUNCTION = re.compile(
    r"(template\s*<[^>]*>\s*)?__global__\s+(?:void\s+|__launch_bounds__\s*\([^)]*\)\s*)*(\w+)\s*\(\s*(?:const\s+)?(\w*)"
)


class UserKernelError(Exception):
    """An error in a user kernel: one sentence, if possible with the file, the line number and the line."""


class NoTrial(Exception):
    """A sentence that explains why a correct kernel cannot be tested on this machine."""


def own(plan: Callable[..., Any], build: Callable[..., Any], **more: Any) -> Kernel:
    """Return the kernel of a user's file; `more` has further fields of Kernel. `load` adds its id, title and summary."""
    return _KERNEL(plan=plan, build=build, **more)


def source_of(path: Path) -> Path:
    """Return the file with the kernel's functions: mine.cu if the kernel file is mine.cu.py, else the kernel file."""
    return path.with_suffix("") if path.name.endswith(PLAN) else path


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the kernel file and the source files that belong to its kernel."""
    sources = SOURCES if path.name.endswith(PLAN) else ()
    return (path, *(source for suffix in sources if (source := source_of(path).with_suffix(suffix)).is_file()))


def text_of(path: Path) -> str:
    """Return the text of a kernel's source file. Raises OSError, also if it is too large or not a regular file."""
    return read_regular(path, MAX_FILE_BYTES).decode("utf-8", "replace")


def cuda_functions(path: Path) -> list[tuple[str, str, str]]:
    """Return the template parameters, the name and the first parameter's type of each kernel function in a CUDA C++ file."""
    return _CUDA_FUNCTION.findall(text_of(path))


def fingerprint(path: Path) -> str:
    """Return a hash of the kernel's files. Raises OSError."""
    digest = sha256()
    for file in files_of(path):
        text = read_regular(file, MAX_FILE_BYTES)
        digest.update(b"%d " % len(text))
        digest.update(text)
    return digest.hexdigest()[:16]


def begun_from(text: str) -> str:
    """Return the rung that a file was copied from, by its first line; empty if there is none."""
    first = text.partition("\n")[0]
    return first.removeprefix(BEGUN).strip() if first.startswith(BEGUN) else ""


def defines_kernel(path: Path) -> bool:
    """Return True if a file defines a kernel, without running it; False if it cannot be read."""
    with suppress(OSError):
        return re.search(rb"^(def +plan|KERNEL)\b", read_regular(path, MAX_FILE_BYTES), re.MULTILINE) is not None
    return False


def load(path: Path, name: str, for_plan: bool = False) -> Kernel:
    """Run a kernel file and return its kernel under that name. Raises UserKernelError.

    With `for_plan`, numba is replaced by placeholders: the kernel cannot be built, and a file that needs numba to load fails.
    """
    module = _run(path, name, plan_only.run if for_plan else exec)
    kernel = getattr(module, "KERNEL", None)
    if kernel is None:
        for word, takes in _SIGNATURES.items():
            if not callable(getattr(module, word, None)):
                way = "`fwtui new` writes a working file: put your kernel into its build, and your launches into its plan"
                raise UserKernelError(f"{path.name} has no {word}({', '.join(takes)}); {way}")
        kernel = own(module.plan, module.build)
    elif not isinstance(kernel, Kernel):
        raise UserKernelError(f"KERNEL in {path.name} is of type {type(kernel).__name__}; set it to own(plan, build, ...)")
    for word in _SIGNATURES:
        _check_signature(getattr(kernel, word), word, path)
    if for_plan and any(isinstance(getattr(kernel, field.name), plan_only.Placeholder) for field in _DESCRIBING):
        raise UserKernelError(f"KERNEL in {path.name} has values from numba; its fields must be plain Python values")
    about = (module.__doc__ or "").strip().partition("\n")[0]
    simulates = kernel.simulates and source_of(path) == path  # CUDA C++ runs only on a GPU
    # `auto` and `solve` never choose a user kernel
    return replace(
        kernel, id=name, title=kernel.title or name, summary=kernel.summary or about, preference=0, simulates=simulates
    )


def check(kernel: Kernel, path: Path) -> None:
    """Check the fields of the kernel and the first steps of a small plan. Raises UserKernelError."""
    _check_choices(kernel, path)
    tile = kernel.tile_for(64) or 1
    shape = Shape(2 * tile + 1, tile, kernel.dtypes[0], options=kernel.defaults)
    try:
        if kernel.refuses(shape):
            return
        steps = list(islice(kernel.plan(shape, True), LOOKED_AT))
    except Exception as error:
        raise UserKernelError(describe_error(error, path)) from None
    if not steps:
        raise UserKernelError(f"plan in {path.name} has no steps for n = {shape.n}; it must yield a Step for each launch")
    for step in steps:
        if not isinstance(step, Step):
            kind = type(step).__name__
            raise UserKernelError(f"plan in {path.name} yields values of type {kind}; it must yield a Step for each launch")
        if step.phase not in kernel.phases:
            phases = ", ".join(kernel.phases)
            raise UserKernelError(f"a step in {path.name} has the phase {step.phase!r}; the phases of KERNEL are: {phases}")


def _check_choices(kernel: Kernel, path: Path) -> None:
    for field, values, allowed in (
        ("backend", (kernel.backend,), ("cpu", "cuda")),
        ("dtypes", kernel.dtypes, DTYPES),
        ("launch_modes", kernel.launch_modes, ("eager", "graph")),
        ("memories", kernel.memories, ("device", "pinned", "mapped", "managed")),
        ("default_tile", (kernel.default_tile,) if kernel.tiles else (1,), kernel.tiles or (1,)),
    ):
        if not values or any(value not in allowed for value in values):
            text, choices = ", ".join(map(str, values)) or "empty", ", ".join(map(str, allowed))
            raise UserKernelError(f"{field} of KERNEL in {path.name} is {text}; choose among {choices}")


def describe_error(error: BaseException, path: Path) -> str:
    """Describe an error in the user's file in one sentence: `mine.py:12: IndexError: list index out of range: x = steps[9]`.

    A compile error also has its column: `mine.py:14:24: SyntaxError: expected ':': for k in range(n)`.
    """
    if isinstance(error, UserKernelError):
        return str(error)
    text = _one_line(str(error))
    if isinstance(error, SyntaxError):
        file, text = Path(error.filename or path).name, f"{type(error).__name__}: {_one_line(error.msg)}"
        return _sentence(file, error.lineno or 0, error.text or "", text, error.offset or 0)
    kind = type(error).__name__
    file, line, column = _place(error, path)
    message = f"{kind}: {text}" if text else kind
    source = linecache.getline(str(file), line) if line else ""
    return _sentence(file.name, line, source, message, column) if line else f"{path.name}: {message}"


def at_function(path: Path, name: str, message: str, *within: str) -> UserKernelError:
    """Return an error at the line of a Python or CUDA function, or at its first line that contains one of `within`."""
    begins = re.compile(rf"\s*def\s+{name}\s*\(" if path.suffix == ".py" else rf".*\b{name}\s*\(.*")
    ends = re.compile(r"\s*(def|@jit|@cuda\.jit)\b" if path.suffix == ".py" else r".*__global__")
    lines = text_of(path).splitlines()
    first = next((at for at, line in enumerate(lines) if begins.match(line)), None)
    if first is None:
        return UserKernelError(f"{path.name}: {message}")
    last = next((at for at in range(first + 1, len(lines)) if ends.match(lines[at])), len(lines))
    patterns = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in within]
    place = next((at for at in range(first, last) if any(pattern.search(lines[at]) for pattern in patterns)), first)
    return UserKernelError(_sentence(path.name, place + 1, lines[place], message))


def _sentence(file: str, line: int, text: str, message: str, column: int = 0) -> str:
    """Return `file:line:column: message: text`; column 0 is unknown and omitted."""
    message = f"{file}:{line}{f':{column}' if column else ''}: {message}"
    return f"{message}: {text.strip()}" if text.strip() else message


def _place(error: BaseException, path: Path) -> tuple[Path, int, int]:
    """Return the file, line and column of the innermost user code that raised the error or that numba was compiling.

    A line or column of 0 is unknown.
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


def _one_line(message: str) -> str:
    """Return an error's message without numba's colours, advice and source location."""
    message = re.sub(r"\x1b\[[0-9;]*m", "", message)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if lines and lines[0].startswith("Failed in ") and len(lines) > 1:
        del lines[0]
    rest: list[str] = []
    for line in lines:
        if line.startswith(("File ", "There are ", "During: ", "This error ", "To see ", "If you think ")):
            break
        rest.append(line)
    return " ".join(rest or lines[:1])[:_MAX_CHARACTERS]


def _check_signature(function: Any, word: str, path: Path) -> None:
    takes = _SIGNATURES[word]
    if not callable(function):
        raise UserKernelError(f"{word} in {path.name} is not a function; it must take ({', '.join(takes)})")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*takes)
    except TypeError:
        code = getattr(function, "__code__", None)
        line = code.co_firstlineno if code is not None and _of_user(code.co_filename, path) else 0
        message = f"{word} must take ({', '.join(takes)}), but takes {str(signature).partition(' -> ')[0]}"
        text = linecache.getline(str(path), line) if line else ""
        raise UserKernelError(_sentence(path.name, line, text, message) if line else f"{path.name}: {message}") from None


def _run(path: Path, name: str, run: Callable[[CodeType, dict[str, Any]], object]) -> ModuleType:
    """Run the file as a new module. It may import modules of its folder, which are reloaded too."""
    folder = str(path.parent)
    try:
        text = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UserKernelError(f"{path.name} cannot be read: {(error.strerror or str(error)).lower()}") from None
    for imported in _IMPORTED.pop(folder, ()):  # the imported files may have changed
        sys.modules.pop(imported, None)
    before = set(sys.modules)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end, so that a user's random.py does not shadow Python's
    linecache.checkcache()
    sys.dont_write_bytecode = True  # Python's cache confuses two saves within one second that have the same length
    module = ModuleType(f"own_{re.sub(r'[^A-Za-z0-9_]', '_', name)}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        # compiled here, because Python's bytecode cache may be older than the file
        run(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the file may also call sys.exit
        raise UserKernelError(describe_error(error, path)) from None
    finally:
        new = {name: getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before}
        _IMPORTED[folder] = {name for name, file in new.items() if _of_user(file, path)}
    return module
