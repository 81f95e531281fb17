"""A clean end: a signal or a vanished terminal ends the program and its children, and the screen is restored.

Textual 8.2 leaves the terminal as it is for each of them (tests/faults/test_terminal.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import stat
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from fwtui.common.exit_codes import SIGNALLED
from fwtui.common.signals import SIGNALS, on_signals

STUCK_SECONDS = 0.7  # of running_clock() that the loop may take to hear of a signal
CLOSING_SECONDS = 2.0  # and then to end children and recordings
TICK_SECONDS = 0.05
POLL_SECONDS = 1.0
RESTORE_SECONDS = 0.2
# what Textual turns on: paste, wrapping, resize and mouse reports, focus, keyboard protocol, alternate screen, cursor
_RESTORE = (
    b"\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1016l\x1b[?1006l"
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)


def listen(leave: Callable[[int], None], last_resort: Callable[[], None] = lambda: None) -> None:
    """Call `leave(exit code)` in the running loop once for a signal or a vanished terminal.

    The process is gone within a second even if the loop is stuck, and within two more if a dead terminal blocks every
    writer to it: then `last_resort()` ends what must not stay behind, and the terminal is restored from outside the loop.
    A busy machine gives it longer. To be called in the main thread, before the terminal's modes are changed.
    """
    loop = asyncio.get_running_loop()
    attributes = _attributes()
    reading, tell = os.pipe()
    os.set_blocking(tell, False)
    # the interpreter writes the signal's number even while the loop is busy; the handlers only have to exist
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    on_signals(lambda *_: None)

    def watchdog() -> None:
        while not (numbers := [n for n in os.read(reading, 64) if n in SIGNALS]):
            pass
        code, answered = SIGNALLED + numbers[0], Event()

        def ask() -> None:
            answered.set()
            leave(code)

        try:
            loop.call_soon_threadsafe(ask)
        except RuntimeError:  # the loop has ended already
            answered.set()
        if _wait(answered, STUCK_SECONDS):
            _wait(Event(), CLOSING_SECONDS)
        try:
            last_resort()
            restore = Thread(target=_restore, args=(attributes,), name="restore", daemon=True)
            restore.start()
            restore.join(RESTORE_SECONDS)
        finally:
            os._exit(code)

    Thread(target=watchdog, name="watchdog", daemon=True).start()
    Thread(target=_watch, args=(tell,), name="terminal", daemon=True).start()


def running_clock() -> float:
    """Seconds on a clock that stops while the main thread waits for a processor, where the system counts that."""
    with contextlib.suppress(OSError):
        return time.monotonic() - int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    return time.monotonic()


def _wait(event: Event, seconds: float) -> bool:
    """Whether the event comes within those seconds of running_clock()."""
    end = running_clock() + seconds
    while not event.wait(TICK_SECONDS):
        if running_clock() > end:
            return False
    return True


def ignore_signals() -> None:
    """The program is ending, and nothing may interrupt that."""
    on_signals(signal.SIG_IGN)


def _watch(tell: int) -> None:
    """A terminal can vanish without a signal if SIGHUP is ignored, and so can a server; its descriptor shows it."""
    descriptor = _server() if "web" in os.environ.get("TEXTUAL_DRIVER", "").lower() else _descriptor()
    if descriptor < 0:
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # hang-ups and errors are always reported
    while not (found := poll.poll(1000 * POLL_SECONDS)):
        pass
    if found[0][1] & select.POLLNVAL:  # nothing that can be watched
        return
    os.write(tell, bytes([signal.SIGHUP]))


def _descriptor() -> int:
    """The terminal on standard input; -1 without one."""
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    except (OSError, ValueError):
        return -1
    return descriptor if descriptor >= 0 and os.isatty(descriptor) else -1


def _server() -> int:
    """The end here of what a server for web pages sends keys through; -1 where standard input is something else."""
    with contextlib.suppress(OSError):
        kind = os.fstat(0).st_mode
        return 0 if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) else -1
    return -1


def _attributes() -> list[object] | None:
    with contextlib.suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(_descriptor())
    return None


def _restore(attributes: list[object] | None) -> None:
    """Undo the modes, unless that has been done; may block forever on a terminal that accepts nothing."""
    if attributes is None or attributes == _attributes():
        return
    with contextlib.suppress(OSError, termios.error):
        termios.tcsetattr(_descriptor(), termios.TCSANOW, attributes)  # pyright: ignore[reportArgumentType]
        assert sys.__stderr__ is not None
        os.write(sys.__stderr__.fileno(), _RESTORE)
