"""Leaving well: a signal, or a terminal that is gone, ends the program with its children, and the screen is restored."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from threading import Thread

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
WATCHDOG_SECONDS = 2.0
POLL_SECONDS = 1.0


def listen(leave: Callable[[int], None]) -> None:
    """Call `leave(exit code)` in the running loop once for a signal or a vanished terminal.

    Whatever happens then, the process is gone two seconds later: a dead terminal can block every writer to it.
    """
    loop = asyncio.get_running_loop()
    left = False

    def go(code: int) -> None:
        nonlocal left
        if not left:
            left = True
            Thread(target=_end, args=(code,), name="watchdog", daemon=True).start()
            leave(code)

    for number in SIGNALS:
        loop.add_signal_handler(number, go, 128 + number)
    Thread(target=_watch, args=(loop, go), name="terminal", daemon=True).start()


def _end(code: int) -> None:
    time.sleep(WATCHDOG_SECONDS)
    os._exit(code)


def _watch(loop: asyncio.AbstractEventLoop, go: Callable[[int], None]) -> None:
    """A terminal can vanish without a signal, where SIGHUP is ignored; its descriptor then says so."""
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    except (OSError, ValueError):
        return
    if descriptor < 0 or not os.isatty(descriptor):
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # hang-ups and errors are told unasked
    while not poll.poll(1000 * POLL_SECONDS):
        pass
    try:
        loop.call_soon_threadsafe(go, 128 + signal.SIGHUP)
    except RuntimeError:  # the loop has ended already
        return
