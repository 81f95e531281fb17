"""What the program needs of Textual that has no public way: each member here, with what it is for, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import textual
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from fwtui.common.errors import Refused
from fwtui_kernels.needs import Need, lacking, takes


def _survives() -> bool:
    return takes(App._handle_exception, "self", "error")


def _parses() -> bool:
    from textual._xterm_parser import XTermParser

    return callable(XTermParser.feed) and callable(XTermParser.tick)


def _composes() -> bool:
    from textual._compositor import Compositor

    draws = callable(Compositor.render_strips) and callable(Compositor.render_update)
    names = {*Screen.__init__.__code__.co_names, *Compositor.__init__.__code__.co_names}
    return draws and {"_compositor", "_dirty_regions"} <= names


NEEDS = (
    Need("App._handle_exception", "an error in a screen would end the program", _survives),
    Need("textual._xterm_parser.XTermParser", "keys would do nothing", _parses),
    Need("Screen._compositor", "there would be no pictures and no text of a screen", _composes),
)


def check() -> None:
    """Raises Refused, naming the first member that the installed Textual lacks."""
    if sentence := lacking(f"Textual {textual.__version__}", NEEDS, "the version that fwtui asks for"):
        raise Refused(sentence)


def parser(debug: bool = False) -> Any:
    """Textual's parser of terminal input: feed() and tick() yield events."""
    from textual._xterm_parser import XTermParser

    return XTermParser(debug)


def strips(screen: Screen[Any]) -> Sequence[Strip]:
    """The lines of a screen as they are composed now."""
    return screen._compositor.render_strips()


def leave_undrawn(screen: Screen[Any]) -> None:
    """Lay the screen out from now on, and draw it only where its `strips` are asked for: nobody looks at its terminal."""
    composed = screen._compositor
    composed.render_update = lambda **_: composed._dirty_regions.clear()  # type: ignore[method-assign]


def drop_lines(screen: Screen[Any]) -> None:
    """Let go of the lines that a hidden or closed screen has drawn, its dialogs' and widgets' own too.

    They take several KB each, and Textual's cache of styles holds a thousand widgets that are gone (StylesCache.get_inner_outer).
    """
    for widget in screen.walk_children(with_self=True):
        widget.refresh()


def failed_widget(error: BaseException) -> Widget | None:
    """The widget in whose method an error was raised, the innermost one; None if it was none's."""
    found, trace = None, error.__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        found, trace = owner if isinstance(owner, Widget) else found, trace.tb_next
    return found


class Survivor(App[None]):
    """An application that is asked about errors of its screens, before Textual ends it."""

    def survived(self, error: Exception) -> bool:
        """Whether it goes on after that error."""
        raise NotImplementedError

    def _handle_exception(self, error: Exception) -> None:
        if not self.survived(error):
            super()._handle_exception(error)
