"""The signals that ask a program to end, and the one that ends a child process with its parent."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from fwtui.common.exit_codes import SIGNALLED

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
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


_undone: list[Callable[[], object]] = []


@contextmanager
def undone_by(undo: Callable[[], object]) -> Iterator[None]:
    """A signal that ends the program meanwhile does this first."""
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
    os._exit(SIGNALLED + signum)


@contextmanager
def masked() -> Iterator[None]:
    """These signals come afterwards; processes that are started meanwhile get none until they call `let_in`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_in() -> None:
    """For a process that was started while they were masked."""
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


def end_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends, where it can (Linux, prctl(2)).

    Children also see the end of their stdin, but not while one long call, such as SciPy's, holds the interpreter.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
