"""What is compiled, and what this process has spent without it, decide how a graph of everyday size is solved.

NumPy answers the first call. Compiled code that is on the disk is loaded with the second one, or before a call in which NumPy
would take longer than loading; where graphs are tiny, once NumPy has cost as much. If there is none, and NumPy has cost more than
a moment, another process compiles it, with the lowest priority, and a later call finds it. Nothing runs in a thread, so that the
process can fork and end at any time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fwtui.common.atomic_file import whole_file
from fwtui.common.child_process import python
from fwtui.common.environment import cache_folder, lasting
from fwtui_kernels.compiled import cubin_cache

if TYPE_CHECKING:
    from fwtui.solver.result import Stats
    from fwtui_kernels.one_core import OneCore

MOST = 1536  # vertices of a graph that one core solves sooner than two do with all that numba's threads need
LOADING = 0.1  # seconds, with the import of llvmlite
WORTH_STANDING = 768  # vertices from which a GPU pays that this process has already used
LOADING_ON_GPU = 0.3  # seconds for the kernels of another size
_LEAST = 48  # vertices; of smaller graphs it takes hundreds of calls to make up for loading
PATIENCE = 1.0  # seconds of NumPy after which compiling for later calls pays
_NUMPY_RELAXATION = 2e-10  # seconds, at least
_NAME, _ENDING = "one-core-", ".code"
_MOST_BYTES = 1 << 20  # a larger file is not from this program


class SmallGraphCode:
    """The compiled code of a process, as far as it is loaded, for graphs of up to `most` vertices.

    After `patience` seconds of NumPy it is compiled for later calls.
    """

    def __init__(self, compile_for_later: Callable[[], None], most: int = MOST, patience: float = PATIENCE) -> None:
        self.most, self.patience, self._compile_for_later = most, patience, compile_for_later
        self._code: OneCore | None = None
        self._again = False  # whether there was a call before
        self._spent = 0.0
        self._beside_gpu = 0.0
        self._tried = 0  # when code was written that could not be loaded
        self._compiles = False

    @property
    def gpu_pays(self) -> bool:
        """Whether calls that a GPU could have answered have cost more than loading its kernels for them."""
        return self._beside_gpu > LOADING_ON_GPU

    def ready(self, n: int) -> OneCore | None:
        """The code for a call with n vertices, loaded if that pays; None: NumPy answers it."""
        if self._code is None:
            again, self._again = self._again, True
            if (again and n >= _LEAST) or self._spent + n**3 * _NUMPY_RELAXATION > LOADING:
                self._load()
        return self._code

    def took(self, stats: Stats) -> None:
        """Take note of a call on the CPU that named no kernel."""
        spent = stats.seconds.get("kernels", 0.0)
        if stats.n >= WORTH_STANDING:
            self._beside_gpu += spent
        if stats.n <= self.most and self._code is None:
            self._spent += spent
            if self._spent > self.patience and not self._compiles:
                self._compiles = True
                self._compile_for_later()

    def _load(self) -> None:
        written = _written()
        if written != self._tried:
            self._tried = written
            self._code = load()


def path(suits: str) -> Path:
    """The compiled code of this version of the program for such a machine; others may share the folder."""
    return cache_folder() / f"{_NAME}{zlib.crc32(suits.encode()):08x}{_ENDING}"


def load() -> OneCore | None:
    """The code that is kept for such a machine; None if there is none, or none that can be used."""
    try:
        from fwtui_kernels.compiled.object_code import suits
        from fwtui_kernels.one_core import OneCore

        code = cubin_cache.unsealed(path(suits()), suits(), _MOST_BYTES)
        return None if code is None else OneCore(code)
    except (ImportError, OSError, RuntimeError):  # LLVM is missing or damaged, or does not know the processor or the code
        return None


def compile_and_keep() -> None:
    """Compile the code in this process, which takes seconds and brings numba. Raises Refused if it cannot be written."""
    from fwtui_kernels.compiled.one_core_aot import compiled

    keep(compiled())


def keep(code: bytes) -> None:
    """Keep what was compiled on this machine. Raises Refused if it cannot be written."""
    from fwtui_kernels.compiled.object_code import suits

    with whole_file(path(suits())) as file:
        os.fchmod(file.fileno(), 0o600)  # whatever the umask: what others could write must not be run
        file.write(cubin_cache.sealed(suits(), code))


def compile_for_later() -> None:
    """Have a process of the lowest priority do that; nobody waits for it."""
    if lasting() and sys.executable:
        with suppress(OSError):
            # by a shell, which ends at once: so the process is no child of this one, and this one's waits never see it
            detached = ["sh", "-c", 'nice -n 19 "$@" &', "sh", *python("fwtui.solver.compile_code")]
            nowhere = subprocess.DEVNULL
            subprocess.run(detached, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, check=False)


def _written() -> int:
    """When code was written last, for whichever machine; 0 if there is none. Asking for which one takes longer."""
    with suppress(OSError):
        return max((file.stat().st_mtime_ns for file in cache_folder().glob(f"{_NAME}*{_ENDING}")), default=0)
    return 0


everyday = SmallGraphCode(compile_for_later)
