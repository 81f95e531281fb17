"""What a child process does about its parent: it does not outlive it."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends, where it can (Linux, prctl(2)).

    Children also see the end of their stdin, but not while one long call, such as SciPy's, holds the interpreter.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
