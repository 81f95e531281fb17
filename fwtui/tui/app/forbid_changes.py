"""A read-only process: an audit hook of the interpreter rejects every attempt to write files or start programs."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FILES = {f"os.{name}" for name in ("chflags", "chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink")}
_FILES |= {f"os.{name}" for name in ("setxattr", "removexattr", "truncate", "utime")}
_PROGRAMS = {"subprocess.Popen", "pty.spawn"}
_PROGRAMS |= {f"os.{name}" for name in ("exec", "fork", "forkpty", "posix_spawn", "spawn", "system")}
_OUTSIDE = {"socket.connect", "socket.bind", "os.kill", "os.killpg"}


def forbid_changes() -> None:
    """Make every change outside this process raise PermissionError, irrevocably."""
    sys.dont_write_bytecode = True
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: Sequence[object]) -> None:
    if event == "open":
        path, _, flags = arguments
        changes = not isinstance(path, int) and isinstance(flags, int) and bool(flags & _WRITES)
    else:
        changes = event in _FILES or event in _PROGRAMS or event in _OUTSIDE
    if changes:
        raise PermissionError(errno.EACCES, "this program is read-only")
