"""Adapter of Textual: every private member that the program needs, with its purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import textual
from textual.app import App
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.worker import WorkerFailed

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
    """Raise Refused, naming the first member that the installed Textual lacks."""
    if sentence := lacking(f"Textual {textual.__version__}", NEEDS, "the version that fwtui requires"):
        raise Refused(sentence)


def parser(debug: bool = False) -> Any:
    """Return Textual's parser of terminal input, whose feed() and tick() yield events."""
    from textual._xterm_parser import XTermParser

    return XTermParser(debug)


def strips(screen: Screen[Any]) -> Sequence[Strip]:
    """Return the present lines of a screen."""
    return screen._compositor.render_strips()


def leave_undrawn(screen: Screen[Any]) -> None:
    """Stop drawing the screen to its terminal, which nobody sees; it is still laid out, and strips() draws it."""
    composed = screen._compositor
    composed.render_update = lambda **_: composed._dirty_regions.clear()  # type: ignore[method-assign]


def drop_lines(screen: Screen[Any]) -> None:
    """Free the drawn lines of a hidden or closed screen and its widgets.

    They take several KB each, and Textual's StylesCache.get_inner_outer holds a thousand removed widgets.
    """
    for widget in screen.walk_children(with_self=True):
        widget.refresh()


def failed_widget(error: BaseException) -> Widget | None:
    """Return the innermost widget in whose method the error, or that of a worker, was raised; None if there is none."""
    found, trace = None, (error.error if isinstance(error, WorkerFailed) else error).__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        found, trace = owner if isinstance(owner, Widget) else found, trace.tb_next
    return found


class Survivor(App[None]):
    """An application that can survive errors of its screens."""

    def survived(self, error: Exception) -> bool:
        """Handle an error; return False if the application has to end."""
        raise NotImplementedError

    def _handle_exception(self, error: Exception) -> None:
        if not self.survived(error):
            super()._handle_exception(error)
