"""A clean end: after a signal or the loss of the terminal, the program and its children end, and the terminal is restored.

Textual 8.2 restores the terminal in neither case (tests/faults/test_terminal.py).
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

STUCK_SECONDS = 0.7  # time limit of the event loop to react to a signal, by running_clock()
CLOSING_SECONDS = 2.0  # then for ending children and recordings
TICK_SECONDS = 0.05
POLL_SECONDS = 1.0
RESTORE_SECONDS = 0.2
# undoes Textual's modes: paste, wrapping, resize and mouse reports, focus, keyboard protocol, alternate screen, cursor
_RESTORE = (
    b"\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1016l\x1b[?1006l"
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)


def listen(leave: Callable[[int], None], last_resort: Callable[[], None] = lambda: None) -> None:
    """Call `leave(exit code)` once in the running loop after a signal or the loss of the terminal.

    If the loop does not react within STUCK_SECONDS, or does not end within CLOSING_SECONDS, `last_resort()` ends the children,
    the terminal is restored from another thread, and the process exits. The limits count only time in which the main thread
    could run. Call this in the main thread, before the modes of the terminal are changed.
    """
    loop = asyncio.get_running_loop()
    attributes = _attributes()
    reading, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    # the interpreter writes the number of the signal even while the loop is busy, if there is any handler
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    on_signals(lambda *_: None)

    def watchdog() -> None:
        while not (numbers := [n for n in os.read(reading, 64) if n in SIGNALS]):
            pass
        code, answered = SIGNALLED + numbers[0], Event()

        def leave_now() -> None:
            answered.set()
            leave(code)

        try:
            loop.call_soon_threadsafe(leave_now)
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
    Thread(target=_watch, args=(wakeup,), name="terminal", daemon=True).start()


def running_clock() -> float:
    """Return seconds on a clock that stops while the main thread waits for a processor, on systems that count that."""
    with contextlib.suppress(OSError):
        return time.monotonic() - int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    return time.monotonic()


def _wait(event: Event, seconds: float) -> bool:
    """Wait up to that many seconds of running_clock(); return True if the event was set."""
    end = running_clock() + seconds
    while not event.wait(TICK_SECONDS):
        if running_clock() > end:
            return False
    return True


def ignore_signals() -> None:
    """Ignore signals while the program ends."""
    on_signals(signal.SIG_IGN)


def _watch(wakeup: int) -> None:
    """Report the loss of the terminal or the web server as SIGHUP: if SIGHUP is ignored, only the descriptor shows it."""
    descriptor = _server() if "web" in os.environ.get("TEXTUAL_DRIVER", "").lower() else _descriptor()
    if descriptor < 0:
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # hang-ups and errors are always reported
    while not (found := poll.poll(1000 * POLL_SECONDS)):
        pass
    if found[0][1] & select.POLLNVAL:  # cannot be polled
        return
    os.write(wakeup, bytes([signal.SIGHUP]))


def _descriptor() -> int:
    """Return the descriptor of the terminal on standard input; -1 if there is none."""
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    except (OSError, ValueError):
        return -1
    return descriptor if descriptor >= 0 and os.isatty(descriptor) else -1


def _server() -> int:
    """Return the descriptor through which a web server sends keys; -1 if standard input is neither pipe nor socket."""
    with contextlib.suppress(OSError):
        kind = os.fstat(0).st_mode
        return 0 if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) else -1
    return -1


def _attributes() -> list[object] | None:
    with contextlib.suppress(OSError, ValueError, termios.error):
        return termios.tcgetattr(_descriptor())
    return None


def _restore(attributes: list[object] | None) -> None:
    """Undo the modes if necessary; may block forever on a terminal that accepts no output."""
    if attributes is None or attributes == _attributes():
        return
    with contextlib.suppress(OSError, termios.error):
        termios.tcsetattr(_descriptor(), termios.TCSANOW, attributes)  # pyright: ignore[reportArgumentType]
        assert sys.__stderr__ is not None
        os.write(sys.__stderr__.fileno(), _RESTORE)
