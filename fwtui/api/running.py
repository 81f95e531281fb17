"""`fwtui.run`: experiments run from a program, as `fwtui run` runs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from fwtui.api.options import parse
from fwtui.api.session import Session
from fwtui.commands.run import add_run_options, requested_experiments, run_one, settle_all
from fwtui.commands.support.recording_options import close_session, live_session
from fwtui.commands.support.stderr_reporter import StderrReporter, show_progress
from fwtui.common.signals import Stopped, handlers_kept, on_interrupt, signal, stop
from fwtui.common.text import clean
from fwtui.stream.codec import Line

BAR = 20  # characters

Several = int | str | Iterable[int | str]


def run(
    kernel: str | os.PathLike[str] | Iterable[str] | None = None,
    n: Several | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    kind: str | Iterable[str] | None = None,
    density: float | str | Iterable[float | str] | None = None,
    weights: str | None = None,
    real: bool | None = None,
    negative: float | str | None = None,
    connected: bool | None = None,
    exact: bool | None = None,
    seed: int | None = None,
    dtype: str | Iterable[str] | None = None,
    tile: Several | None = None,
    launch: str | Iterable[str] | None = None,
    memory: str | None = None,
    repeats: int | str | None = None,
    budget: float | None = None,
    verify: str | None = None,
    device: int | str | None = None,
    devices: Several | None = None,
    option: Mapping[str, object] | None = None,
    trust: bool = False,
    all: bool = False,
    baseline: str | None = None,
    counters: bool = False,
    answers: bool = False,
    record: bool | str | os.PathLike[str] = False,
    title: str | None = None,
    telemetry_hz: float | None = None,
    record_hz: float | None = None,
    record_source: bool = False,
    samples: str | None = None,
    identify: bool = False,
    **kernel_options: int | str,
) -> Session:
    """Run experiments, one after the other, and return their session.

    The arguments are the options of `fwtui run`, which `fwtui run --help` explains: `kernel` is an id of `fwtui.kernels()` or
    the path of your own kernel, `n` the number of vertices, `budget` seconds, `telemetry_hz` and `record_hz` samples per second.
    Lists of `kernel`, `n`, `kind`, `density`, `dtype`, `tile` and `launch` run every combination. `kernel_options` are the
    options of kernels, such as `threads=256`; those of your own kernel are in `option`.

    Progress and problems of a run are shown on stderr, or below the cell of a notebook. Ctrl-C, or the notebook's interrupt,
    ends the current run; the session has the runs before it. Raises Refused for a mistake, before the first run begins.
    """
    options = {name: value for name, value in locals().items() if name != "kernel_options"}
    args = parse("run", add_run_options, options | kernel_options)
    requested, show = requested_experiments(args), _progress()
    lines: list[Line] = []
    with handlers_kept():
        on_interrupt(stop)
        live = live_session(args)
        live.sinks.append(lines.append)
        reason, interrupted = "closed", None
        try:
            settled = settle_all(live, requested, args)
            name = ""

            def show_run(text: str, share: float | None = None) -> None:
                show(f"{name}{'' if share is None else _bar(share)}{text}" if text else "")

            live.sinks.append(StderrReporter(live.model, show_run))
            for place, experiment in enumerate(settled, 1):
                name = f"run {place} of {len(settled)}, {experiment.kernel}: "
                run_one(live, experiment, args)
        except Stopped:
            reason = "signal"
            current = live.model.run
            interrupted = current.id if current is not None and current.state == "running" else None
        finally:
            on_interrupt(signal.SIG_IGN)  # a second Ctrl-C must not leave a worker behind
            close_session(live, args, reason)
            show("")
        header = live.model.header
        assert header is not None
        header = msgspec.structs.replace(header, title=clean(args.title))
        done = [line for line in lines if interrupted is None or getattr(line.event, "run", None) != interrupted]
        return Session.recorded(header, done, reason, live.now)


def _bar(share: float) -> str:
    filled = round(BAR * min(share, 1.0))
    return f"{'█' * filled}{'░' * (BAR - filled)} "


def _progress() -> Callable[[str], object]:
    """Return the function that shows words of progress: in a notebook below the cell, else on a terminal."""
    ipython: Any = sys.modules.get("IPython")
    if sys.stderr.isatty() or ipython is None or ipython.get_ipython() is None:
        return show_progress
    handle = ipython.display.display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)
