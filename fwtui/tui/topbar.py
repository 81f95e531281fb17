"""The first line: the program, the screen, the device, and whether this is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from fwtui.tui.drawn import MUTED, STRONG, Drawn, apart, line


class Top(NamedTuple):
    screen: str
    device: str = ""
    recording: str = ""  # time and size


class TopBar(Drawn[Top]):
    DEFAULT_CSS = "TopBar { background: $panel; padding: 0 1; height: 1; }"

    def draw(self, subject: Top, width: int) -> Sequence[Content]:
        left = line(("fwtui", f"{STRONG} $text-primary"), ("  " + subject.screen, STRONG))
        right = line((subject.device, MUTED))
        if subject.recording:
            recording = line(("● REC ", f"{STRONG} $text-error"), subject.recording)
            room = width - left.cell_length - recording.cell_length - 6
            right = line(right.truncate(room, ellipsis=True), "   ", recording) if room > 12 else recording
        return [apart(left, right, width)]
