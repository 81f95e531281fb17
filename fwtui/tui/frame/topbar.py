"""The first line: the program, the places as tabs that can be clicked, the device, and whether this is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual import events as ui
from textual.content import Content
from textual.message import Message

from fwtui.tui.frame.places import Place
from fwtui.tui.widgets.drawn import MUTED, STRONG, Drawn, Piece, apart, line

NAME = "fwtui"
LEAST_DEVICE = 12  # cells below which a device's name says nothing
GAP = 3  # cells between tabs, device and signs


class Top(NamedTuple):
    places: tuple[Place, ...] = ()
    place: str = ""  # name of the one that is shown
    device: str = ""
    recording: str = ""  # time and size
    paused: str = ""  # what has come since the view was stopped


class TopBar(Drawn[Top]):
    ALLOW_SELECT = False
    DEFAULT_CSS = "TopBar { background: $panel; padding: 0 1; height: 1; }"

    @dataclass
    class Chosen(Message):
        """The user pointed at a place."""

        place: str

    def draw(self, subject: Top, width: int) -> Sequence[Content]:
        """All titles if they fit beside what must be seen, or else the device; else only the shown place has its title."""
        signs, left = _signs(subject), _tabs(subject, whole=True)
        beside = signs.cell_length or min(LEAST_DEVICE, len(subject.device))
        if left.cell_length + GAP + beside > width:
            left = _tabs(subject, whole=False)
        room = width - left.cell_length - signs.cell_length - GAP - 2
        device = line((subject.device, MUTED)).truncate(max(room, 0), ellipsis=True)
        if device.cell_length < min(LEAST_DEVICE, len(subject.device)):
            device = line("")
        return [apart(left, line(device, "   " if device and signs else "", signs), width)]

    def _place_at(self, event: ui.MouseEvent) -> Place | None:
        offset = event.get_content_offset(self)
        tabs = zip(self.subject.places, self.lines[0].spans[1:], strict=False)  # the first span is the program's name
        return next((place for place, span in tabs if offset is not None and span.start <= offset.x < span.end), None)

    def on_click(self, event: ui.Click) -> None:
        place = self._place_at(event)
        if place is not None:
            event.stop()
            self.post_message(self.Chosen(place.name))

    def on_mouse_move(self, event: ui.MouseMove) -> None:
        place = self._place_at(event)
        self.tooltip = Content(f"{place.key}  {place.title}: {place.tooltip}") if place is not None else None


def _signs(subject: Top) -> Content:
    """What must be seen whatever there is room for: that the view stands still, that a recording goes on."""
    paused = line(("‖ PAUSED ", f"{STRONG} $text-warning"), subject.paused) if subject.paused else line("")
    recording = line(("● REC ", f"{STRONG} $text-error"), subject.recording) if subject.recording else line("")
    return line(paused, "   " if subject.paused and subject.recording else "", recording)


def _tabs(subject: Top, whole: bool) -> Content:
    pieces: list[Piece] = [(NAME, f"{STRONG} $text-primary"), " "]
    for place in subject.places:
        here = place.name == subject.place
        words = f" {place.key} {place.title} " if whole or here else f" {place.key} "
        pieces.append((words, f"{STRONG} $text-primary reverse" if here else MUTED))
    return line(*pieces)
