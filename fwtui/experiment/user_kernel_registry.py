"""The registered user kernels of this process: their descriptions, as data.

This process never loads their files. A separate process with a time limit returns the data and the plan of a kernel; the
worker that runs the kernel loads the file again.
"""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_type_hints

import msgspec
from msgspec import Struct

from fwtui.common.child_process import ModuleProcess, check_utf8
from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.small_file import file_version
from fwtui.common.text import quoted, sanitise
from fwtui_kernels import registry
from fwtui_kernels.auto import AUTO
from fwtui_kernels.own import MAX_FILE_BYTES, PLAN, SOURCES, files_of, fingerprint, source_of
from fwtui_kernels.plan import Kernel, Shape, Step

MAX_SECONDS = 20.0  # time limit for loading a file, including its imports of numba and others
PLAN_SECONDS = 5.0  # time limit for the plan of a small graph; a screen waits for it
MAX_STEPS = 100_000  # steps of a requested plan
_CALLED = ("plan", "build", "refuses", "lacks", "once", "streams", "ordered")  # fields of a Kernel that are not data
_HINTS = get_type_hints(Kernel)
_DATA = tuple(field.name for field in dataclasses.fields(Kernel) if field.name not in _CALLED)


class UserKernel(NamedTuple):
    """A user kernel. `kernel` describes it; a separate process computes its plan, and only a worker builds it."""

    kernel: Kernel
    path: Path


class KernelRequest(Struct, frozen=True):
    """A request to the kernel process: the description of the kernel, or its plan for a shape."""

    path: str
    name: str
    shape: Shape | None = None
    stepwise: bool = True


class KernelReply(Struct, frozen=True):
    """The reply to a KernelRequest: the kernel's data or the steps, else the error in one sentence."""

    kernel: dict[str, Any] = {}
    steps: tuple[Step, ...] = ()
    wrong: str = ""


_user_kernels: dict[str, UserKernel] = {}
_codes: dict[Path, tuple[object, str]] = {}  # for each file: its state on disk, and the fingerprint for that state


def user_kernels() -> Mapping[str, UserKernel]:
    """Return the user kernels registered in this process, by name."""
    return _user_kernels


def known_kernels() -> Mapping[str, Kernel]:
    """Return all rungs, then the user kernels."""
    return {**registry(), **{name: one.kernel for name, one in _user_kernels.items()}}


def is_path(text: str) -> bool:
    """Return True if the text names a file and not a kernel id."""
    return os.sep in text or text.endswith((".py", *SOURCES))


def find_kernel_file(text: str) -> Path:
    """Return the path of a kernel file; for CUDA C++, that of its plan (.cu.py). Raises Refused if the file cannot be read."""
    named = Path(os.path.expanduser(text)).absolute()
    check_utf8(str(named))
    path = _plan_of(named)
    if path != named:
        if _missing(path):
            writes = f"`fwtui new {sanitise(named.stem)}.cu` writes it"
            raise Refused(f"the CUDA C++ of {quoted(text)} needs a plan of its launches in {sanitise(path.name)}; {writes}")
        if _missing(named):
            writes = f"`fwtui new {sanitise(named.name)}` writes one"
            raise Refused(f"the kernel {quoted(text)} cannot be read: there is no such file; {writes}")
    if path.suffix != ".py":
        way = "name a Python file with plan and build, or CUDA C++ with its plan; `fwtui new` writes both"
        raise Refused(f"{quoted(text)} is not a kernel file, which ends in .py or .cu; {way}")
    try:
        status = path.stat()
    except OSError as error:
        reason = os_error_reason(error)
        if os.path.islink(path):
            way = "choose another, or fix the link"
        elif isinstance(error, FileNotFoundError):
            reason, way = "there is no such file", f"`fwtui new {sanitise(path.name)}` writes one"
        else:
            way = "choose another"
        raise Refused(f"the kernel {quoted(text)} cannot be read: {reason}; {way}") from None
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"the kernel {quoted(text)} is not a file; pass a Python file with plan and build")
    if (size := status.st_size) > MAX_FILE_BYTES:
        raise Refused(f"{sanitise(path.name)} has {size} bytes, more than the maximum of {MAX_FILE_BYTES}; choose another")
    return path.resolve()


def _missing(path: Path) -> bool:
    """Return True if the path does not exist; False also if it cannot be examined, which the reader reports."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def _plan_of(path: Path) -> Path:
    """Return the Python file of a kernel: for CUDA C++ that of its plan."""
    return path.with_suffix(PLAN) if path.suffix in SOURCES else path


def name_for(path: Path) -> str:
    """Return the short name of a file's kernel: its stem; if another kernel has that name, with the folder's name or a number."""
    names = {AUTO.id, *registry(), *(name for name, kernel in _user_kernels.items() if kernel.path != path)}
    same = next((name for name, kernel in _user_kernels.items() if kernel.path == path), None)
    stem, folder = _word(source_of(path).stem), _word(path.parent.name)
    candidates = (same, stem, f"{folder}-{stem}", *(f"{stem}-{number}" for number in range(2, len(names) + 3)))
    return next(name for name in candidates if name and name not in names)


def name_of_file(text: str) -> str:
    """Return the name of the kernel that was loaded from a user's file; empty if it was not loaded."""
    path = _plan_of(Path(os.path.expanduser(text)).absolute())
    return next((name for name, kernel in _user_kernels.items() if kernel.path in (path, Path(os.path.realpath(path)))), "")


def register_kernel(path: Path, seconds: float = MAX_SECONDS) -> str:
    """Load the kernel of a file from find_kernel_file, or load it again after a change, and return its name.

    The caller must have the user's consent to run the file. Raises Refused with the error in the file.
    """
    name = name_for(path)
    reply = _request(KernelRequest(str(path), name), seconds)
    try:
        data = {key: msgspec.convert(_clean(value), _HINTS[key]) for key, value in reply.kernel.items() if key in _DATA}
    except msgspec.ValidationError as error:
        raise Refused(f"KERNEL in {sanitise(path.name)} is invalid: {sanitise(str(error))}") from None

    @lru_cache(maxsize=8)
    def steps(shape: Shape, stepwise: bool, code: str) -> tuple[Step, ...]:
        return _request(KernelRequest(str(path), name, shape, stepwise), PLAN_SECONDS).steps

    def plan(shape: Shape, stepwise: bool) -> Iterator[Step]:
        return iter(steps(shape, stepwise, code_of(name)))

    _user_kernels[name] = UserKernel(Kernel(**data, plan=plan, build=_unbuilt), path)
    return name


def code_of(name: str) -> str:
    """Return the fingerprint of the current files of a user kernel; empty for a rung. Raises Refused if one is unreadable."""
    kernel = _user_kernels.get(name)
    if kernel is None:
        return ""
    try:
        return _fingerprint(kernel.path)
    except OSError as error:
        raise Refused(f"the kernel's file {sanitise(kernel.path.name)} cannot be read: {os_error_reason(error)}") from None


def path_of(name: str) -> str:
    """Return the path of a user kernel's file for the worker; empty for any other kernel."""
    kernel = _user_kernels.get(name)
    return str(kernel.path) if kernel is not None else ""


def install(kernel: Kernel, path: Path) -> None:
    """Register the loaded kernel under its name, in a worker."""
    _user_kernels[kernel.id] = UserKernel(kernel, path)


def _fingerprint(path: Path) -> str:
    state = tuple((file.name, *file_version(file.stat())) for file in files_of(path))
    if _codes.get(path, (None, ""))[0] != state:
        _codes[path] = (state, fingerprint(path))
    return _codes[path][1]


def _request(request: KernelRequest, seconds: float) -> KernelReply:
    """Send the request to a separate process and return its reply. Raises Refused."""
    file = sanitise(Path(request.path).name)
    ended = ModuleProcess("fwtui.measure.user_kernel_process").finish(seconds, request)
    if ended.code is None:
        raise Refused(f"{file} takes more than {seconds:g} s to load; look for a loop that does not end")
    try:
        reply = msgspec.json.decode(ended.stdout, type=KernelReply)
    except msgspec.MsgspecError:
        raise Refused(f"{file} ended the process that loaded it ({ended.last_output}); check its import-time code") from None
    if reply.wrong:
        raise Refused(sanitise(reply.wrong))
    return reply


def _unbuilt(*_: object) -> NoReturn:
    raise ValueError("a user's kernel is built in a worker")


def _word(text: str) -> str:
    """Convert a text to a part of a kernel id."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())


def _clean(value: Any) -> Any:
    match value:
        case str():
            return sanitise(value)
        case dict():
            return {sanitise(key): _clean(inner) for key, inner in value.items()}
        case list():
            return [_clean(inner) for inner in value]
    return value
