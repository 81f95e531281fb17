"""The dashboard that only shows, as a lecture room gets it: what may be done there, and why nothing else."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NoReturn

from textual.app import App

from fwtui.common.errors import Refused
from fwtui.experiment.device import DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.autosave import Keeper, Taken
from fwtui.sessions.recorder import Recorder
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run

WHY = "read-only here: replays and the course; nothing is run, recorded, saved or changed"
PLACES = ("learn", "sessions")  # those of a session without runs that show something
# every action of this program that only shows, by the class that has it; no other one is carried out, a new one neither
_LOOKS = {
    "App": "focus_next focus_previous",
    "FwtuiApp": "quit help_quit place command_palette",
    "Frame": "adjust answer back close cost cursor go help leave log motion move pause presenter scroll_panel",
    "SessionScreen": "baseline race climb answers counters",
    "SweepScreen": "across measure view",
    "CompareScreen": "pin bring race view",
    "ExplainScreen": "op other panel undo",
    "TelemetryScreen": "lanes whole zoom",
    "LearnScreen": "another by course enter guess kernel lesson size walk weight",
    "SessionsScreen": "back compare filter sort",
    "Dialog": "close",
    "EndScreen": "end",
    "ReadingScreen": "give_up",
    "WaitingScreen": "leave",
    "LanesScreen": "close",
    "ClimbScreen": "other take walk",
    "RaceScreen": "align go hurry",
    "AnswersScreen": "cursor",
    "Chart": "cursor cursor_to choose",
    "LaneChart": "cursor cursor_to choose",
    "HeatMap": "choose move",
    "Slider": "move move_to",
    "DistanceGrid": "mark",
    "DistanceMap": "move",
    "Palette": "command_list",
}
LOOKS = frozenset(f"{owner}.{action}" for owner, actions in _LOOKS.items() for action in actions.split())


def owner(target: type, action: str) -> type | None:
    """The class in which the action of that name is written."""
    names = (f"action_{action}", f"_action_{action}")
    return next((one for one in target.__mro__ if any(name in vars(one) for name in names)), None)


def allows(target: type, action: str) -> bool:
    """Whether an action may be carried out: one of LOOKS, or of Textual's own widgets, which only show."""
    has = owner(target, action)
    if has is None:
        return True  # nothing to carry out
    return f"{has.__name__}.{action}" in LOOKS or (has.__module__.startswith("textual.") and not issubclass(App, has))


class NoEngine:
    """What such a dashboard has instead of a live session: nothing runs, and nothing can be started."""

    def __init__(self) -> None:
        self.model = Model()
        self.asked: dict[int, Experiment] = {}
        self.recorder: Recorder | None = None
        self.keeper: Keeper | None = None
        self.busy = False
        self.now = 0.0

    def drain(self) -> int:
        return 0

    def cancel(self) -> None: ...

    def stop_recording(self, reason: str = "closed") -> None: ...

    def close(self, reason: str = "closed") -> None: ...

    def whole(self, run: Run) -> Run:
        return run

    def without_sampler(self) -> AbstractContextManager[None]:
        return nullcontext()

    def start(self, experiment: Experiment, brief: bool = False) -> NoReturn:
        raise Refused(WHY)

    def settled(self, experiment: Experiment) -> NoReturn:
        raise Refused(WHY)

    def tell(self, event: events.Event) -> NoReturn:
        raise Refused(WHY)

    def mark(self, text: str) -> NoReturn:
        raise Refused(WHY)

    def count(self, run: int) -> NoReturn:
        raise Refused(WHY)

    def answer(self, run: int) -> NoReturn:
        raise Refused(WHY)

    def measure_limits(self, device: DeviceId) -> NoReturn:
        raise Refused(WHY)

    def name(self, title: str) -> Path:
        raise Refused(WHY)

    def go_on(self, taken: Taken) -> NoReturn:
        raise Refused(WHY)
