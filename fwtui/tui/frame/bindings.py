"""Actions that several screens share: of live sessions, of recordings, and of both."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from textual.widgets import Input, OptionList, Select

from fwtui.tui.actions import Action, Arrowed, bound, first_reason, hidden, hidden_look, key_name, look, require, rows_of
from fwtui.tui.frame.places import COMPARE, PLACES

if TYPE_CHECKING:
    from fwtui.tui.frame.view import View


live, recorded, over_another = attrgetter("source"), attrgetter("playback"), attrgetter("close")
# nothing starts during a run; only the keys of cue cards work during a presentation
is_busy = require(lambda screen: not screen.view.busy, "something is running; {key[cancel]} cancels it")
is_presented = require(lambda screen: not screen.view.presenting, "cue cards are presented; {key[back]} leaves them")
no_run = require(lambda screen: screen.view.run is not None, "no run has started yet")
cannot_run = require(lambda screen: screen.view.accepts_run, "something is running; {key[cancel]} cancels it")
# only runs that this session started can be measured further
not_started_here = first_reason(
    no_run,
    require(
        lambda screen: screen.view.source is None or screen.view.run.id in screen.view.source.experiments,
        "run {screen.view.run.id} was not started in this session; run it again",
    ),
)
_nameless = attrgetter("view.nameless")
_no_way = require(attrgetter("way_back"), "")
_is_idle = require(attrgetter("view.busy"), "no run is active")
_not_recorded = require(attrgetter("view.recorder"), "a marker needs a recording; {key[record]} saves this session")
_nothing_to_point_at = require(
    lambda screen: any(isinstance(widget, Arrowed) for widget in screen.focus_chain), "no chart or list here has a cursor"
)
# an open list of choices scrolls its own pages
_no_panel = require(
    lambda screen: screen.view.presenting or (screen.panel() is not None and not isinstance(screen.focused, OptionList)), ""
)


def asks(view: View, by_run: bool) -> bool:
    """Return True if the marker at the recording's position has a question with an answer; `by_run`: an answer of a run."""
    from fwtui.learn.questions import cue_of

    marker, playback = view.marker, view.playback
    if marker is None or (playback is not None and playback.over):
        return False
    return cue_of(marker[2]).kind is not None if by_run else cue_of(marker[2]).answered


_nothing_asked = require(lambda screen: asks(screen.view, False), "the marker here has no question with an answer")
_no_guess = first_reason(require(lambda screen: asks(screen.view, True), "the marker here has no question about a run"), no_run)


def _play_or_pause(screen: Any) -> str:
    return "Pause" if screen.view.playback is not None and screen.view.playback.player.playing else "Play"


_played = partial(look, belongs=recorded)
_moved = partial(hidden_look, belongs=recorded)


def _arrow(key: str, action: str, title: str, tooltip: str, id: str) -> Action:
    def is_free(screen: Any) -> bool:
        """Return False if a field, a list of choices or a cursor has the focus and uses the key."""
        taken = isinstance(screen.focused, Input | OptionList | Select)
        return screen.view.presenting or not (taken or any(row.key == key for row in rows_of(type(screen.focused))))

    return _moved(key, action, title, tooltip, require(is_free, ""), id, priority=True)


CANCEL = bound("c", "cancel", "Cancel", "cancel the run before its next step", _is_idle, belongs=live, deliberate=True)
RECORD = bound("R", "record", "Save session", "save this session under a name; again: rename it", _nameless, belongs=live)
MARK = bound("m", "mark", "Marker", "add a marker with a text to the recording", _not_recorded, belongs=live)
PAUSE = hidden_look("p", "pause", "Pause", "freeze the view, on and off; runs continue", belongs=live, deliberate=True)
CURSOR = look("x", "cursor", "Cursor", "a cursor in the chart that the arrows move; on and off", _nothing_to_point_at)

# rows of one screen that texts of other screens name
LIMITS = hidden(
    "D", "limits", "Peak rates", "measure the device's peak rates (20 s)", is_busy, belongs=live, place="explain", deliberate=True
)
_counters = "hardware counters of the run, from a profile by ncu"
COUNTERS = hidden_look("h", "counters", "Counters", _counters, place="explain", deliberate=True)
CLIMB = look("C", "climb", "Ladder", "the kernels from the slowest to the fastest", place=COMPARE)
COURSE = look("t", "course", "Course", "the course, up to the fastest kernel; on and off", id="learn.course", place="learn")

# move() changes the position in a recording, adjust() its speed and stops: both name a method of Playback
TRANSPORT = (
    _played("space", "move('play')", "Play", "play and pause; from the end it starts again", id="play", title_now=_play_or_pause),
    _played(".", "move('step', 1)", "Step", "one event forward, telemetry excepted", id="step"),
    _moved("comma", "move('step', -1)", "Step back", "one event back", id="step.back"),
    _played("]", "move('next_run', 1)", "Next run", "to the beginning of the next run", id="run.next"),
    _moved("[", "move('next_run', -1)", "Previous run", "to the beginning of the previous run", id="run.before"),
    _moved(")", "move('next_marker', 1)", "Next marker", "to the next marker", id="marker.next"),
    _moved("(", "move('next_marker', -1)", "Previous marker", "to the previous marker", id="marker.before"),
    _arrow("right", "move('jump', 5)", "Forward", "5 s forward", "jump"),
    _arrow("left", "move('jump', -5)", "Backward", "5 s back", "jump.back"),
    _arrow("home", "move('seek', 0)", "Beginning", "to the beginning", "home"),
    _arrow("end", "move('seek', 1)", "End", "to the end", "end"),
    _moved(">,+", "adjust('speed', 1)", "Faster", "double the speed, up to 64x", id="faster"),
    _moved("<,-", "adjust('speed', -1)", "Slower", "halve the speed, down to 0.25x", id="slower"),
    _moved("M", "adjust('stops')", "Stops", "stop at every marker, on and off", id="stops"),
    _moved("i", "guess", "Guess", "type a guess, which the answer is compared with", _no_guess, "marker.guess"),
    _played("!", "answer", "Answer", "the answer to the question of this marker", _nothing_asked, "marker.answer"),
)

# what actions do during a presentation of cue cards; "": the same. All others are unavailable then
ON_CARDS = {
    **dict.fromkeys(("play", "jump", "panel.down", "marker.next"), "the answer, then the next card"),
    **dict.fromkeys(("jump.back", "panel.up", "marker.before"), "the previous card"),
    "back": "leave the cue cards",
    **dict.fromkeys(("marker.guess", "marker.answer", "help", "quit", "close", "presenter", "save", "log"), ""),
}
# moves that turn the cue cards during a presentation, and by how many; the others do nothing then
TURNS = {("play",): 1, ("jump", 5): 1, ("jump", -5): -1, ("next_marker", 1): 1, ("next_marker", -1): -1}

# on every screen; help and quit come first, so that they fit in every footer
COMMON = (
    look("question_mark,f1", "help", "Help", "every key, and the glossary"),
    look(
        "q",
        "leave",
        "Quit",
        "end the program; a run in progress is cancelled",
        id="quit",
        belongs=lambda view: view.close is None,
        deliberate=True,
    ),
    look("q", "close", "Back", "back to the dashboard; runs there have continued", belongs=over_another, deliberate=True),
    look("escape", "back", "Back", "leave a field, return to the newest run or first screen, or leave a replay", _no_way),
    hidden_look("pageup", "scroll_panel(-1)", "Panel up", "scroll a panel up", _no_panel, "panel.up", priority=True),
    hidden_look("pagedown", "scroll_panel(1)", "Panel down", "scroll a panel down", _no_panel, "panel.down", priority=True),
    hidden_look("asterisk", "details", "Details", "the origin of each number: model, probe, GPM, counters; on and off"),
    hidden_look("P", "presenter", "Present", "for a projector: large numbers, fewer panels, cue cards one by one; on and off"),
    hidden("y", "save", "Save", "save or copy the table or the screen"),
    hidden_look("l", "log", "Log", "the complete log, and the last output of a crashed process"),
)
# for screens whose own keys leave less room in the footer
SHARED = (
    *(replace(row, show=row.id in ("play", "marker.answer")) for row in TRANSPORT),
    CANCEL,
    replace(RECORD, show=False),
    replace(MARK, show=False),
    PAUSE,
)

# alt+digit also works in a field that accepts digits: terminals send an escape before the digit, macOS another character
TO_PLACES = tuple(
    hidden_look(keys, f"place('{place.name}')", place.title, place.tooltip, id=f"place.{place.name}", **more)
    for place in PLACES
    for keys in (f"{place.key},alt+{place.key},{key_name(place.alternative)}",)
    for more in ({"key_display": place.key, "deliberate": True},)
)
ELSEWHERE = (*TO_PLACES, *COMMON, LIMITS, COUNTERS, CLIMB, COURSE)
NEXT_FIELD = hidden_look("tab", "app.focus_next", "Next", "to the next field; shift+tab: to the previous one", id="field.next")
PALETTE = hidden_look("ctrl+p", "app.command_palette", "Palette", "panels, sessions, terms, themes", id="palette", priority=True)
ANY_PLACE = Action("alt+digit", "", "Screen", key_display="alt+1 …", tooltip="to that screen, also while typing", shows=True)
EVERYWHERE = (ANY_PLACE, NEXT_FIELD, PALETTE)
OF_THE_APP = (
    *TO_PLACES,
    *EVERYWHERE[1:],
    hidden_look("shift+tab", "app.focus_previous", "Previous", "to the previous field", id="field.before"),
    hidden_look("ctrl+q", "app.quit", "Quit", "end the program, also while typing", id="quit.now", priority=True),
    hidden_look("ctrl+c", "app.help_quit", "Quit", "show which key ends the program", id="quit.help"),
    hidden("ctrl+z", "app.suspend_process", "Suspend", "suspend the program; `fg` in the shell resumes it", id="suspend"),
)
MARKS = hidden_look("up", "", "Up", "mark the row above"), hidden_look("down", "", "Down", "mark the row below")
