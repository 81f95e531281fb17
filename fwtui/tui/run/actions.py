"""The actions of the first place, live and in a replay: rows of the table, and why they can do nothing now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fwtui.analysis import race
from fwtui.analysis.answers import why_none
from fwtui.tui.actions import bound, first, hidden
from fwtui.tui.frame import bindings
from fwtui.tui.frame.bindings import is_presented, no_run
from fwtui.tui.widgets.matrix import MatrixPicture

if TYPE_CHECKING:
    from fwtui.tui.run.live_screen import RunScreen
    from fwtui.tui.run.session_screen import SessionScreen


def _no_motion(screen: SessionScreen) -> str | None:
    run = screen.view.run
    assert run is not None
    if not run.padded:
        return f"the plan of run {run.id} is not known yet"
    if not screen.is_mounted or not screen.query_one(MatrixPicture).region.area:
        return "the picture of the matrix has no room here; make the terminal larger"
    return None


def _no_race(screen: SessionScreen) -> str | None:
    run, other = screen.view.run, screen.rival
    assert run is not None
    if other is None:
        return f"a race needs another run of n {run.n} with a time"
    return None if race.can_race(run) and race.can_race(other) else "only runs with a time can race"


def _no_answers(screen: SessionScreen) -> str | None:
    run = screen.view.run
    assert run is not None
    if screen.told is not None:
        return None
    if run.state == "running":
        return f"run {run.id} has no answers at this moment; go on to its end"
    return f"run {run.id} was recorded without answers (fwtui run --answers)"


def _no_counters(screen: SessionScreen) -> str | None:
    run = screen.view.run
    assert run is not None
    return None if run.counted else f"run {run.id} was recorded without hardware counters"


BASELINE = bound(
    *("b", "baseline", "Baseline", "compare with the marked run (again: with the first run of each graph)", no_run), shows=True
)
COUNTED = hidden(
    *("h", "counters", "Counters"),
    "hardware counters of the run that is shown, from a separate profile by ncu; never a timing",
    first(no_run, _no_counters),
    shows=True,
)
ANSWERS = hidden(
    *("A", "answers", "Answers", "what the distances say: diameter, radius, centre, components, histogram, map"),
    first(no_run, _no_answers),
    shows=True,
)
CLIMB = hidden(
    *("C", "climb", "The climb", "the kernels as a staircase, from the slowest to the fastest, step by step"), shows=True
)
MOTION = replace(bindings.MOTION, unavailable=first(is_presented, no_run, _no_motion))
RACE = hidden(
    *("g", "race", "Race", "race the run that is shown against the baseline, else against the one before of the same n"),
    first(no_run, _no_race),
    shows=True,
)


def _nothing_to_repeat(screen: RunScreen) -> str | None:
    return "no run has begun yet, so there is nothing to repeat" if screen.view.run is None else None


def _no_last_session(screen: RunScreen) -> str | None:
    if screen.view.earlier is None:
        return "there is no last session to go on with"
    return "runs have begun here; the last session is in the list of sessions" if screen.model.runs else None


def _still_read(screen: RunScreen) -> str | None:
    return "the climb is still being read" if screen.gathered is None else None


def _no_more_to_ask(screen: RunScreen) -> str | None:
    run = screen.view.run
    if run is None or run.id in screen.source.asked:
        return bindings.no_run(screen)
    return f"nothing more can be asked of run {run.id}; {screen.key_of('again')} repeats it"


def _cannot_answer(screen: RunScreen) -> str | None:
    run = screen.view.run
    if screen.told is not None:
        return None
    if run is not None and run.state == "running":
        return why_none(run) or None
    words = first(bindings.is_busy, _no_more_to_ask)(screen)
    return words if words is not None or run is None else why_none(run) or None


def _cannot_count(screen: RunScreen) -> str | None:
    run = screen.view.run
    if run is not None and run.counted:
        return None
    words = first(bindings.is_busy, _no_more_to_ask)(screen)
    ended = run is None or run.state == "done"
    return words if words is not None or ended else f"run {run.id} did not finish, so there is nothing to count"


RECORDED = (
    *bindings.TRANSPORT,
    *(BASELINE, RACE, CLIMB, ANSWERS, COUNTED, MOTION),
    *bindings.COMMON,
)

LIVE = (
    bound(
        *("r,ctrl+r", "run", "Run", "start what the form says (ctrl+r also while typing)", bindings.is_busy),
        key_display="r",
    ),
    bindings.CANCEL,
    hidden(
        *("a", "again", "Again", "repeat the run that is shown, and put it into the form"),
        first(bindings.is_busy, _nothing_to_repeat),
    ),
    bindings.RECORD,
    hidden("X", "go_on", "Go on", "continue the last session: its runs, its baseline, its recording", _no_last_session),
    bindings.MARK,
    bindings.PAUSE,
    MOTION,
    bound("e", "edit", "Edit", "the form, where the screen is too narrow to keep it open", bindings.form_open),
    replace(ANSWERS, unavailable=_cannot_answer, shows=False),
    replace(COUNTED, unavailable=_cannot_count, shows=False),
    bindings.LIMITS,
    BASELINE,
    RACE,
    replace(CLIMB, unavailable=_still_read),
    hidden("W", "watch", "Watch", "your own kernel judged at each save: right, or where it is not, how fast, and why"),
    *bindings.COMMON,
)
