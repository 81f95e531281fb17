"""Which of several processes ended first."""

from __future__ import annotations

import os
import select
from contextlib import ExitStack, suppress


class FirstEnd:
    """Finds the process that ended first: each opens one of `paths` for writing, and keeps it open until its end.

    They are pipes, and epoll keeps the order in which they close (Linux only; elsewhere `paths` is empty). Raises OSError if
    no more files can be opened.
    """

    def __init__(self, processes: int):
        self.paths: list[str] = []
        self._process_of: dict[int, int] = {}  # by the end that is read
        self._all, self._write_ends = ExitStack(), ExitStack()
        self._closings: select.epoll | None = None
        if not hasattr(select, "epoll"):
            return
        with self._all as undo:
            undo.push(self._write_ends)
            for process in range(processes):
                read, write = os.pipe()
                undo.callback(os.close, read)
                self._write_ends.callback(os.close, write)
                self._process_of[read] = process
                self.paths.append(f"/proc/{os.getpid()}/fd/{write}")
            self._all = undo.pop_all()

    def watch(self) -> None:
        """Begin: all processes have opened theirs. Without room for what that needs, none is ever found."""
        self._write_ends.close()
        if self.paths:
            with suppress(OSError):
                closings = self._all.enter_context(select.epoll())
                for read in self._process_of:
                    closings.register(read, select.EPOLLHUP)
                if not closings.poll(0):  # no pipe has closed yet, so every process did open its own
                    self._closings = closings

    def found(self) -> int | None:
        """The number of the process that ended first, if one has."""
        ended = self._closings.poll(0) if self._closings is not None else []
        return self._process_of[ended[0][0]] if ended else None

    def close(self) -> None:
        self._closings = None
        self._all.close()
