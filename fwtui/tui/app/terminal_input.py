"""The terminal's input: no bytes from outside may end the program."""

from __future__ import annotations

import os
import re
import selectors
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from threading import Event
from typing import Any

from textual import constants
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from fwtui.tui.textual_internals import parser

_CHUNK = 4096
_ALT_DIGIT = re.compile(r"\x1b[0-9]")
_ESCAPE_SECONDS = 0.1  # between looks whether an escape stays alone


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
    """No more input will come."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class TerminalDriver(LinuxDriver):
    """Textual's driver for Linux and macOS, which decodes strictly and gives up at the first byte that is not UTF-8.

    It also looks for input ten times a second; here nothing wakes up until there is some.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.exit_event = self._bell = _Bell()

    def run_input_thread(self) -> None:
        """Read and dispatch until the program ends or the terminal is gone, which terminal.listen() notices."""
        try:
            self._dispatch()
        except Exception as error:
            self.process_message(InputFailed(error))

    def _dispatch(self) -> None:
        keys = KeyParser(constants.DEBUG)
        with selectors.SelectSelector() as selector:  # macOS has others that take no terminals
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._bell.descriptor, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = [key.fd for key, _ in selector.select(_ESCAPE_SECONDS if keys.waiting else None)]
                received = self._read() if self.fileno in ready else None
                if received == b"":
                    return
                for message in keys.messages(received or b""):
                    self.process_message(message)
        for message in keys.left():
            self.process_message(message)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _CHUNK)
        except OSError:
            return b""


class KeyParser:
    """Textual's parser of terminal input, for any bytes at all."""

    def __init__(self, debug: bool = False):
        self._debug = debug
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._parser = parser(debug)
        self._before = ""  # the last character
        self._since = 0.0  # when something came last, on a monotonic clock

    @property
    def waiting(self) -> bool:
        """Whether what came last may be a key by itself or the beginning of more."""
        return time.monotonic() < self._since + constants.ESCAPE_DELAY + _ESCAPE_SECONDS

    def messages(self, received: bytes) -> list[Message]:
        """The events of these bytes and those before; no bytes at all turn a lone escape into a key in time."""
        found: list[Message] = []
        if received:
            self._since = time.monotonic()
        # one at a time: what cannot be parsed must not take along what follows it
        for character in self._decoder.decode(received):
            parsed = self._tried(lambda c=character: self._parser.feed(c))
            found += [_with_alt(message, self._before + character) for message in parsed]
            self._before = character
        return found + self._tried(lambda: self._parser.tick())

    def left(self) -> list[Message]:
        """What came last, where no more will come: an Escape just before Ctrl+Z is a key as well."""
        if self.waiting:
            time.sleep(constants.ESCAPE_DELAY)
        return self._tried(lambda: self._parser.tick())

    def _tried(self, parse: Callable[[], Iterable[Message]]) -> list[Message]:
        try:
            return list(parse())
        except (ArithmeticError, ValueError):
            self._parser = parser(self._debug)  # after a sequence whose numbers are none
            return []


def _with_alt(message: Message, sequence: str) -> Message:
    """An escape and a digit are alt and that digit, where Textual says what macOS makes of them, which a field would take."""
    if _ALT_DIGIT.fullmatch(sequence) and isinstance(message, Key) and message.character != sequence[1]:
        return Key(f"alt+{sequence[1]}", None)
    return message
