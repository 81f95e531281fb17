"""The registry of screens, in the order of their keys. A new screen is one file and one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

MIN = (60, 16)  # minimum columns and rows
COMPARE = "compare"  # the screen that can show the runs of a second session


class Place(NamedTuple):
    """A screen of the top bar: its key, tab, line in help and palette, and its name for `--screen`.

    Its classes are named as module:class below fwtui.tui, and imported when first shown. They are called with the View.
    Without a class for live sessions, or for recordings, the screen does not appear there.
    """

    key: str
    alternative: str  # the character that macOS sends for alt and that key
    name: str  # for `--screen` and the ids of its actions
    tooltip: str  # short, in lower case
    live: str = ""
    replay: str | None = None  # the class for recordings; "" for none, None for the live one
    replay_title: str = ""  # title for recordings, if different
    pictured: bool = True  # depends only on the recording, so that `fwtui render` can draw it
    called: str = ""  # replaces the title; set by places()

    @property
    def title(self) -> str:
        return self.called or self.name.capitalize()

    @property
    def recorded(self) -> str:
        """The class for recordings; empty if it has none."""
        return self.live if self.replay is None else self.replay

    def where(self, replayed: bool) -> str:
        """Return the class for recordings or for live sessions; empty if it has none."""
        return self.recorded if replayed else self.live


def load(where: str) -> Any:
    """Import the class of that name."""
    module, name = where.split(":")
    return getattr(import_module(f"fwtui.tui.{module}"), name)


PLACES: tuple[Place, ...] = (
    Place(
        "1",
        "¡",
        "run",
        "run a kernel: per-phase times, effective bandwidth",
        "run.live_screen:RunScreen",
        "run.session_screen:ReplayScreen",
        "Replay",
    ),
    Place("2", "™", "sweep", "runs over several values", "sweep.live_screen:LiveSweepScreen", "sweep.screen:RecordedSweepScreen"),
    Place("3", "£", COMPARE, "runs against a baseline, and races", "compare.screen:CompareScreen"),
    Place("4", "¢", "explain", "roofline, occupancy, warp stall reasons, hotspots", "explain.screen:ExplainScreen"),
    Place("5", "∞", "telemetry", "power, clocks, utilisation and memory over time", "telemetry.screen:TelemetryScreen"),
    Place("6", "§", "learn", "follow a small graph through a kernel, k by k", "learn.screen:LearnScreen", replay=""),
    Place("7", "¶", "sessions", "recordings on this machine", "sessions.screen:SessionsScreen", pictured=False),
)


def places(replayed: bool) -> tuple[Place, ...]:
    """Return the screens of recordings or of live sessions, with their titles there."""
    return tuple(p._replace(called=p.replay_title) if replayed else p for p in PLACES if p.where(replayed))


def place_names() -> tuple[str, ...]:
    """Return the names for `fwtui render --screen`."""
    return tuple(place.name for place in PLACES if place.recorded and place.pictured)
