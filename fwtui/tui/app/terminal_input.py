"""Terminal input that accepts any sequence of bytes."""

from __future__ import annotations

import os
import re
import selectors
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from threading import Event
from typing import Any

from textual import constants
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from fwtui.tui.textual_internals import parser

_CHUNK = 4096
_ALT_DIGIT = re.compile(r"\x1b[0-9]")
_ESCAPE_SECONDS = 0.1  # between checks that nothing follows an escape
_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
MAX_PASTE = 1 << 16  # characters of one paste; the rest is dropped
PASTE_SECONDS = 2.0  # an unterminated paste ends after this time without input
MAX_QUEUED = 1000  # events
_ROOM_SECONDS = 0.01  # between checks of the queue


class _Bell(Event):
    """An event that also ends a select() on its descriptor."""

    def __init__(self) -> None:
        super().__init__()
        self.descriptor, self._rope = os.pipe()

    def set(self) -> None:
        super().set()
        os.write(self._rope, b"x")

    def clear(self) -> None:
        if self.is_set():
            os.read(self.descriptor, _CHUNK)
        super().clear()


class InputFailed(Message):
    """The input thread has failed; no more input will arrive."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class InputThread(Driver):
    """A driver whose input thread decodes any bytes, sleeps while there is no input, and waits while the queue is full.

    Textual's threads end at the first byte that is not UTF-8 (tests/faults/test_terminal.py,
    test_a_stopped_dashboard_continues), and wake up ten times a second.
    """

    def __init__(self, app: App[Any], **named: Any) -> None:
        super().__init__(app, **named)
        self._program = app
        self.exit_event = self._bell = _Bell()

    def run_input_thread(self) -> None:
        """Read and dispatch until the program ends or the terminal is lost, which terminal.listen() handles."""
        try:
            self._dispatch()
        except Exception as error:
            self.process_message(InputFailed(error))

    def _dispatch(self) -> None:
        keys, descriptor = KeyParser(constants.DEBUG), self._descriptor()
        with selectors.SelectSelector() as selector:  # other selectors of macOS do not support terminals
            selector.register(descriptor, selectors.EVENT_READ)
            selector.register(self._bell.descriptor, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(_ESCAPE_SECONDS if keys.waiting else None)]
                received = self._read() if descriptor in ready else None
                if received == b"":
                    return
                for message in keys.messages(self._typed(received or b"")):
                    self._wait_for_room()
                    self.process_message(message)
        for message in keys.left():
            self.process_message(message)

    def _descriptor(self) -> int:
        """Return the descriptor of the input."""
        raise NotImplementedError

    def _wait_for_room(self) -> None:
        """Wait while too many events are queued: an event takes much more memory than its bytes."""
        while self._program.message_queue_size > MAX_QUEUED and not self.exit_event.is_set():
            time.sleep(_ROOM_SECONDS)

    def _typed(self, received: bytes) -> bytes:
        """Return the keys and terminal reports among the bytes."""
        return received

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor(), _CHUNK)
        except OSError:
            return b""


class TerminalDriver(InputThread, LinuxDriver):
    """Textual's driver for Linux and macOS, with fwtui's input thread."""

    def _descriptor(self) -> int:
        return self.fileno


class KeyParser:
    """Textual's parser of terminal input, extended to any bytes."""

    def __init__(self, debug: bool = False):
        self._debug = debug
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._parser = parser(debug)
        self._tail = ""  # the last characters
        self._pasted: int | None = None  # characters of the present paste; None outside of one
        self._since = 0.0  # time of the last input, on a monotonic clock

    @property
    def waiting(self) -> bool:
        """True while the last bytes may be a key or the beginning of a sequence."""
        return self._pasted is not None or time.monotonic() < self._since + constants.ESCAPE_DELAY + _ESCAPE_SECONDS

    def messages(self, received: bytes) -> Iterator[Message]:
        """Yield the events of these and earlier bytes; without bytes, a single escape becomes a key after its delay."""
        now = time.monotonic()
        if received:
            self._since = now
        elif self._pasted is not None and now > self._since + PASTE_SECONDS:
            yield from self._end_paste()
        # one at a time, so that an invalid sequence does not discard the input after it
        for character in self._decoder.decode(received):
            if self._pasted is None or self._pasted <= MAX_PASTE:
                for message in self._parsed(lambda c=character: self._parser.feed(c)):
                    yield _with_alt(message, self._tail[-1:] + character)
            self._tail = (self._tail + character)[-len(_PASTE_END) :]
            if self._pasted is not None:
                self._pasted += 1
            if self._tail == _PASTE_START:
                self._pasted = 0
            elif self._tail == _PASTE_END:
                yield from self._end_paste()
        yield from self._parsed(lambda: self._parser.tick())

    def _end_paste(self) -> list[Message]:
        """End the paste in the parser, which has no limits and may have missed a slow end."""
        self._pasted = None
        return self._parsed(lambda: self._parser.feed(_PASTE_END))

    def left(self) -> list[Message]:
        """Return the events of the last bytes after the end of input, such as Escape just before Ctrl+Z."""
        if self.waiting:
            time.sleep(constants.ESCAPE_DELAY)
        return self._parsed(lambda: self._parser.tick())

    def _parsed(self, parse: Callable[[], Iterable[Message]]) -> list[Message]:
        try:
            return list(parse())
        except (ArithmeticError, ValueError):
            self._parser = parser(self._debug)  # after a sequence with invalid numbers
            return []


def _with_alt(message: Message, sequence: str) -> Message:
    """Turn an escape and a digit into alt+digit; Textual returns macOS's character for it, which a field would insert."""
    if _ALT_DIGIT.fullmatch(sequence) and isinstance(message, Key) and message.character != sequence[1]:
        return Key(f"alt+{sequence[1]}", None)
    return message
