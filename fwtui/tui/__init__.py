"""The dashboard and the replay in a terminal. Textual is imported only when one of them is asked for."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fwtui.errors import Refused

if TYPE_CHECKING:
    from fwtui.experiment import Experiment
    from fwtui.live import Live

__all__ = ["render", "run_dashboard", "run_replay"]


def run_dashboard(live: Live, experiment: Experiment | None = None) -> int:
    """Open the dashboard on a live session, end that session, and return the exit code.

    0, 1 after an error in the dashboard itself, 128 + n after signal n. Raises Refused where there is no terminal, or
    only a web page.
    """
    reason = "error"
    try:
        if "web" in os.environ.get("TEXTUAL_DRIVER", "").lower():
            raise Refused("the dashboard starts programs on this machine and is not served to web pages; serve a replay instead")
        _need_terminal("the dashboard")
        from fwtui import hardware
        from fwtui.experiment import defaults
        from fwtui.tui.app import FwtuiApp

        app = FwtuiApp(live, experiment or defaults(hardware.driver_present()))
        app.run()
        reason = "signal" if app.left_by_signal else "closed" if not app.return_code else "error"
        return app.return_code or 0
    finally:
        live.close(reason)


def run_replay(path: Path, speed: float = 1.0, start: float = 0.0) -> int:
    """Replay a session from `start` seconds and return the exit code. Raises Refused for what is no session."""
    from fwtui.sessions.player import SPEEDS
    from fwtui.tui.app import FwtuiApp

    if speed not in SPEEDS:
        raise Refused(f"speed {speed:g} is not offered; choose one of {', '.join(f'{s:g}' for s in SPEEDS)}")
    _need_terminal("the replay")
    app = FwtuiApp(replay=Path(path), speed=speed, start=start)
    app.run()
    if app.refusal is not None:
        raise Refused(app.refusal)
    return app.return_code or 0


def render(path: Path, at: float | None, size: tuple[int, int], out: Path) -> None:
    """Write what the replay shows at `at` seconds (None: at its end) to `out`: plain text for .txt, else SVG.

    The same file, time and size give the same bytes. Raises Refused for what is no session, or a size out of bounds.
    """
    import asyncio

    from fwtui.tui.picture import picture

    width, height = size
    if not (1 <= width <= 500 and 1 <= height <= 200):
        raise Refused(f"size {width}x{height} is outside 1x1 to 500x200; choose something like 120x40")
    text = asyncio.run(picture(Path(path), at, size, plain=out.suffix == ".txt"))
    out.write_text(text, encoding="utf-8")


def _need_terminal(what: str) -> None:
    driver: Any = os.environ.get("TEXTUAL_DRIVER")
    if not driver and not (sys.__stdin__ is not None and sys.__stdin__.isatty() and sys.__stderr__ is not None):
        raise Refused(f"{what} needs a terminal, and standard input is none; use `fwtui run` or `fwtui check` in a script")
