"""Whether a kernel's files were saved, found by looking at them again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

from fwtui_kernels.own import files_of

EVERY = 0.05  # seconds between two looks
State = tuple[tuple[str, int, int], ...]


class Watched:
    """A kernel's file and those beside it; until the first take() they count as changed."""

    def __init__(self, path: Path, sleep: Callable[[float], object] = time.sleep):
        self.path = path
        self._sleep = sleep
        self._taken: State = ()

    @property
    def changed(self) -> bool:
        """Whether the files differ from those of the last take(). False while the file is missing, as many editors save."""
        state = self._state()
        return bool(state) and state != self._taken

    def take(self) -> None:
        """Remember the files as they are now."""
        self._taken = self._state()

    def wait(self, ended: Event) -> bool:
        """Wait until the files have changed and are at rest, and take them; returns False if `ended` is set first."""
        while not ended.is_set():
            state = self._state()
            self._sleep(EVERY)
            # a file that is still being written differs at the next look
            if state and state != self._taken and state == self._state():
                self._taken = state
                return True
        return False

    def _state(self) -> State:
        try:
            return tuple((file.name, s.st_mtime_ns, s.st_size) for file in files_of(self.path) if (s := file.stat()))
        except OSError:
            return ()


class Saved(Event):
    """What stops a judgement: the next save, an explicit stop, or the end of the program."""

    def __init__(self, watched: Watched, ended: Event):
        super().__init__()
        self._watched, self._ended = watched, ended

    def is_set(self) -> bool:
        return super().is_set() or self._ended.is_set() or self._watched.changed
