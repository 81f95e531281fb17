"""A worker's environment: variables that numba and CUDA read on import."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import platformdirs

_MONTH = 30 * 24 * 3600  # seconds
CACHE_ROOM = 32 * 2**20  # bytes needed for compiled kernels


def worker_environment(kind: str) -> Mapping[str, str]:
    """Variables that numba reads on import."""
    return {
        # numba unpickles compiled CPU kernels, so only this user may write to their folder
        "NUMBA_CACHE_DIR": str(cache_folder()),
        "OPENBLAS_NUM_THREADS": "1",  # NumPy starts one on each core at its import, and nothing here multiplies matrices
        "OMP_WAIT_POLICY": "passive",  # threads that spin at a barrier starve others on shared cores
        "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",  # one-block launches are the algorithm here
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that a GPU has the same number here and in NVML
        "NUMBA_ENABLE_CUDASIM": "1" if kind == "simulator" else "0",
    }


@cache
def cache_folder() -> Path:
    """Where compiled kernels are kept between runs of the program; a private temporary folder if there is no room."""
    folder = platformdirs.user_cache_path("fwtui") / "numba" / _edition()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= CACHE_ROOM:
            return folder
    except OSError:
        pass
    own = tempfile.mkdtemp(prefix="fwtui-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def lasting() -> bool:
    """Whether the folder of compiled kernels stays when this process ends."""
    return cache_folder().is_relative_to(platformdirs.user_cache_path("fwtui"))


def forget_old_editions() -> int:
    """Remove what other versions of the program have compiled and not added to for a month; returns the bytes."""
    freed, long_ago = 0, time.time() - _MONTH
    for folder in cache_folder().parent.iterdir() if lasting() else ():
        with suppress(OSError):  # another process does the same
            files = [path for path in folder.rglob("*") if path.is_file()]
            if folder != cache_folder() and all(path.stat().st_mtime < long_ago for path in [folder, *files]):
                freed += sum(path.stat().st_size for path in files)
                shutil.rmtree(folder, ignore_errors=True)
    return freed


def compiled_before() -> bool:
    """Whether this version has already compiled a CPU kernel for this user, not just the graph generator."""
    return any(cache_folder().rglob("k[0-9]*.nbi"))


def _edition() -> str:
    """Changes with any source file of compiled code: numba itself checks only the file of each function."""
    program, ladder = Path(__file__).parents[1], find_spec("fwtui_kernels")
    folders = [program / "engine", program / "graphs", program / "solver"]
    folders += map(Path, (ladder and ladder.submodule_search_locations) or ())
    sources = [(folder, path) for folder in folders for path in sorted(folder.rglob("*.py"))]
    states = [(str(path.relative_to(folder.parent)), path.stat().st_size, path.stat().st_mtime_ns) for folder, path in sources]
    return f"{zlib.crc32(repr(states).encode()):08x}"
