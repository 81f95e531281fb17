"""The dashboard and the replay in a terminal. Textual is imported only when one of them starts."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fwtui.common import gc_pause
from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused
from fwtui.common.malloc_arenas import limit_malloc_arenas
from fwtui.common.signals import leave, on_signals
from fwtui.tui.app import terminal

if TYPE_CHECKING:
    from fwtui.experiment.experiment import Experiment
    from fwtui.live.session import Live
    from fwtui.machine.settings import Settings
    from fwtui.sessions.reader import LoadedSession
    from fwtui.tui.app.app import FwtuiApp
    from fwtui.tui.export.film import Film, FilmCut

__all__ = [
    "filmed",
    "render",
    "run_dashboard",
    "run_read_only",
    "run_replay",
]


def run_dashboard(
    live: Live, experiment: Experiment | None = None, settings: Settings | None = None, place: str = "run", lesson: str = ""
) -> int:
    """Open the dashboard on a live session at that screen, end the session, and return the exit code.

    `lesson` is the first step of the course on the Learn screen. The exit code is 0, 1 after an error in the dashboard, or
    128 + n after signal n. Raises Refused without a terminal, for a web page, and for invalid settings.
    """
    reason = "error"
    try:
        if "web" in os.environ.get("TEXTUAL_DRIVER", "").lower():
            raise Refused("the dashboard starts programs on this machine and is not served to web pages; use `fwtui serve`")
        _need_terminal("the dashboard")
        gc_pause.disable_gc()  # enabled again after the first frame
        limit_malloc_arenas()
        from fwtui.experiment.experiment import first_experiment
        from fwtui.machine import hardware
        from fwtui.tui.app import ui_state
        from fwtui.tui.app.app import FwtuiApp
        from fwtui.tui.frame.appearance import load_appearance

        first = experiment or first_experiment(hardware.driver_present())
        saved = ui_state.load() if settings is not None and settings.text("keep_sessions") == "yes" else None
        if saved is not None and live.recorder is None:
            live.keep()
        if place == "learn":  # continue at the last step
            lesson = lesson or (saved.course if saved is not None else "") or "1"
        app = FwtuiApp(
            live, first, last_resort=live.kill, look=load_appearance(settings), place=place, lesson=lesson, saved_state=saved
        )
        _run(app)
        reason = "signal" if app.left_by_signal else "closed" if not app.return_code else "error"
        return app.return_code or 0
    finally:
        terminal.ignore_signals()
        live.close(reason)


def run_read_only(offered: Sequence[Path] = (), settings: Settings | None = None) -> int:
    """Show replays and the course, read-only, and return the exit code.

    Only the user's sessions in `offered` are available; the first of them opens first. Raises Refused for invalid settings,
    and if there is neither a terminal nor a web page.
    """
    _need_terminal("the dashboard")
    from fwtui.sessions.library import offer_only
    from fwtui.tui.app.app import FwtuiApp
    from fwtui.tui.app.forbid_changes import forbid_changes
    from fwtui.tui.frame.appearance import load_appearance

    first = offered[0] if offered else None
    app = FwtuiApp(
        replay=first, place="learn" if first is None else "run", lesson="1", look=load_appearance(settings), read_only=True
    )
    offer_only(offered)
    forbid_changes()
    return _run(app)


def run_replay(
    path: Path, speed: float = 1.0, start: float = 0.0, max_gap: float | None = None, settings: Settings | None = None
) -> int:
    """Replay a session from `start` seconds, and return the exit code.

    Raises Refused for an invalid session or setting, and without a terminal.
    """
    _need_terminal("the replay")
    gc_pause.disable_gc()  # enabled again after the first frame
    from fwtui.tui.app.app import FwtuiApp
    from fwtui.tui.frame.appearance import load_appearance

    app = FwtuiApp(replay=path, speed=speed, start=start, max_gap=max_gap, look=load_appearance(settings))
    code = _run(app)
    if app.refusal is not None:
        raise Refused(app.refusal)
    return code


def render(
    path: Path,
    at: float | None,
    size: tuple[int, int],
    out: Path,
    screen: str = "run",
    settings: Settings | None = None,
    card: int | None = None,
    answered: bool = False,
) -> bool:
    """Draw the replay at `at` seconds (None: at its end) into `out`, as plain text for .txt, else as SVG.

    In the presenter's layout a lecture shows the cue card `card` (None: the last one), if `answered` with its answer. Return
    True if the session is complete. The output depends only on the arguments, not on the machine. `out` is written atomically.
    Raises Refused for an invalid session, card or setting, and on a disk error.
    """
    with _same_everywhere(), gc_pause.paused():
        import asyncio

        from fwtui.tui.export.screens import picture
        from fwtui.tui.frame.appearance import load_appearance

        text, complete = asyncio.run(
            picture(path, at, size, out.suffix == ".txt", screen, load_appearance(settings), card, answered)
        )
    with atomic_write(out) as file:
        file.write(text.encode())
    return complete


def filmed(
    path: Path,
    session: LoadedSession,
    size: tuple[int, int],
    cut: FilmCut,
    screen: str = "run",
    settings: Settings | None = None,
    report_progress: Callable[[float], None] = lambda share: None,
    small: bool = False,
) -> Film:
    """Capture the replay of a loaded session as a film, which ends with the picture of render().

    `small` adds frames for phones. `report_progress` receives the share (0 to 1) of captured frames. Raises Refused like
    render().
    """
    with _same_everywhere():
        from fwtui.tui.export.capture import capture
        from fwtui.tui.frame.appearance import load_appearance

        return capture(path, session, size, screen, load_appearance(settings), cut, report_progress, small)


@contextlib.contextmanager
def _same_everywhere() -> Iterator[None]:
    """Hide the environment variables that change the colours and sizes of Textual and Rich, also during their import."""
    prefixes = ("TEXTUAL", "NO_COLOR", "FORCE_COLOR", "TTY_", "COLUMNS", "LINES", "UNICODE_VERSION", "ESCDELAY")
    environment = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(prefixes)}
    try:
        yield
    finally:
        os.environ.update(environment)


def _run(app: FwtuiApp) -> int:
    """Run the application, print its failure, and return the exit code. Raises Refused for an unsuitable Textual."""
    from fwtui.tui.textual_internals import check

    check()
    app.run()
    if app.failure:
        print(app.failure, file=sys.stderr)
    return app.return_code or 0


def _need_terminal(what: str) -> None:
    """Check that standard input (keys) and standard error (output) are terminals, unless TEXTUAL_DRIVER replaces them.

    A signal ends the program at once until the application listens: during an import an exception could be lost.
    """
    if threading.current_thread() is threading.main_thread():
        on_signals(leave)
    streams = (sys.__stdin__, sys.__stderr__)
    if not os.environ.get("TEXTUAL_DRIVER") and not all(stream is not None and stream.isatty() for stream in streams):
        raise Refused(
            f"{what} needs a terminal on standard input and standard error; without one use `fwtui run` or `fwtui check`"
        )
