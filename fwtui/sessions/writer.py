"""The one way to write a session: a header, lines, and an end that counts them. The same bytes go into files and pipes."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fwtui.common.atomic_file import sync
from fwtui.common.errors import why
from fwtui.common.signals import held
from fwtui.common.text import clean
from fwtui.stream.codec import encode
from fwtui.stream.events import End

_BLOCK = 65536  # bytes of copied lines that are written at once


class SessionWriter:
    """One session being written.

    Every write is unbuffered, so accepted lines survive the death of this process; the end is also synced to disk. The
    first failure ends the session for good: what was partly written is cut off, `failure` says why, and `error` is its
    cause. Nothing else is raised but Stopped, after which the rest of an unfinished line is written before the next one.
    """

    began = 0.0  # session time at the time 0 of what is written

    def __init__(self, path: Path, descriptor: int, header: bytes, t: float = 0.0) -> None:
        """`header` is its first line, newline included, of time `t`; the descriptor is closed with the session."""
        self.path = path
        self.failure: str | None = None
        self.error: OSError | None = None
        self.bytes = 0
        self.events = 0  # lines written, header included
        self._descriptor: int | None = descriptor
        with suppress(OSError):  # best effort: there may be no locks, or the file may be locked already
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._latest = t
        self._rest = memoryview(b"")  # of the unfinished lines
        self._size = self._lines = 0  # of the unfinished lines: bytes, and how many there are
        self._append(header)

    def add(self, raw: bytes, t: float) -> None:
        """Write one sealed line, newline included, of time `t`."""
        self._append(raw)
        self._latest = max(self._latest, t)

    def copy(self, lines: Iterable[tuple[bytes, float]]) -> None:
        """Write many sealed lines, without their newlines, and their times. Raises OSError at the first failure."""
        block, size = [], 0
        for raw, t in lines:
            block.append(raw)
            size += len(raw)
            self._latest = max(self._latest, t)
            if size > _BLOCK:
                self._put_block(block)
                size = 0
        self._put_block(block)

    def _put_block(self, block: list[bytes]) -> None:
        if block:
            self._append(b"\n".join([*block, b""]), len(block))
            block.clear()
        if self.error is not None:
            raise self.error

    def close(self, reason: str = "closed", dropped: int = 0, t: float | None = None) -> None:
        """Write the end, unless the recording failed, and close the file; a second call does nothing.

        `dropped` counts events lost before they arrived here; `t` is the end's time on the clock of the session, by default
        that of the last line.
        """
        if self._descriptor is None:
            return
        latest = self._latest if t is None else max(t - self.began, self._latest)
        self._finish()
        self._append(encode(End(t=latest, reason=reason, events=self.events, dropped=dropped)))
        self._sync()
        self._release()

    def discard(self) -> None:
        """Delete the file."""
        self._release()
        with suppress(OSError):
            self.path.unlink()

    def _append(self, data: bytes, lines: int = 1) -> None:
        self._finish()
        if self._descriptor is None:
            return
        self._size, self._lines = len(data), lines
        self._rest = memoryview(data)
        self._finish()

    def _finish(self) -> None:
        """Write the rest of the unfinished lines, and count them; a signal may come between their parts."""
        try:
            while self._rest and self._descriptor is not None:
                self._wait(self._descriptor)
                with held():
                    # a full disk accepts a part silently and reports the error on the next write
                    written = self._put(self._descriptor, self._rest)
                    if not written:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    self._rest = self._rest[written:]
                    if not self._rest:
                        self.bytes += self._size
                        self.events += self._lines
        except OSError as error:
            self._fail(error)

    def _wait(self, descriptor: int) -> None:
        """Wait until some bytes can be written. Raises OSError."""

    def _put(self, descriptor: int, data: memoryview) -> int:
        """Write some of the bytes; return how many. Raises OSError."""
        return os.write(descriptor, data)

    def _check_there(self, descriptor: int) -> None:
        """Raises OSError if the file was deleted meanwhile."""
        if not os.fstat(descriptor).st_nlink:
            raise FileNotFoundError(errno.ENOENT, f"{clean(self.path.name)} was deleted")

    def _take_back(self, descriptor: int) -> None:
        """Cut what is partly written off the file. Raises OSError."""
        os.ftruncate(descriptor, self.bytes)

    def _sync(self) -> None:
        if self._descriptor is None:
            return
        try:
            self._check_there(self._descriptor)
            sync(self._descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a pipe or a device has nothing to sync
                self._fail(error)

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.close(descriptor)
            except OSError as error:  # a network file system may report a full disk only now
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self.failure is not None:
            return
        self.error = error
        deleted = isinstance(error, FileNotFoundError)
        kept = "" if deleted else f", {self.events} events kept in {clean(self.path.name)}"
        self.failure = f"recording stopped: {why(error)}{kept}"
        if self._descriptor is not None:
            with suppress(OSError):
                self._take_back(self._descriptor)
            self._release()


def in_use(path: Path) -> bool:
    """Whether a recorder of any process is writing it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False
