"""The signals that ask a program to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


_undone: list[Callable[[], object]] = []


@contextmanager
def undone_by(undo: Callable[[], object]) -> Iterator[None]:
    """Whoever leaves meanwhile does this first."""
    _undone.append(undo)
    try:
        yield
    finally:
        _undone.remove(undo)


def leave(signum: int, frame: FrameType | None) -> NoReturn:
    """Handler that undoes what has been begun and ends the process.

    Raises nothing: while something is imported or compiled an exception may be lost, or turned into another one.
    """
    on_signals(signal.SIG_IGN)
    for undo in reversed(_undone):
        with suppress(Exception):
            undo()
    os._exit(128 + signum)


@contextmanager
def held_back() -> Iterator[None]:
    """These signals come afterwards; processes that are started meanwhile get none until they call `let_in`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_in() -> None:
    """For a process that was started while they were held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Whatever handles these signals meanwhile, afterwards it is what did before."""
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
