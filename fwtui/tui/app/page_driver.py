"""Input of a dashboard that is served as a web page."""

from __future__ import annotations

import json

from textual.drivers.web_driver import WebDriver

from fwtui.tui.app.terminal_input import InputThread

_HEAD = 5  # bytes before the payload of a packet


class PageDriver(InputThread, WebDriver):
    """Textual's driver for web pages, with fwtui's input thread.

    A packet is its kind (D: input, M: metadata as JSON), its length in four bytes, and its payload.
    """

    _packets = b""

    def _descriptor(self) -> int:
        return 0

    def _typed(self, received: bytes) -> bytes:
        self._packets += received
        typed = b""
        while len(self._packets) >= (end := _HEAD + int.from_bytes(self._packets[1:_HEAD], "big")):
            kind, payload, self._packets = self._packets[:1], self._packets[_HEAD:end], self._packets[end:]
            if kind == b"D":
                typed += payload
            else:
                self._wait_for_room()
                about = json.loads(payload)
                self.on_meta(about["type"], about)
        return typed
