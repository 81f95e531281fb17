"""The signals that ask a program to end, and the one that kills a child when its parent ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from fwtui.common.exit_codes import SIGNALLED

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOOKS_EVERY = 0.5  # seconds
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Stopped(BaseException):
    """A signal asked the program to end."""

    def __init__(self, signum: int):
        self.signum = signum


def on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Send the signals that ask a program to end to this handler."""
    for signum in SIGNALS:
        signal.signal(signum, handler)


def on_interrupt(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Send Ctrl-C to this handler; only the main thread can, and no other thread is interrupted."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


class _HeldSignals:
    """How deeply signals are held back, and the first one that arrived meanwhile."""

    depth = 0
    signum: int | None = None


def stop(signum: int, frame: FrameType | None) -> None:
    """Handler that raises Stopped: at once, or as soon as signals are no longer held back."""
    if not _HeldSignals.depth:
        raise Stopped(signum)
    _HeldSignals.signum = _HeldSignals.signum or signum


@contextmanager
def hold_signals() -> Iterator[None]:
    """Lets a short block that must not be split finish before stop() raises.

    A signal mask would not help: whichever thread receives the signal, the handler runs in the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _HeldSignals.depth += 1
    try:
        yield
    finally:
        _HeldSignals.depth -= 1
        if not _HeldSignals.depth and _HeldSignals.signum is not None:
            signum, _HeldSignals.signum = _HeldSignals.signum, None
            raise Stopped(signum)


_undone: list[Callable[[], object]] = []


@contextmanager
def undo_on_signal(undo: Callable[[], object]) -> Iterator[None]:
    """If a signal ends the program meanwhile, this is done first."""
    _undone.append(undo)
    try:
        yield
    finally:
        _undone.remove(undo)


def leave(signum: int, frame: FrameType | None) -> NoReturn:
    """Handler that undoes unfinished work and ends the process.

    Raises nothing: during an import or a compilation an exception may be lost or replaced.
    """
    on_signals(signal.SIG_IGN)
    for undo in reversed(_undone):
        with suppress(Exception):
            undo()
    os._exit(SIGNALLED + signum)


@contextmanager
def restore_handlers() -> Iterator[None]:
    """Restores the previous handlers of these signals afterwards; a thread other than the main one cannot have changed them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def end_with_parent(platform: str = sys.platform, every: float = _LOOKS_EVERY) -> None:
    """End this process when the one that started it ends, even in the middle of a request, when it does not read its stdin.

    On Linux (prctl(2)) the kernel kills it when the thread that started it ends. Elsewhere a thread looks for its parent every
    `every` seconds; it cannot during a call that holds the interpreter, such as SciPy's, which is finished first.
    """
    if platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_end_as_orphan, args=(os.getppid(), every), name="orphan", daemon=True).start()


def _end_as_orphan(parent: int, every: float) -> NoReturn:
    while os.getppid() == parent:
        time.sleep(every)
    os._exit(SIGNALLED + signal.SIGKILL)
