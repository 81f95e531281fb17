"""Work in background threads, such as reading the ladders when a screen first needs them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from textual.message_pump import MessagePump

from fwtui.stream.events import Machine
from fwtui.stream.model import Model

if TYPE_CHECKING:
    from fwtui.tui.frame.base_screens import PlaceScreen
    from fwtui.tui.widgets.ladder_chart import LadderData

Result = TypeVar("Result")


def in_background(
    pump: MessagePump,
    work: Callable[[], Result],
    then: Callable[[Result], object],
    name: str,
    failed: Callable[[Exception], object] | None = None,
) -> None:
    """Do the work in a thread; the pump then calls `then` with the result, or `failed` with the error.

    Textual's workers are unsuitable: the program would wait for a large file or a hanging driver before it ends.
    """

    def run() -> None:
        try:
            outcome = partial(then, work())
        except Exception as error:
            if failed is None:
                raise
            outcome = partial(failed, error)
        with suppress(RuntimeError):  # the screen or the program is gone
            pump.call_later(outcome)

    Thread(target=run, name=name, daemon=True).start()


def ladder_for(screen: PlaceScreen) -> Model | None:
    """Return the recorded ladder, from which speedups are predicted; None until it has been read."""

    def read() -> Model | None:
        from fwtui.sessions.library import recorded_ladder  # after the first frame

        return recorded_ladder()

    _once(screen, "ladder", read)
    return screen.view.ladder


def ladder_data_for(screen: PlaceScreen) -> LadderData | None:
    """Return the data of a live session's ladders; None until they have been read."""

    def read() -> LadderData:
        from fwtui.tui.frame.ladder_data import gather  # imports the course: after the first frame

        header = screen.view.model.header
        return gather(header.machine if header is not None else Machine())

    _once(screen, "ladder_data", read)
    return screen.view.ladder_data


def complete_recording(screen: PlaceScreen) -> Model | None:
    """Return the model of the complete recording of a replay; None until it has been computed."""
    playback = screen.view.playback
    assert playback is not None

    def read() -> Model:
        from fwtui.sessions.library import model_of  # after the first frame

        return model_of(playback.recording.session.lines)

    _once(screen, "complete_recording", read)
    return screen.view.complete_recording


def _once(screen: PlaceScreen, name: str, read: Callable[[], object]) -> None:
    """Read that field of the view once, then update the screen; a picture waits for it."""

    def arrived(found: object) -> None:
        setattr(screen.view, name, found)
        screen.update(True)

    if name in screen.view.started_reads:
        return
    screen.view.started_reads.add(name)
    if getattr(screen.app, "still", False):
        setattr(screen.view, name, read())
    else:
        in_background(screen, read, arrived, name)
