"""`fwtui.run`: the command `fwtui run` for programs and notebooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

from fwtui.commands.api.options import parse
from fwtui.commands.api.session import Session
from fwtui.commands.run import add_run_options, run_one, settle_all
from fwtui.commands.support.recording_options import close_session, live_session
from fwtui.commands.support.stderr_reporter import StderrReporter, show_progress
from fwtui.common.signals import Stopped, on_interrupt, restore_handlers, signal, stop
from fwtui.sessions.folders import SUFFIX

BAR = 20  # characters


def run(kernel: Any = None, n: Any = None, **options: Any) -> Session:
    """Run experiments, one after the other, and return their session.

    The arguments are the options of `fwtui run`, which `fwtui run --help` explains. `kernel` is an id of `fwtui.kernels()` or
    the path of your kernel file, `n` the number of vertices; lists of `kernel`, `n`, `kind`, `density`, `dtype`, `tile` and
    `launch` run every combination. `budget` is in seconds, `telemetry_hz` in samples per second. Options
    of kernels are arguments too, such as `threads=256`; those of your kernel are in `option`, a dictionary.

    Progress and errors go to stderr, progress in a notebook below the cell. Ctrl-C, or the notebook's interrupt, ends the
    current run: the session contains the finished runs, and this one as cancelled. Raises Refused for invalid arguments before
    the first run begins.
    """
    args = parse("run", add_run_options, {"kernel": kernel, "n": n, **options})
    settled, reason, name = settle_all(args), "closed", ""
    show: Callable[[str], object] = show_progress

    def show_run(text: str, share: float | None) -> None:
        bar = "" if share is None else f"{'█' * round(BAR * min(share, 1.0)):░<{BAR}} "
        show(f"{name}{bar}{text}" if text else "")

    with ExitStack() as undo, restore_handlers():
        if args.record is None:
            args.record = os.path.join(undo.enter_context(TemporaryDirectory(prefix="fwtui-")), f"session{SUFFIX}")
        on_interrupt(stop)
        live = live_session(args)
        recorder = live.recorder
        assert recorder is not None
        try:
            show = _progress()
            live.sinks.append(StderrReporter(live.model, show_run))
            for place, experiment in enumerate(settled, 1):
                name = f"run {place} of {len(settled)}, {experiment.kernel}: "
                run_one(live, experiment, args)
        except Stopped:
            reason = "signal"
        finally:
            on_interrupt(signal.SIG_IGN)  # a second Ctrl-C must not leave a worker behind
            close_session(live, args, reason)
            show("")
        session = Session(recorder.path)
        finalize(session, undo.pop_all().close)
        return session


def _progress() -> Callable[[str], object]:
    """Return the function that shows progress: in a notebook below the cell, else on a terminal."""
    ipython: Any = sys.modules.get("IPython")
    if sys.stderr.isatty() or ipython is None or ipython.get_ipython() is None:
        return show_progress
    handle = ipython.display.display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)
