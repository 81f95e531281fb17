"""Keys that several places have: of a live session, of a recording, and of everything."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from textual.binding import Binding
from textual.keys import _character_to_key

from fwtui.tui.frame.places import PLACES


def bound(keys: str, action: str, title: str, tooltip: str, id: str = "", **more: Any) -> Binding:
    """A binding; its id is its action unless another is given, and `more` goes to Textual."""
    return Binding(keys, action, title, tooltip=tooltip, id=id or action, **more)


hidden = partial(bound, show=False)  # not in the footer, where there is no room for all

BASELINE = bound("b", "baseline", "Baseline", "compare with the marked run (again: with the first run of each graph)")
COUNTERS = hidden(
    "h", "counters", "Counters", "hardware counters of the run that is shown, from a separate profile by ncu; never a timing"
)
ANSWERS = hidden("A", "answers", "Answers", "what the distances say: diameter, radius, centre, components, histogram, map")
CANCEL = bound("c", "cancel", "Cancel", "stop what is running; a run stops before its next step")
RECORD = bound("R", "record", "Keep", "keep this session under a name, from its beginning; again: rename it")
GO_ON = hidden("X", "go_on", "Go on", "continue the last session: its runs, its baseline, its recording")
MARK = bound("m", "mark", "Marker", "leave a marker with a few words in the recording")
MOTION = hidden("o", "motion", "Motion", "slow motion: the plan of a finished run, step by step; on and off")
PAUSE = hidden("p", "pause", "Pause", "freeze the view (again: go on); runs and recordings go on")
RACE = hidden("g", "race", "Race", "race the run that is shown against the baseline, else against the one before of the same n")
CLIMB = hidden("C", "climb", "The climb", "the kernels as a staircase, from the slowest to the fastest, step by step")
WATCH = hidden("W", "watch", "Watch", "your own kernel judged at each save: right, or where it is not, how fast, and why")
CURSOR = bound("x", "cursor", "Cursor", "a cursor in the chart, moved by the arrows; Esc takes it away")
LIMITS = hidden("D", "limits", "Limits", "measure what the device of this run can do at most (about 20 s); kept for later")
LIVE = (CANCEL, RECORD, MARK, PAUSE, LIMITS)

# move() goes elsewhere in a recording, adjust() changes how it is played: both name a method of Playback
TRANSPORT = (
    bound("space", "move('play')", "Play", "play and pause; from the end it begins again", id="play"),
    bound(".", "move('step', 1)", "Step", "one event forward (telemetry does not count)", id="step"),
    hidden("comma", "move('step', -1)", "Step back", "one event back", id="step.back"),
    bound("]", "move('next_run', 1)", "Next run", "to where the next run begins", id="run.next"),
    hidden("[", "move('next_run', -1)", "Previous run", "to where the previous run begins", id="run.before"),
    hidden("}", "move('step_round', 1)", "Next round", "to the next recorded round of a phase pass", id="round"),
    hidden("{", "move('step_round', -1)", "Round back", "to the previous recorded round", id="round.back"),
    hidden(")", "move('next_marker', 1)", "Next mark", "to the next marker", id="marker.next"),
    hidden("(", "move('next_marker', -1)", "Mark back", "to the marker before", id="marker.before"),
    hidden("G", "go", "Go to", "go to a time, a share, a run or a marker"),
    hidden("right", "move('jump', 5)", "Forward", "5 s forward", id="jump", priority=True),
    hidden("left", "move('jump', -5)", "Backward", "5 s back", id="jump.back", priority=True),
    hidden("shift+right", "move('leap', 0.1)", "Leap", "a tenth of the session forward", id="leap", priority=True),
    hidden("shift+left", "move('leap', -0.1)", "Leap back", "a tenth of the session back", id="leap.back", priority=True),
    hidden("home", "move('seek', 0)", "Beginning", "to the beginning", id="home", priority=True),
    hidden("end", "move('seek', 1)", "End", "to the end", id="end", priority=True),
    hidden(">", "adjust('speed', 1)", "Faster", "twice as fast, up to 64x", id="faster"),
    hidden("<", "adjust('speed', -1)", "Slower", "half as fast, down to 0.25x", id="slower"),
    hidden("L", "adjust('loop')", "Loop", "start again at the end, on and off", id="loop"),
    hidden("I", "adjust('gaps')", "Idle gaps", "shorten gaps in which nothing happens", id="gaps"),
    hidden("M", "adjust('stops')", "Stops", "stop at every marker, on and off", id="stops"),
    bound("!", "answer", "Answer", "the answer to the question of this marker", id="marker.answer"),
    hidden("T", "present", "Present", "a lecture's cue cards, large and one by one; nothing else moves (again: leave them)"),
)

COMMON = (
    hidden(
        "escape",
        "back",
        "Back",
        "one step back: out of a field or a chart, to the newest run, to the first place, out of a replay",
    ),
    hidden("pageup", "scroll_panel(-1)", "Panel up", "scroll a panel up", id="panel.up", priority=True),
    hidden("pagedown", "scroll_panel(1)", "Panel down", "scroll a panel down", id="panel.down", priority=True),
    hidden("$", "cost", "Own cost", "what this dashboard and its telemetry cost, on and off"),
    hidden("P", "presenter", "Presenter", "large figures and fewer panels, on and off"),
    hidden("y", "save", "Save", "save or copy the table, the results or the screen"),
    hidden("l", "log", "Log", "the whole log, and the last output of a process that died"),
    bound("question_mark,f1", "help", "Help", "every key, and what the words mean", key_display="?"),
    bound("q", "leave", "Quit", "end the program; a run in progress is cancelled", id="quit"),
    bound("q", "close", "Back", "back to the dashboard; a run there has gone on"),
)
# where a place has keys of its own, the footer has no room for all of them
SHARED = (
    *(replace(binding, show=binding.id in ("play", "marker.answer")) for binding in TRANSPORT),
    CANCEL,
    replace(RECORD, show=False),
    replace(MARK, show=False),
    PAUSE,
    *COMMON,
)

# also with alt, for a user who types into a field; terminals send an escape before the digit, or what macOS makes of both
TO_PLACES = tuple(
    hidden(keys, f"place('{place.name}')", place.title, place.tooltip, id=f"place.{place.name}", key_display=place.key)
    for place in PLACES
    for keys in (f"{place.key},alt+{place.key},{_character_to_key(place.alternative)}",)
)
EVERYWHERE = (
    Binding("alt+digit", "", "Place", key_display="alt+1 …", tooltip="to that place, also while typing"),
    Binding("tab", "", "Next", tooltip="to the next field; shift+tab to the one before"),
    Binding("ctrl+p", "", "Palette", tooltip="kernels, sessions, pictures, themes"),
)
MOVES = (
    Binding("up", "", "Up", tooltip="mark the run above"),
    Binding("down", "", "Down", tooltip="mark the run below"),
    Binding("enter", "", "Show", tooltip="show the marked run"),
)
