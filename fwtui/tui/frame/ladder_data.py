"""The ladders of a session: the recorded one, and the one of this machine's runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.ladder import best_rates
from fwtui.common.errors import Refused
from fwtui.learn.lessons import lessons, session_path
from fwtui.sessions.folders import kept_folder, own_folder, shipped_folder
from fwtui.sessions.library import files_in, load_model
from fwtui.stream.events import Machine
from fwtui.stream.run import Run
from fwtui.tui.frame.view import View
from fwtui.tui.widgets.ladder_chart import Ladder, LadderData, RecordedLadder, ladder_of, ladder_on

LATEST, LARGEST = 6, 2**20  # number of the user's newest sessions that are read; maximum bytes of each


def gather(machine: Machine) -> LadderData:
    """Read the recorded ladder and the sessions of this machine; unreadable sessions are skipped."""
    return LadderData(recorded(), tuple(_session_runs(machine)))


@cache
def recorded() -> RecordedLadder:
    """Return the recorded ladder; empty if the course or a recording cannot be read, which Learn reports."""
    try:
        course = lessons()
        steps = {s.written.kernel: (s.name, f"step {s.number}, {course.title(s)}") for s in reversed(course.course)}
        rungs = course.ladder()
        last = next(e for e in map(course.cited, course.course) if e.run is rungs[-1].run)
        return RecordedLadder(ladder_on(rungs, f"recorded on {last.device}"), session_path(shipped_folder(), last.session), steps)
    except Refused:
        return RecordedLadder()


def _session_runs(machine: Machine) -> Iterator[tuple[str, Run]]:
    for path in [*files_in(own_folder())[::-1], *files_in(kept_folder())[::-1]][:LATEST]:
        try:
            if path.stat().st_size > LARGEST:
                continue
            model, _ = load_model(path)
        except (Refused, OSError):
            continue
        there = model.header.machine if model.header is not None else None
        if there is not None and (there.cpu, there.cores) == (machine.cpu, machine.cores):
            yield from ((ComparedRun(model, run).device, run) for run in model.runs.values())


def ladders(view: View) -> list[Ladder]:
    """Return the ladder of a recording, or the ladders of a live session, the longest first.

    A live session has the recorded ladder, with this machine's rates added, and the ladder of this machine.
    """
    if view.source is None:
        return [*filter(None, (ladder_of(view.model.runs.values(), "this recording"),))]
    recorded = view.ladder_data.recorded.ladder if view.ladder_data is not None else None
    if recorded is not None:
        recorded = recorded._replace(here=best_rates(_own_runs(view), recorded.rungs))
    return sorted(filter(None, (recorded, local_ladder(view))), key=lambda one: -len(one.rungs))


def local_ladder(view: View) -> Ladder | None:
    return ladder_of(_own_runs(view), "this machine")


def _own_runs(view: View) -> Iterator[Run]:
    """Yield the saved runs of this machine's devices and the runs of this session."""
    devices = {gpu.name for gpu in view.found.gpus} if view.found is not None else set[str]()
    runs = view.ladder_data.session_runs if view.ladder_data is not None else ()
    yield from (run for device, run in runs if run.backend == "cpu" or device in devices)
    yield from view.model.runs.values()
