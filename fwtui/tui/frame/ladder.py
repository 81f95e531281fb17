"""What is read once, beside the screen, when a place first needs it: the recorded ladder, and what the climb is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fwtui.stream.events import Machine
from fwtui.stream.model import Model
from fwtui.tui.background import in_background

if TYPE_CHECKING:
    from fwtui.tui.frame.base_screens import PlaceScreen
    from fwtui.tui.widgets.stairs import ClimbData


def ladder_for(screen: PlaceScreen) -> Model | None:
    """The ladder that the gains of a verdict are predicted from; None until it has been read."""

    def read() -> Model | None:
        from fwtui.sessions.library import recorded_ladder  # not before the first frame

        return recorded_ladder()

    _once(screen, "ladder", read)
    return screen.view.ladder


def climb_for(screen: PlaceScreen) -> ClimbData | None:
    """What the climb of a live session is made of; None until it has been read."""

    def read() -> ClimbData:
        from fwtui.tui.frame.climbs import gather  # it reads with what the course is made of: not before the first frame

        header = screen.view.model.header
        return gather(header.machine if header is not None else Machine())

    _once(screen, "climb", read)
    return screen.view.climb


def _once(screen: PlaceScreen, name: str, read: Callable[[], object]) -> None:
    """Read that field of the view, after which the screen is drawn anew. A picture waits for it."""

    def arrived(found: object) -> None:
        setattr(screen.view, name, found)
        screen.update(True)

    if name in screen.view.asked_for:
        return
    screen.view.asked_for.add(name)
    if getattr(screen.app, "still", False):
        setattr(screen.view, name, read())
    else:
        in_background(screen, read, arrived, name)
