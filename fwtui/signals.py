"""The signals that ask a program to end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asked the program to end."""

    def __init__(self, signum: int):
        self.signum = signum


def on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Let the signals that ask a program to end go there."""
    for signum in SIGNALS:
        signal.signal(signum, handler)


def stop(signum: int, frame: FrameType | None) -> NoReturn:
    """Handler that raises Stopped."""
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
