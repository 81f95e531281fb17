"""Actions that several places have: of a live session, of a recording, and of everything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.widgets import Input, OptionList, Select

from fwtui.tui.actions import Action, bound, hidden, hidden_look, key_name, look, moved
from fwtui.tui.arrow_keys import Arrowed
from fwtui.tui.frame.places import PLACES

if TYPE_CHECKING:
    from fwtui.tui.frame.base_screens import PlaceScreen
    from fwtui.tui.frame.view import View


def live(view: View) -> bool:
    return view.source is not None


def recorded(view: View) -> bool:
    return view.playback is not None


def over_another(view: View) -> bool:
    return view.close is not None


def the_only_one(view: View) -> bool:
    return view.close is None


def is_busy(screen: PlaceScreen) -> str | None:
    """Nothing can be started while something goes on."""
    return f"something is running; {screen.key_of('cancel')} cancels it" if screen.view.busy else None


def is_idle(screen: PlaceScreen) -> str | None:
    return None if screen.view.busy else "nothing is running that could be cancelled"


def is_presented(screen: PlaceScreen) -> str | None:
    """Other keys do nothing while cue cards are presented."""
    return f"cue cards are presented; {screen.key_of('back')} leaves them" if screen.view.presenting else None


def no_run(screen: PlaceScreen) -> str | None:
    return "no run has begun yet" if screen.view.run is None else None


def not_asked_here(screen: PlaceScreen) -> str | None:
    """Only of a run that this session started more can be asked."""
    run, source = screen.view.run, screen.view.source
    if run is None or source is None or run.id in source.asked:
        return no_run(screen)
    return f"nothing more can be asked of run {run.id}; run it again"


def form_open(screen: PlaceScreen) -> str | None:
    return None if screen.narrow else "the form is open already, on the left"


def _not_recorded(screen: PlaceScreen) -> str | None:
    source = screen.view.source
    if source is not None and (source.recorder or source.keeper) is not None:
        return None
    return f"a marker needs a recording; {screen.key_of('record')} keeps this session"


def _nothing_to_point_at(screen: PlaceScreen) -> str | None:
    there = any(isinstance(widget, Arrowed) for widget in screen.focus_chain)
    return None if there else "the arrows have nothing to move here"


def _no_guess(screen: PlaceScreen) -> str | None:
    """A guess is compared with what a run answers."""
    from fwtui.learn.cue import cue_of

    marker = screen.view.marker
    if _nothing_asked(screen) is None and marker is not None and cue_of(marker[2]).kind is not None:
        return no_run(screen)
    return "no marker here asks what a run answers"


def _nothing_asked(screen: PlaceScreen) -> str | None:
    """No marker at the recording's position asks a question that has an answer."""
    from fwtui.learn.cue import cue_of

    marker, playback = screen.view.marker, screen.view.playback
    asked = marker is not None and cue_of(marker[2]).answered and not (playback is not None and playback.over)
    return None if asked else "no marker here asks a question that has an answer"


def _arrows_taken(screen: PlaceScreen) -> str | None:
    """Lists and fields have a use for these keys too."""
    taken = not screen.view.presenting and isinstance(screen.focused, Arrowed | Input | OptionList | Select)
    return "" if taken else None


def _nothing_to_scroll(screen: PlaceScreen) -> str | None:
    """An open list of choices has pages of its own."""
    scrolls = screen.panel() is not None and not isinstance(screen.focused, OptionList)
    return None if scrolls or screen.view.presenting else ""


def _first_place(screen: PlaceScreen) -> str | None:
    return "" if screen.way_back is None else None


_played = partial(look, belongs=recorded)
_moved = partial(hidden_look, belongs=recorded)


def _arrow(keys: str, action: str, title: str, tooltip: str, id: str, **more: bool) -> Action:
    return _moved(keys, action, title, tooltip, _arrows_taken, id, priority=True, **more)


CANCEL = bound("c", "cancel", "Cancel", "stop what is running; a run stops before its next step", is_idle, belongs=live)
RECORD = bound(
    *("R", "record", "Keep", "keep this session under a name, from its beginning; again: rename it"),
    lambda screen: screen.view.nameless or None,
    belongs=live,
)
QUIET = hidden(
    *("Y", "repeat_noisy", "Quiet", "repeat noisy runs once the machine is quiet (again: do not)"),
    lambda screen: screen.view.all_quiet or None,
    belongs=live,
)
MARK = bound("m", "mark", "Marker", "leave a marker with a few words in the recording", _not_recorded, belongs=live)
PAUSE = hidden_look("p", "pause", "Pause", "freeze the view (again: go on); runs and recordings go on", belongs=live)
MOTION = hidden_look("o", "motion", "Motion", "slow motion: the plan of a finished run, step by step; on and off")
CURSOR = look("x", "cursor", "Cursor", "a cursor in the chart, moved by the arrows; Esc takes it away", _nothing_to_point_at)
LIMITS = hidden(
    *("D", "limits", "Limits", "measure what the device of this run can do at most (about 20 s); kept for later"),
    is_busy,
    belongs=live,
)

# move() goes elsewhere in a recording, adjust() changes how it is played: both name a method of Playback
TRANSPORT = (
    _played("space", "move('play')", "Play", "play and pause; from the end it begins again", id="play"),
    _played(".", "move('step', 1)", "Step", "one event forward (telemetry does not count)", id="step"),
    _moved("comma", "move('step', -1)", "Step back", "one event back", id="step.back"),
    _played("]", "move('next_run', 1)", "Next run", "to where the next run begins", id="run.next"),
    _moved("[", "move('next_run', -1)", "Previous run", "to where the previous run begins", id="run.before"),
    _moved("}", "move('step_round', 1)", "Next round", "to the next recorded round of a phase pass", id="round", rare=True),
    _moved("{", "move('step_round', -1)", "Round back", "to the previous recorded round", id="round.back", rare=True),
    _moved(")", "move('next_marker', 1)", "Next mark", "to the next marker", id="marker.next"),
    _moved("(", "move('next_marker', -1)", "Mark back", "to the marker before", id="marker.before"),
    _moved("G", "go", "Go to", "go to a time, a share, a run or a marker", is_presented),
    _arrow("right", "move('jump', 5)", "Forward", "5 s forward", "jump"),
    _arrow("left", "move('jump', -5)", "Backward", "5 s back", "jump.back"),
    _arrow("shift+right", "move('leap', 0.1)", "Leap", "a tenth of the session forward", "leap", rare=True),
    _arrow("shift+left", "move('leap', -0.1)", "Leap back", "a tenth of the session back", "leap.back", rare=True),
    _arrow("home", "move('seek', 0)", "Beginning", "to the beginning", "home"),
    _arrow("end", "move('seek', 1)", "End", "to the end", "end"),
    _moved(">", "adjust('speed', 1)", "Faster", "twice as fast, up to 64x", is_presented, "faster"),
    _moved("<", "adjust('speed', -1)", "Slower", "half as fast, down to 0.25x", is_presented, "slower"),
    _moved("L", "adjust('loop')", "Loop", "start again at the end, on and off", is_presented, "loop", rare=True),
    _moved(
        *("I", "adjust('gaps')", "Idle gaps", "shorten gaps in which nothing happens, or play them in full"),
        *(is_presented, "gaps"),
        rare=True,
    ),
    _moved("M", "adjust('stops')", "Stops", "stop at every marker, on and off", is_presented, "stops", rare=True),
    _moved("i", "guess", "Guess", "type a guess: it stands beside the answer", _no_guess, "marker.guess"),
    _played("!", "answer", "Answer", "the answer to the question of this marker", _nothing_asked, "marker.answer"),
)

# which of them go through the cue cards while these are presented; no other move does anything then
TURNS = {("play",): 1, ("jump", 5): 1, ("jump", -5): -1, ("next_marker", 1): 1, ("next_marker", -1): -1}

COMMON = (
    hidden_look(
        *(
            "escape",
            "back",
            "Back",
            "one step back: out of a field or a chart, to the newest run, to the first place, out of a replay",
        ),
        _first_place,
    ),
    hidden_look("pageup", "scroll_panel(-1)", "Panel up", "scroll a panel up", _nothing_to_scroll, "panel.up", priority=True),
    hidden_look(
        "pagedown", "scroll_panel(1)", "Panel down", "scroll a panel down", _nothing_to_scroll, "panel.down", priority=True
    ),
    hidden_look("asterisk", "details", "Details", "where each number comes from: model, probe, GPM, counters; on and off"),
    hidden_look("$", "cost", "Own cost", "what this dashboard and its telemetry cost, on and off", rare=True),
    hidden_look("P", "presenter", "Present", "large figures and fewer panels; in a lecture its cue cards one by one; on and off"),
    moved("T", "Present", "present", "presenter", "P"),
    hidden("y", "save", "Save", "save or copy the table, the results or the screen"),
    hidden_look("l", "log", "Log", "the whole log, and the last output of a process that died"),
    look("question_mark,f1", "help", "Help", "every key, and what the words mean"),
    look("q", "leave", "Quit", "end the program; a run in progress is cancelled", id="quit", belongs=the_only_one),
    look("q", "close", "Back", "back to the dashboard; a run there has gone on", belongs=over_another),
)
# where a place has keys of its own, the footer has no room for all of them
SHARED = (
    *(replace(row, show=row.id in ("play", "marker.answer")) for row in TRANSPORT),
    CANCEL,
    replace(RECORD, show=False),
    replace(MARK, show=False),
    PAUSE,
    *COMMON,
)

# also with alt, for a user who types into a field; terminals send an escape before the digit, or what macOS makes of both
TO_PLACES = tuple(
    hidden_look(keys, f"place('{place.name}')", place.title, place.tooltip, id=f"place.{place.name}", key_display=place.key)
    for place in PLACES
    for keys in (f"{place.key},alt+{place.key},{key_name(place.alternative)}",)
)
NEXT_FIELD = hidden_look("tab", "app.focus_next", "Next", "to the next field; shift+tab to the one before", id="field.next")
PALETTE = hidden_look(
    "ctrl+p", "app.command_palette", "Palette", "kernels, sessions, pictures, themes", id="palette", priority=True
)
ANY_PLACE = Action("alt+digit", "", "Place", key_display="alt+1 …", tooltip="to that place, also while typing", shows=True)
EVERYWHERE = (ANY_PLACE, NEXT_FIELD, PALETTE)
OF_THE_APP = (
    *TO_PLACES,
    *EVERYWHERE[1:],
    hidden_look("shift+tab", "app.focus_previous", "Before", "to the field before", id="field.before"),
    hidden_look("ctrl+q", "app.quit", "Quit", "end the program, also while typing", id="quit.now", priority=True),
    hidden_look("ctrl+c", "app.help_quit", "Quit", "say which key ends the program", id="quit.help"),
)
MARKS = hidden_look("up", "", "Up", "mark the run above"), hidden_look("down", "", "Down", "mark the run below")
