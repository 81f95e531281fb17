"""The program in a pseudo-terminal, with its output, exit code and remaining child processes."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import psutil

# alternate screen, three mouse modes, bracketed paste, cursor, focus reports, keyboard protocol
RESTORED = (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l", b"\x1b[?25h", b"\x1b[<u", b"\x1b[?1004l")


class PtyRun:
    """`python -P -m fwtui ...` in a terminal of 100 x 30; `controlling` decides whether a hang-up becomes a SIGHUP."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        controlling: bool = True,
        folder: str | os.PathLike[str] | None = None,
    ):
        self.output = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.attributes = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "fwtui", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal if controlling else None,
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
        )
        self.terminal = slave
        self.children: list[psutil.Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.vanish()

    def read_until(self, wanted: bytes, seconds: float = 120.0) -> None:
        """Read what it writes until this is among it."""
        deadline = time.monotonic() + seconds
        while wanted not in self.output:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"{wanted!r} did not come; the end of what came: {self.output[-500:]!r}")
            self.read(0.05)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def wait_for_child(self, name: str, seconds: float = 120.0) -> None:
        """Wait for a child process whose command line names this module."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.02)
            self.children = psutil.Process(self.process.pid).children(recursive=True)
            for child in self.children:
                with contextlib.suppress(psutil.Error):
                    if name in child.cmdline():
                        return
        raise AssertionError(f"there is no child {name}")

    def kill(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        self.children = psutil.Process(self.process.pid).children(recursive=True)
        self.output = b""
        os.kill(self.process.pid, number)
        self.wait()

    def wait(self, seconds: float = 120.0) -> None:
        """Wait for the end of the process; the limit is for hangs."""
        begun = time.monotonic()
        while self.process.poll() is None and time.monotonic() < begun + seconds:
            self.read(0.02)
        assert self.process.poll() is not None, f"it lives on after {seconds} s"
        while self.read(0.0):
            pass

    def assert_left_well(self, code: int) -> None:
        """Check the exit code, that all terminal modes are restored, and that no child is left."""
        assert self.process.returncode == code
        assert [mode for mode in RESTORED if mode not in self.output] == []
        assert termios.tcgetattr(self.terminal) == self.attributes
        assert self.orphans == []

    def vanish(self) -> None:
        """Close the terminal, as a lost connection does."""
        for descriptor in (self._master, self.terminal):
            if descriptor >= 0:
                os.close(descriptor)
        self._master = self.terminal = -1

    @property
    def orphans(self) -> list[psutil.Process]:
        """Return child processes that outlive the program by several seconds."""
        _, alive = psutil.wait_procs(self.children, timeout=60.0)
        return [child for child in alive if child.status() != psutil.STATUS_ZOMBIE]

    def read(self, seconds: float) -> bool:
        if self._master < 0:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):
                self.output += os.read(self._master, 65536)
        return bool(ready)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
