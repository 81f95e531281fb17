"""Work that takes a while, beside the screen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

from textual.message_pump import MessagePump

Result = TypeVar("Result")


def in_background(
    pump: MessagePump,
    work: Callable[[], Result],
    then: Callable[[Result], object],
    name: str,
    failed: Callable[[Exception], object] | None = None,
) -> None:
    """Do the work in a thread, then call `then` with its result, or `failed` with its error, where the pump handles its
    messages, if it still does.

    A daemon thread, and so none of Textual's workers: leaving must not wait for a big file or a driver that hangs.
    """

    def run() -> None:
        try:
            told = partial(then, work())
        except Exception as error:
            if failed is None:
                raise
            told = partial(failed, error)
        with suppress(RuntimeError):  # the screen or the program is gone
            pump.call_later(told)

    Thread(target=run, name=name, daemon=True).start()
