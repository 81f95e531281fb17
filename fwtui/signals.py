"""The signals that ask a program to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked the program to end."""

    def __init__(self, signum: int):
        self.signum = signum


def on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Let the signals that ask a program to end go there."""
    for signum in SIGNALS:
        signal.signal(signum, handler)


class _Held:
    """How many times signals are held back now, and the first that came since."""

    depth = 0
    signum: int | None = None


def stop(signum: int, frame: FrameType | None) -> None:
    """Handler that raises Stopped, at once or where signals are not held back any more."""
    if not _Held.depth:
        raise Stopped(signum)
    _Held.signum = _Held.signum or signum


@contextmanager
def held() -> Iterator[None]:
    """What belongs together and takes no time is done whole before stop() raises.

    A signal mask would not do: whichever thread takes the signal, its handler runs in the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Held.depth += 1
    try:
        yield
    finally:
        _Held.depth -= 1
        if not _Held.depth and _Held.signum is not None:
            signum, _Held.signum = _Held.signum, None
            raise Stopped(signum)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Whatever handles these signals meanwhile, afterwards it is what did before."""
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
