"""Keys that several places have: of a live session, of a recording, and of everything."""

from __future__ import annotations

from dataclasses import replace

from textual.binding import Binding

from fwtui.tui.frame.places import PLACES

BASELINE = Binding("b", "baseline", "Baseline", id="baseline", tooltip="compare with the marked run (again: stop comparing)")
COUNTERS = Binding(
    "h",
    "counters",
    "Counters",
    id="counters",
    show=False,
    tooltip="hardware counters of the run that is shown: profiled apart by ncu, never timed with it",
)
ANSWERS = Binding(
    "A",
    "answers",
    "Answers",
    id="answers",
    key_display="A",
    show=False,
    tooltip="what the distances say: diameter, radius, centre, components, histogram, map",
)
CANCEL = Binding("c", "cancel", "Cancel", id="cancel", tooltip="stop what is going: a run before its next step")
RECORD = Binding("R", "record", "Record", id="record", key_display="R", tooltip="recording on and off")
MARK = Binding("m", "mark", "Marker", id="mark", tooltip="leave a marker with a few words in the recording")
MOTION = Binding(
    "o",
    "motion",
    "Motion",
    id="motion",
    show=False,
    tooltip="slow motion: the plan of a run that has ended, step by step, on and off",
)
PAUSE = Binding(
    "p", "pause", "Pause", id="pause", show=False, tooltip="stop what is shown (again: go on); runs and recordings go on"
)
CURSOR = Binding("x", "cursor", "Cursor", id="cursor", tooltip="a cursor in the chart, moved by the arrows; Esc takes it away")
LIVE = (CANCEL, RECORD, MARK, PAUSE)

TRANSPORT = (
    Binding("space", "play", "Play", id="play", tooltip="play and pause; from the end it begins again"),
    Binding("full_stop", "step(1)", "Step", id="step", key_display=".", tooltip="one event on (telemetry is no event)"),
    Binding("comma", "step(-1)", "Step back", id="step.back", key_display=",", show=False, tooltip="one event back"),
    Binding(
        "right_square_bracket", "next_run(1)", "Next run", id="run.next", key_display="]", tooltip="to where the next run begins"
    ),
    Binding(
        "left_square_bracket",
        "next_run(-1)",
        "Run before",
        id="run.before",
        key_display="[",
        show=False,
        tooltip="to where the run before begins",
    ),
    Binding(
        "right_curly_bracket",
        "step_round(1)",
        "Next round",
        id="round",
        key_display="}",
        show=False,
        tooltip="to the next told round of a phase pass",
    ),
    Binding(
        "left_curly_bracket",
        "step_round(-1)",
        "Round back",
        id="round.back",
        key_display="{",
        show=False,
        tooltip="to the told round before",
    ),
    Binding(
        "right_parenthesis",
        "next_marker(1)",
        "Next mark",
        id="marker.next",
        key_display=")",
        show=False,
        tooltip="to the next marker",
    ),
    Binding(
        "left_parenthesis",
        "next_marker(-1)",
        "Mark back",
        id="marker.before",
        key_display="(",
        show=False,
        tooltip="to the marker before",
    ),
    Binding("G", "go", "Go to", id="go", key_display="G", show=False, tooltip="a time, a share, a run or a marker that you name"),
    Binding("right", "jump(1)", "Forward", id="jump", show=False, priority=True, tooltip="5 s on"),
    Binding("left", "jump(-1)", "Backward", id="jump.back", show=False, priority=True, tooltip="5 s back"),
    Binding("shift+right", "leap(1)", "Leap", id="leap", show=False, priority=True, tooltip="a tenth of the session on"),
    Binding(
        "shift+left", "leap(-1)", "Leap back", id="leap.back", show=False, priority=True, tooltip="a tenth of the session back"
    ),
    Binding("home", "seek(0)", "Beginning", id="home", show=False, priority=True, tooltip="to the beginning"),
    Binding("end", "seek(1)", "End", id="end", show=False, priority=True, tooltip="to the end"),
    Binding(
        "greater_than_sign", "speed(1)", "Faster", id="faster", key_display=">", show=False, tooltip="twice as fast, up to 64x"
    ),
    Binding(
        "less_than_sign",
        "speed(-1)",
        "Slower",
        id="slower",
        key_display="<",
        show=False,
        tooltip="half as fast, down to 0.25x",
    ),
    Binding("L", "loop", "Loop", id="loop", key_display="L", show=False, tooltip="begin again at the end, on and off"),
    Binding("I", "gaps", "Idle gaps", id="gaps", key_display="I", show=False, tooltip="shorten gaps in which nothing happens"),
    Binding("M", "stops", "Stops", id="stops", key_display="M", show=False, tooltip="stop at every marker, on and off"),
    Binding(
        "exclamation_mark",
        "answer",
        "Answer",
        id="marker.answer",
        key_display="!",
        tooltip="what the run says to the question of this marker",
    ),
)
TRANSPORTED = frozenset(binding.action.partition("(")[0] for binding in TRANSPORT)

COMMON = (
    Binding(
        "escape",
        "back",
        "Back",
        id="back",
        show=False,
        tooltip="out of a field or a chart, to the newest run, to the first place, out of a replay over the dashboard",
    ),
    Binding(
        "pageup",
        "scroll_panel(-1)",
        "Panel up",
        id="panel.up",
        show=False,
        priority=True,
        tooltip="scroll what is taller than its place up",
    ),
    Binding("pagedown", "scroll_panel(1)", "Panel down", id="panel.down", show=False, priority=True, tooltip="scroll it down"),
    Binding(
        "dollar_sign",
        "cost",
        "Own cost",
        id="cost",
        key_display="$",
        show=False,
        tooltip="what this dashboard and its telemetry cost, on and off",
    ),
    Binding(
        "P",
        "presenter",
        "Presenter",
        id="presenter",
        key_display="P",
        show=False,
        tooltip="large figures and fewer panels, on and off",
    ),
    Binding("y", "save", "Save", id="save", show=False, tooltip="keep or copy the table, the results or the screen"),
    Binding("l", "log", "Log", id="log", show=False, tooltip="the whole log, and the last words of whoever died"),
    Binding("question_mark,f1", "help", "Help", id="help", key_display="?", tooltip="every key, and what the words mean"),
    Binding("q", "leave", "Quit", id="quit", tooltip="end the program; a run that is going is cancelled"),
    Binding("q", "close", "Back", id="close", tooltip="back to the dashboard; a run there has gone on"),
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

# what Textual makes of alt and a digit where the terminal sends an escape before it, or macOS a sign
ALT = {
    "1": "inverted_exclamation_mark",
    "2": "trade_mark_sign",
    "3": "pound_sign",
    "4": "cent_sign",
    "5": "infinity",
    "6": "section_sign",
    "7": "pilcrow_sign",
}
# also with alt, for whoever is typing into a field
TO_PLACES = tuple(
    Binding(
        f"{place.key},alt+{place.key},{ALT[place.key]}",
        f"place('{place.name}')",
        place.title,
        id=f"place.{place.name}",
        key_display=place.key,
        show=False,
        tooltip=place.tooltip,
    )
    for place in PLACES
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
