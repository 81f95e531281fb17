"""The program in a pseudo-terminal for benchmarks, with the time from a key to its output."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence

KEPT = 200_000  # bytes of what was written last
FWTUI = ("-m", "fwtui")


class Terminal:
    """A terminal of 120x40. Its output is read while the benchmark waits; unread output would block the program."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str] | None = None):
        """`words`: after `python -P`; variables that are empty in `environment` are left out."""
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})})
            for name in [name for name, value in (environment or {}).items() if not value]:
                del os.environ[name]
            os.execv(sys.executable, [sys.executable, "-P", *words])
        self._seen = bytearray()
        self.resize(40, 120)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def rest(self, seconds: float, until: bytes = b"") -> float | None:
        """Read for so long, or until these bytes come; how long that took, and None where they do not come."""
        begun = time.monotonic()
        self._seen.clear()
        while (left := begun + seconds - time.monotonic()) > 0:
            if select.select([self._descriptor], [], [], left)[0]:
                got = os.read(self._descriptor, 65536)
                self._seen += got
                if until and until in self._seen:
                    return time.monotonic() - begun
                del self._seen[:-KEPT]
        return None

    def close(self) -> int:
        """End it by SIGTERM, and return its exit code."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
            while os.read(self._descriptor, 65536):
                pass
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
