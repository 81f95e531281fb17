"""The first line: the program, the screens as tabs that can be clicked, the device, and the state of the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual import events as ui
from textual.content import Content
from textual.message import Message

from fwtui.common import units
from fwtui.tui.frame.places import Place
from fwtui.tui.frame.view import View
from fwtui.tui.widgets import run_labels
from fwtui.tui.widgets.text_panel import MUTED, STRONG, Piece, TextPanel, justify, line, longest

NAME = "fwtui"
MIN_DEVICE = 12  # minimum cells of a device's name
GAP = 3  # cells between tabs, device and signs
PART = " · "  # separates parts that can be omitted


class Top(NamedTuple):
    places: tuple[Place, ...] = ()
    place: str = ""  # name of the present screen
    device: str = ""
    recording: str = ""  # time and size
    paused: str = ""  # time and number of events since the pause


def top_of(view: View, places: tuple[Place, ...], place: str) -> Top:
    """Collect the content of the bar for a screen of a view."""
    source, recording, paused = view.source, "", ""
    if source is not None and source.recorder is not None:
        # padded: a width that changes with the size would show and hide the device in turn
        recording = f"{units.clock(source.now - source.recorder.began)} · {units.memory(source.recorder.bytes):<8}"
    if source is not None and view.paused:
        missed = source.model.index - view.model.index
        paused = f"{units.clock(max(0.0, source.now - view.model.t))} · {units.counted(missed, 'event')}"
    return Top(places, place, run_labels.device(view.model), recording, paused)


class TopBar(TextPanel[Top]):
    ALLOW_SELECT = False
    DEFAULT_CSS = "TopBar { background: $panel; padding: 0 1; height: 1; }"

    @dataclass
    class Chosen(Message):
        """The user clicked a tab."""

        place: str

    def draw(self, subject: Top, width: int) -> Sequence[Content]:
        """Draw the tabs, with all titles or only the present one, then as much of the device and the recording as fits."""
        parts = subject.device.split(PART)
        devices = [PART.join(parts[:count]) for count in range(len(parts), 0, -1)]  # ever shorter texts
        all_signs, fewer, least = (_signs(subject, parts) for parts in (2, 1, 0))
        left = _tabs(subject, whole=True)
        if left.cell_length + GAP + (_signs(subject, 1).cell_length or min(MIN_DEVICE, len(devices[-1]))) > width:
            left = _tabs(subject, whole=True, close=True)
        if left.cell_length + GAP + _signs(subject, 0).cell_length > width:
            left = _tabs(subject, whole=False)
        with_device = (line((device, MUTED), " " * GAP if device and all_signs else "", all_signs) for device in devices)
        return [justify(left, longest((*with_device, all_signs, fewer, least), width - left.cell_length - GAP), width)]

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


def _signs(subject: Top, parts: int) -> Content:
    """Return the signs of a paused view and of a recording, with that many details."""
    paused, recording = (PART.join(text.split(PART)[:parts]) for text in (subject.paused, subject.recording))
    signs: list[Content] = []
    if subject.paused:
        signs.append(line(("‖ PAUSED", f"{STRONG} $text-warning"), f" {paused}" * bool(paused)))
    if subject.recording:
        signs.append(line(("● REC", f"{STRONG} $text-error"), f" {recording}" * bool(recording)))
    return line(*[piece for sign in signs for piece in (" " * GAP, sign)][1:])


def _tabs(subject: Top, whole: bool, close: bool = False) -> Content:
    pieces: list[Piece] = [(NAME, f"{STRONG} $text-primary"), " "]
    for place in subject.places:
        here = place.name == subject.place
        text = f" {place.key} {place.title} ".replace("  ", " ") if whole or here else f" {place.key or '·'} "
        text = text.removeprefix(" ").removesuffix(" " * (place is subject.places[-1])) if close else text
        pieces.append((text, f"{STRONG} $text-primary reverse" if here else MUTED))
    return line(*pieces)
