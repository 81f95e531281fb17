"""The dashboard and the replay in a terminal. Textual is imported only when one of them is asked for."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fwtui.common import gc_pause
from fwtui.common.atomic_file import whole_file
from fwtui.common.errors import Refused, why
from fwtui.common.text import shown
from fwtui.tui.app import terminal
from fwtui.tui.frame.places import place_names

if TYPE_CHECKING:
    from fwtui.experiment.experiment import Experiment
    from fwtui.live.session import Live
    from fwtui.machine.settings import Settings
    from fwtui.sessions.stream import Inlet, Listener

__all__ = ["check_gap", "check_moment", "check_speed", "render", "run_dashboard", "run_replay", "run_stream"]
LEAST_GAP, MOST_GAP = 0.01, 3600.0  # seconds


def run_dashboard(
    live: Live, experiment: Experiment | None = None, settings: Settings | None = None, place: str = "run", lesson: str = ""
) -> int:
    """Open the dashboard on a live session at that place, end that session, and return the exit code.

    `lesson` is the step of the course that the place to learn begins with. What the settings let it keep, it keeps.

    0, 1 after an error in the dashboard itself, 128 + n after signal n. Raises Refused where there is no terminal, or
    only a web page, and for settings that cannot be.
    """
    reason = "error"
    try:
        if "web" in os.environ.get("TEXTUAL_DRIVER", "").lower():
            raise Refused("the dashboard starts programs on this machine and is not served to web pages; serve a replay instead")
        _need_terminal("the dashboard")
        gc_pause.rest()  # until the first frame is there
        from fwtui.experiment.experiment import defaults
        from fwtui.machine import hardware
        from fwtui.tui.app import left
        from fwtui.tui.app.app import FwtuiApp
        from fwtui.tui.frame.look import look_of

        first = experiment or defaults(hardware.driver_present())
        kept = left.load() if settings is not None and settings.text("keep_sessions") == "yes" else None
        if kept is not None and live.recorder is None:
            live.keep()
        if place == "learn":  # where one was, else at the first step
            lesson = lesson or (kept.course if kept is not None else "") or "1"
        app = FwtuiApp(live, first, last_resort=live.kill, look=look_of(settings), place=place, lesson=lesson, left=kept)
        app.run()
        reason = "signal" if app.left_by_signal else "closed" if not app.return_code else "error"
        return app.return_code or 0
    finally:
        terminal.ignore_signals()
        live.close(reason)


def run_replay(
    what: Path | Listener, speed: float = 1.0, start: float = 0.0, max_gap: float | None = None, settings: Settings | None = None
) -> int:
    """Replay a session, read or still heard, from `start` seconds and return the exit code.

    Raises Refused for an invalid session, speed, moment, gap or setting, and where there is
    no terminal.
    """
    check_speed(speed)
    check_moment(start)
    check_gap(max_gap)
    _need_terminal("the replay")
    gc_pause.rest()  # until the first frame is there
    from fwtui.tui.app.app import FwtuiApp
    from fwtui.tui.frame.look import look_of

    app = FwtuiApp(replay=what, speed=speed, start=start, max_gap=max_gap, look=look_of(settings))
    app.run()
    if app.refusal is not None:
        raise Refused(app.refusal)
    return app.return_code or 0


def run_stream(
    inlet: Inlet, speed: float = 1.0, start: float = 0.0, max_gap: float | None = None, settings: Settings | None = None
) -> int:
    """Show a session that comes down standard input while it comes, with keys from the terminal; as run_replay() else."""
    pipe = os.dup(0)
    try:
        terminal_keys = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        os.close(pipe)
        raise Refused(f"there is no terminal for the keys: {why(error)}; print the results with --table or --json") from None
    # Textual takes its keys from standard input
    os.dup2(terminal_keys, 0)
    os.close(terminal_keys)
    try:
        from fwtui.sessions.stream import Inlet, Listener

        return run_replay(Listener(Inlet(pipe, inlet.name)), speed, start, max_gap, settings)
    finally:
        os.dup2(pipe, 0)


def render(
    path: Path, at: float | None, size: tuple[int, int], out: Path, screen: str = "run", settings: Settings | None = None
) -> None:
    """Write what the replay shows at `at` seconds (None: at its end) to `out`: plain text for .txt, else SVG.

    The same file, time, size, screen and settings give the same bytes on any machine. `out` is whole or not touched at
    all. Raises Refused for an invalid session or setting, a moment or a size out of bounds, a screen that a replay does not
    have, and on a disk error.
    """
    width, height = size
    if not (1 <= width <= 500 and 1 <= height <= 200):
        raise Refused(f"size {width}x{height} is outside 1x1 to 500x200; choose something like 120x40")
    if at is not None:
        check_moment(at)
    if screen not in place_names():
        raise Refused(f"there is no screen {shown(screen)} in a replay; choose one of {', '.join(place_names())}")
    with _same_everywhere():
        import asyncio

        from fwtui.tui.app.picture import picture
        from fwtui.tui.frame.look import look_of

        text = asyncio.run(picture(path, at, size, plain=out.suffix == ".txt", place=screen, look=look_of(settings)))
    with whole_file(out) as file:
        file.write(text.encode())


def check_moment(seconds: float) -> None:
    """Raises Refused for an invalid time since a session began."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise Refused(f"moment {seconds:g} is not a number of seconds from 0 up; give something like --at 12.5")


def check_speed(speed: float) -> None:
    """Raises Refused for a speed that the replay does not have."""
    from fwtui.sessions.player import SPEEDS

    if speed not in SPEEDS:
        raise Refused(f"speed {speed:g} is not offered; choose one of {', '.join(f'{s:g}' for s in SPEEDS)}")


def check_gap(seconds: float | None) -> None:
    """Raises Refused for an invalid length of a gap; None leaves gaps unchanged."""
    if seconds is not None and not LEAST_GAP <= seconds <= MOST_GAP:
        raise Refused(f"a gap of {seconds:g} s is outside {LEAST_GAP:g} to {MOST_GAP:g} s; give something like --max-gap 1")


@contextlib.contextmanager
def _same_everywhere() -> Iterator[None]:
    """Without the variables from which Textual and Rich take colours, sizes and the rest, also when they are imported."""
    told = ("TEXTUAL", "NO_COLOR", "FORCE_COLOR", "TTY_", "COLUMNS", "LINES", "UNICODE_VERSION", "ESCDELAY")
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(told)}
    try:
        yield
    finally:
        os.environ.update(kept)


def _need_terminal(what: str) -> None:
    """Keys come from standard input, and Textual draws on standard error; another driver sees to itself."""
    streams = (sys.__stdin__, sys.__stderr__)
    if not os.environ.get("TEXTUAL_DRIVER") and not all(stream is not None and stream.isatty() for stream in streams):
        raise Refused(
            f"{what} needs a terminal on standard input and standard error; without one use `fwtui run` or `fwtui check`"
        )
