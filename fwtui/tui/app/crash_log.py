"""Errors of the screens: each is logged in a file, and the screen that failed is drawn again."""

from __future__ import annotations

import os
import platform
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from textual import __version__ as textual_version
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from fwtui.common.errors import Failed, Refused
from fwtui.common.version import __version__
from fwtui.sessions.folders import own_folder
from fwtui.tui.frame import bindings
from fwtui.tui.frame.frame import FAILED, Frame
from fwtui.tui.frame.view import View

MAX_FILES = 20  # log files of earlier programs
MAX_LOGGED = 100  # logged errors of one program
MAX_DRAWN = 3  # times that a screen is drawn again within WITHIN seconds
WITHIN = 10.0


def folder() -> Path:
    return own_folder().with_name("errors")


class CrashLog:
    """The errors of this program, in one file that the first error creates."""

    def __init__(self) -> None:
        self.path = folder() / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
        self._count = 0
        self._failed: dict[str, list[float]] = {}  # when each place failed

    def write(self, error: BaseException) -> str:
        """Log an error without the values of variables; return its sentence or name, and the path of the file. Never raises."""
        self._count += 1
        now = datetime.now(UTC).isoformat(timespec="seconds")
        name = str(error) if isinstance(error, Refused | Failed) else type(error).__name__
        if self._count > MAX_LOGGED:
            return f"{name}; {self._count} errors so far, details of the first {MAX_LOGGED} in {self.path}"
        with suppress(OSError):  # a full disk, or a read-only program
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._count == 1:
                for old in sorted(self.path.parent.glob("*.txt"))[: 1 - MAX_FILES]:
                    old.unlink()
            with self.path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                versions = f"fwtui {__version__}, Textual {textual_version}, Python {platform.python_version()}"
                file.write(f"{now} {versions}\n{''.join(traceback.format_exception(error))}\n")
            return f"{name}; details in {self.path}"
        return name

    def hopeless(self, place: str) -> bool:
        """Count a failure of the screen; return True if it has failed too often to be drawn again."""
        now = time.monotonic()
        recent = [*(then for then in self._failed.get(place, ()) if now - then < WITHIN), now]
        self._failed[place] = recent
        return len(recent) > MAX_DRAWN


class FailedPlace(Frame):
    """The replacement of a screen that cannot be shown."""

    DEFAULT_CSS = "FailedPlace #body { padding: 1 2; }"
    BINDINGS: ClassVar = [*bindings.SHARED]
    STRIP = False

    def __init__(self, view: View, place: str, what: str):
        self.PLACE = place  # type: ignore[misc]
        self._text = (
            f"This screen cannot be shown: {what}.\n\n"
            "Runs and recordings continue, and the other screens work. Press the key of this screen to try again."
        )
        super().__init__(view)
        self.add_class(FAILED, update=False)

    def body(self) -> ComposeResult:
        with VerticalScroll(id="body"):
            yield Static(Content(self._text), markup=False)

    def show(self) -> None:
        pass
