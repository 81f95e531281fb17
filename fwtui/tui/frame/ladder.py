"""The recorded ladder, that the gains of a verdict are predicted from: read once, beside the screen, when one first needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fwtui.stream.model import Model
from fwtui.tui.background import in_background

if TYPE_CHECKING:
    from fwtui.tui.frame.frame import Frame


def ladder_for(screen: Frame) -> Model | None:
    """The ladder; None until it has been read, after which the screen is drawn anew. A picture waits for it."""
    view = screen.view
    if view.ladder is None and not view.ladder_asked:
        view.ladder_asked = True
        if getattr(screen.app, "still", False):
            view.ladder = _read()
        else:
            in_background(screen, _read, lambda ladder: _arrived(screen, ladder), "ladder")
    return view.ladder


def _read() -> Model | None:
    from fwtui.sessions.library import recorded_ladder  # not before the first frame

    return recorded_ladder()


def _arrived(screen: Frame, ladder: Model | None) -> None:
    screen.view.ladder = ladder
    screen.update(True)
