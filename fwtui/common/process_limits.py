"""Resource limits of a process that runs a user's file, and the search for its descendants."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from fwtui.common.errors import Refused

if TYPE_CHECKING:  # importing it takes longer than most commands run
    import psutil

MARK = "FWTUI_PROCESSES"  # an environment variable, which all descendants of a marked process inherit
_ADDRESS_SPACE = 700_000  # KiB: with less, libraries fail to load, and OpenBLAS waits for memory without end
_TRIES = 100  # rounds of killing: a process may start others before it is killed


class ProcessLimits(NamedTuple):
    """Limits for a process tree; the defaults are those of a kernel test."""

    memory: float = 4.0  # GiB
    processes: int = 16  # at once: numba and CUDA start some for a moment
    output: int = 1024  # KiB on stderr

    def excess(self, process_tree: list[psutil.Process], printed: int) -> str:
        """Return the exceeded limit as a predicate for a message; empty if none is."""
        if printed > self.output * 1024:
            return f"prints more than {self.output} KiB, which is the limit"
        if len(process_tree) > self.processes:
            return f"starts more than {self.processes} processes, which is the limit"
        import psutil

        resident = 0
        for process in process_tree:
            with suppress(psutil.Error):
                resident += process.memory_info().rss
        return f"takes more than {self.memory:g} GiB of memory, which is the limit" if resident > self.memory * 2**30 else ""


def check_address_space() -> None:
    """Raise Refused if this process may use too little address space for numerical libraries."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed != resource.RLIM_INFINITY and allowed < _ADDRESS_SPACE * 1024:
        raise Refused(
            f"`ulimit -v` allows {allowed // 1024} KiB of address space, and libraries need {_ADDRESS_SPACE}; raise that limit"
        )


def check_process_list() -> None:
    """Raise Refused if processes cannot be listed: without the list, those of a user's file cannot be limited."""
    import psutil

    try:
        psutil.pids()
    except (OSError, IndexError):  # psutil raises one or the other without /proc
        raise Refused("the processes of a kernel test cannot be listed, and so not limited; mount /proc") from None


def new_mark() -> str:
    """Return a new mark for a child process, appended to the marks of this process."""
    return f"{os.environ.get(MARK, '')}:{os.urandom(8).hex()}"


def process_tree(pid: int) -> list[psutil.Process]:
    """Return the process and its descendants; descendants of a dead intermediate process are missing."""
    import psutil

    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def kill_tree(pid: int, mark: str, itself: bool = True) -> None:
    """Kill all descendants, in any session and with any parent, and with `itself` the process too."""
    import psutil

    for _ in range(_TRIES):
        left = [process for process in _marked(mark) if itself or process.pid != pid]
        if not left:
            return
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.01)


def _marked(mark: str) -> Iterator[psutil.Process]:
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if mark in process.environ().get(MARK, "") and process.status() != psutil.STATUS_ZOMBIE:
                yield process
