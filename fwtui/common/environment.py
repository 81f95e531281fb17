"""A worker's environment: variables that numba and CUDA read on import."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import stat
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from fwtui.common.errors import Refused, os_error_reason
from fwtui.common.text import quoted
from fwtui.common.user_folders import cache_folder
from fwtui_kernels.compiled import SIMULATOR

_THREADS = "NUMBA_NUM_THREADS"
_MONTH = 30 * 24 * 3600  # seconds
CACHE_ROOM = 32 * 2**20  # bytes needed for compiled kernels
_CACHE_FILE = 2**20  # bytes that every compiled function fits into
RAISE_LIMIT = "raise the limit of file sizes, which `ulimit -f` shows in KiB"
_ELSEWHERE = "set XDG_CACHE_HOME to a folder that you can write to"


def worker_environment(kind: str) -> Mapping[str, str]:
    """Return variables that numba reads on import. Raises Refused if the user has set one to an invalid value."""
    check_threads()
    return {
        "NUMBA_CACHE_DIR": str(code_cache().folder or ""),  # empty: each process compiles for itself
        "OPENBLAS_NUM_THREADS": "1",  # NumPy starts a thread per core on import, and this program multiplies no matrices with it
        "OMP_WAIT_POLICY": "passive",  # threads that spin at a barrier starve others on shared cores
        "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",  # one-block launches are the algorithm here
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # GPU numbers then match NVML's
        "NUMBA_DISABLE_JIT": "0",  # loops on all cores run only as compiled code
        "NUMBA_ENABLE_CUDASIM": "0",  # numba's own simulator, which the user may have enabled, compiles nothing
        SIMULATOR: "1" if kind == "simulator" else "0",
    }


def check_threads() -> None:
    """Raise Refused if the user has set a number of threads with which numba cannot be imported."""
    threads = os.environ.get(_THREADS, "")
    if threads.lstrip("+-").isdecimal() and int(threads) < 1:
        raise Refused(f"{_THREADS} is {quoted(threads)}, but compiled kernels need at least one; set 1 or more, or unset it")


class CodeCache(NamedTuple):
    """The folder of compiled kernels, which outlives a run of the program; None with a reason if it is unusable."""

    folder: Path | None
    reason: str = ""
    fix: str = ""


@cache
def code_cache() -> CodeCache:
    """Return the cache folder of compiled kernels, which only this user can write to."""
    root = cache_folder()
    folder = root / "numba" / edition()
    try:
        if not folder.exists():
            _forget_old_editions(folder.parent)
        _make_private(folder, root)
        if (writable := writable_by_others(folder)) is not None:
            owner = "belongs to another user" if writable.stat().st_uid not in (0, os.getuid()) else "is writable by other users"
            fix = f"chmod go-w {shlex.quote(str(writable))}, or set XDG_CACHE_HOME to another folder"
            return CodeCache(None, f"{writable} {owner}, who could change the code that is run", fix)
        if not os.access(folder, os.W_OK):
            return CodeCache(None, f"{folder} cannot be written", _ELSEWHERE)
        if reason := file_limit():
            return CodeCache(None, reason, RAISE_LIMIT)
        if (free := shutil.disk_usage(folder).free) < CACHE_ROOM:
            reason = f"{folder} has {free >> 20} MiB of free space, and at least {CACHE_ROOM >> 20} MiB are needed"
            return CodeCache(None, reason, "free some space, or set XDG_CACHE_HOME to another folder")
    except OSError as error:
        return CodeCache(None, f"{error.filename or folder} cannot be used: {os_error_reason(error)}", _ELSEWHERE)
    return CodeCache(folder)


def file_limit() -> str:
    """Return the limit of this process as a sentence if it is too small for compiled functions and recordings; else empty."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return f"no file may have more than {most:,} bytes" if 0 <= most < _CACHE_FILE else ""


def _make_private(folder: Path, root: Path) -> None:
    """Create the folder and its parents for this user only; make this program's folders, from `root` on, private."""
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)
        # a folder that others could write to is not repaired: it may already contain their files
        elif path.is_relative_to(root) and path != folder and _open_to_others(path) and path.stat().st_uid == os.getuid():
            path.chmod(0o700)


def writable_by_others(folder: Path) -> Path | None:
    """Return the first folder on the path in which a user other than root or this one could replace an entry."""
    folder = folder.absolute()
    for path in dict.fromkeys((folder, *folder.parents, *folder.resolve().parents)):
        state = path.stat()
        owners = (os.getuid(),) if path == folder else (os.getuid(), 0)
        sticky = path != folder and state.st_mode & stat.S_ISVTX  # a folder like /tmp: users can replace only their own files
        if state.st_uid not in owners or (_open_to_others(path) and not sticky):
            return path
    return None


def _open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _forget_old_editions(editions: Path) -> None:
    """Remove the folders of other program versions to which nothing was added for a month."""
    long_ago = time.time() - _MONTH
    with suppress(OSError):  # no such folder yet, or another process removes them too
        for folder in editions.iterdir():
            if all(path.stat().st_mtime < long_ago for path in [folder, *filter(Path.is_file, folder.rglob("*"))]):
                shutil.rmtree(folder, ignore_errors=True)


@cache
def edition() -> str:
    """Return a name that changes with any source file of compiled code: numba itself checks only the file of each function."""
    program, ladder = Path(__file__).parents[1], find_spec("fwtui_kernels")
    folders = [program / "engine", program / "graphs", program / "solver"]
    folders += map(Path, (ladder and ladder.submodule_search_locations) or ())
    sources = [(folder, path) for folder in folders for path in sorted(folder.rglob("*.py"))]
    states = [(str(path.relative_to(folder.parent)), path.stat().st_size, path.stat().st_mtime_ns) for folder, path in sources]
    return f"{zlib.crc32(repr(states).encode()):08x}"
