"""Work in a process of its own, which alone is told when somebody wants to stop: compiled code and SciPy stay there."""

from __future__ import annotations

import os
import subprocess
import sys

from fwtui.common.environment import worker_environment
from fwtui.common.signals import handlers_kept, masked, on_signals


def apart(module: str, *arguments: str) -> int:
    """The exit code of `python -P -m MODULE ARGUMENTS`, which calls `let_in`."""
    with handlers_kept():
        with masked():
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments], env={**os.environ, **worker_environment("real")}
            )
            on_signals(lambda signum, _: child.send_signal(signum))
        code = child.wait()
    return code if code >= 0 else 128 - code
