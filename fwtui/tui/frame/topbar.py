"""The first line: the program, the places as tabs that can be clicked, the device, and whether this is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events as ui
from textual.content import Content
from textual.message import Message

from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, apart, line

NAME = "fwtui"
LEAST_DEVICE = 12  # cells below which a device's name says nothing
GAP = 3  # cells between tabs, device and signs


class Tab(NamedTuple):
    """A place on the bar."""

    key: str
    name: str
    title: str
    tooltip: str = ""

    def words(self, whole: bool) -> str:
        return f" {self.key} {self.title} " if whole else f" {self.key} "


class Top(NamedTuple):
    tabs: tuple[Tab, ...] = ()
    place: str = ""  # name of the tab that is shown
    device: str = ""
    recording: str = ""  # time and size
    paused: str = ""  # what has come since the view was stopped


class TopBar(Drawn[Top]):
    ALLOW_SELECT = False
    DEFAULT_CSS = "TopBar { background: $panel; padding: 0 1; height: 1; }"

    class Chosen(Message):
        """The user pointed at a place."""

        def __init__(self, place: str):
            super().__init__()
            self.place = place

    def draw(self, subject: Top, width: int) -> Sequence[Content]:
        left = _tabs(subject, whole=self._whole(width))
        recording = _signs(subject)
        room = width - left.cell_length - recording.cell_length - GAP - 2
        device = line((subject.device, MUTED)).truncate(max(room, 0), ellipsis=True)
        if device.cell_length < min(LEAST_DEVICE, len(subject.device)):
            device = line("")
        return [apart(left, line(device, "   " if device and recording else "", recording), width)]

    def tab_at(self, x: int) -> Tab | None:
        """The tab in that column of the bar's content."""
        end = len(NAME) + 1
        if x < end:
            return None
        for tab in self.subject.tabs:
            end += len(tab.words(self._whole(self.content_size.width) or tab.name == self.subject.place))
            if x < end:
                return tab
        return None

    def on_click(self, event: ui.Click) -> None:
        offset = event.get_content_offset(self)
        tab = self.tab_at(offset.x) if offset is not None else None
        if tab is not None:
            event.stop()
            self.post_message(self.Chosen(tab.name))

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        offset = event.get_content_offset(self)
        tab = self.tab_at(offset.x) if offset is not None else None
        self.tooltip = Content(f"{tab.key}  {tab.title}: {tab.tooltip}") if tab is not None else None

    def _whole(self, width: int) -> bool:
        """Whether all titles fit beside what must be seen, or else the device; else only the shown place has one."""
        beside = _signs(self.subject).cell_length or min(LEAST_DEVICE, len(self.subject.device))
        return _tabs(self.subject, whole=True).cell_length + GAP + beside <= width


def _signs(subject: Top) -> Content:
    """What must be seen whatever there is room for: that the view stands still, that a recording goes on."""
    paused = line(("‖ PAUSED ", f"{STRONG} $text-warning"), subject.paused) if subject.paused else line("")
    recording = line(("● REC ", f"{STRONG} $text-error"), subject.recording) if subject.recording else line("")
    return line(paused, "   " if subject.paused and subject.recording else "", recording)


def _tabs(subject: Top, whole: bool) -> Content:
    pieces: list[Piece] = [(NAME, f"{STRONG} $text-primary"), " "]
    for tab in subject.tabs:
        here = tab.name == subject.place
        pieces.append((tab.words(whole or here), f"{STRONG} $text-primary reverse" if here else MUTED))
    return line(*pieces)
