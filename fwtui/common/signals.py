"""The signals that end a program, and the one that kills a child when its parent ends."""

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
_CHECK_EVERY = 0.5  # seconds
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Stopped(BaseException):
    """A signal requested the end of the program."""

    def __init__(self, signum: int):
        self.signum = signum


def on_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Install this handler for all signals that end a program."""
    for signum in SIGNALS:
        signal.signal(signum, handler)


def on_interrupt(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Install this handler for Ctrl-C; only the main thread can, and only the main thread is interrupted."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


class _HeldSignals:
    """True inside hold_signals(), and the first signal that arrived there."""

    active = False
    signum: int | None = None


def stop(signum: int, frame: FrameType | None) -> None:
    """Raise Stopped: at once, or as soon as signals are no longer held back."""
    if not _HeldSignals.active:
        raise Stopped(signum)
    _HeldSignals.signum = _HeldSignals.signum or signum


@contextmanager
def hold_signals() -> Iterator[None]:
    """Let a short block finish before stop() raises; blocks are not nested.

    A signal mask would not help: whichever thread receives the signal, the handler runs in the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _HeldSignals.active = True
    try:
        yield
    finally:
        _HeldSignals.active = False
        if _HeldSignals.signum is not None:
            signum, _HeldSignals.signum = _HeldSignals.signum, None
            raise Stopped(signum)


_undone: list[Callable[[], object]] = []


@contextmanager
def undo_on_signal(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` first if a signal ends the program inside the block."""
    _undone.append(undo)
    try:
        yield
    finally:
        _undone.remove(undo)


def leave(signum: int, frame: FrameType | None) -> NoReturn:
    """Undo unfinished work and end the process.

    Raises nothing: during an import or a compilation an exception may be lost or replaced.
    """
    on_signals(signal.SIG_IGN)
    for undo in reversed(_undone):
        with suppress(Exception):
            undo()
    os._exit(SIGNALLED + signum)


@contextmanager
def restore_handlers() -> Iterator[None]:
    """Restore the previous signal handlers after the block; threads other than the main one cannot change them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def end_with_parent(platform: str = sys.platform, every: float = _CHECK_EVERY) -> None:
    """End this process when its parent ends, even during a request, when it does not read its stdin.

    On Linux (prctl(2)) the kernel kills it when the thread that started it ends. Elsewhere a thread checks the parent every
    `every` seconds. A call that holds the interpreter, such as SciPy's, delays this check until it returns.
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
