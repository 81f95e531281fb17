"""Sessions on a pipe: written live and read as they arrive, with the same limits as files."""

from __future__ import annotations

import errno
import os
import select
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

from fwtui.common.errors import Refused, as_refused
from fwtui.sessions.reader import MAX_BYTES, MAX_LINES, Condition, LoadedSession, first_line
from fwtui.sessions.recorder import Recorder
from fwtui.stream.codec import MAX_LINE, Line
from fwtui.stream.events import Header

NAME = "standard input"
_CHUNK = 65536
_MIN_ROOM = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512  # bytes that a writable pipe accepts at once


class Outlet(Recorder):
    """A session written to a descriptor, which is never truncated or closed.

    `patience` is the time in seconds that a slow reader may block a write; None means until a signal arrives.
    """

    def __init__(
        self,
        descriptor: int,
        header: Header,
        write: Callable[[int, memoryview], int] = os.write,
        poll: Callable[[], select.poll] = select.poll,
    ) -> None:
        self.patience: float | None = None
        self._write, self._poll = write, poll
        super().__init__(Path("the stream"), descriptor, header)

    @property
    def unread(self) -> bool:
        """Return whether the reader has closed the pipe."""
        if isinstance(self.error, BrokenPipeError):
            return True
        if self._descriptor is None:
            return False
        poll = self._poll()
        poll.register(self._descriptor, 0)  # poll() always reports a closed reader
        return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))

    def _wait(self, descriptor: int) -> None:
        poll = self._poll()
        poll.register(descriptor, select.POLLOUT)
        if not poll.poll(None if self.patience is None else 1000 * self.patience):
            raise TimeoutError(errno.ETIMEDOUT, "its reader does not respond")

    def _put(self, descriptor: int, data: memoryview) -> int:
        return self._write(descriptor, data[:_MIN_ROOM])

    def _check_there(self, descriptor: int) -> None:
        pass

    def _take_back(self, descriptor: int) -> None:
        pass

    def _release(self) -> None:
        self._descriptor = None


class Inlet:
    """A session read from a descriptor, which may end anywhere: its complete lines in order."""

    def __init__(
        self,
        descriptor: int,
        name: str = NAME,
        most_bytes: int = MAX_BYTES,
        most_lines: int = MAX_LINES,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        self.name = name
        self.header: Header | None = None
        self.condition = Condition(most_lines=most_lines)
        self._most_bytes, self._read_some = most_bytes, read
        self.descriptor = descriptor

    def lines(self) -> Iterator[Line]:
        """Yield each complete line as it arrives, header first. Raises Refused if it is not a session or exceeds the limits."""
        yield from self.condition.whole_lines(self._chunks())
        if self.condition.cut:
            most = self.condition.whole + self.condition.damaged
            raise Refused(f"{self.name} has more than {most:,} lines, the limit for its size; record less telemetry")
        if self.header is None:
            first_line(self.name, b"")

    def snapshot(self, lines: list[Line]) -> LoadedSession:
        """Return the lines so far, as if the file ended here."""
        assert self.header is not None
        condition = self.condition
        return LoadedSession(
            condition.torn,
            condition.whole,
            condition.damaged,
            condition.duration,
            condition.end,
            condition.cut,
            header=self.header,
            lines=lines,
        )

    def _chunks(self) -> Iterator[bytes]:
        size, first, last = 0, b"", b"\n"
        while chunk := self._read():
            size += len(chunk)
            if self.header is None:
                first += chunk
                line, newline, _ = first[: MAX_LINE + 1].partition(b"\n")
                if newline or len(first) > MAX_LINE:
                    self.header = first_line(self.name, line if newline else b"")
            if size > self._most_bytes:
                raise Refused(
                    f"{self.name} has more than {self._most_bytes} bytes, the limit for a session; record less telemetry"
                )
            last = chunk[-1:]
            yield chunk
        self.condition.torn = last != b"\n"

    def _read(self) -> bytes:
        with as_refused(f"{self.name} cannot be read", "pipe a session into it"):
            return self._read_some(self.descriptor, _CHUNK)


class Listener:
    """An inlet read by a separate thread; `take()` never waits."""

    def __init__(self, inlet: Inlet) -> None:
        self.inlet = inlet
        self.over = False  # take() has returned everything
        self.refusal = ""  # the reason if reading ended before the session
        self._lines: deque[Line] = deque()
        self._silent = Event()
        Thread(target=self._listen, name="stream", daemon=True).start()

    def take(self) -> list[Line]:
        """Return the lines that arrived since the last call."""
        silent = self._silent.is_set()
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        self.over = silent
        return lines

    def _listen(self) -> None:
        try:
            self._lines.extend(self.inlet.lines())
        except Refused as refusal:
            self.refusal = str(refusal)
        finally:
            self._silent.set()


def piped(descriptor: int) -> Inlet:
    """Return standard input as a session. Raises Refused for a terminal."""
    if os.isatty(descriptor):
        raise Refused("there is no session on standard input; pipe one into it: fwtui run --stream | fwtui replay -")
    return Inlet(descriptor)
