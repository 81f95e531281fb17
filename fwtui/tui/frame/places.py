"""The places that exist, in the order of their keys: a place is added by one file with its screen, and one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

MIN = (60, 16)  # columns and rows below which a card says what is needed
BESIDE = "compare"  # the place that takes a second session


class Place(NamedTuple):
    """One screen of the bar. A screen is named as module:class below fwtui.tui, so that nothing is imported before it is seen.

    The class is called with the View. Where a place has no screen for a live session or for a recording, it does not
    appear there at all. Its keys, its tab, its line in the help and the palette, and its name for `--screen` are made of this.
    """

    key: str
    alternative: str  # what macOS makes of alt and that key
    name: str  # for `--screen` and the ids of its bindings
    tooltip: str  # a few words, in lower case
    live: str = ""
    replay: str | None = None  # the screen of a recording, "" for none; None: the same one
    replay_title: str = ""  # where a recording calls it something else
    pictured: bool = True  # what it shows of a recording is nothing but that recording
    called: str = ""  # instead of its name: places() says so for a recording

    @property
    def title(self) -> str:
        return self.called or self.name.capitalize()

    @property
    def recorded(self) -> str:
        """The screen of a recording; empty if it has none."""
        return self.live if self.replay is None else self.replay

    def where(self, replayed: bool) -> str:
        """Its screen of a recording or of a live session; empty if it has none."""
        return self.recorded if replayed else self.live


def load(where: str) -> Any:
    """The class of that name."""
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
    Place(
        "2",
        "™",
        "sweep",
        "many runs over several values",
        "sweep.live_screen:LiveSweepScreen",
        "sweep.screen:RecordedSweepScreen",
    ),
    Place("3", "£", BESIDE, "runs against a baseline, and races", "compare.screen:CompareScreen"),
    Place("4", "¢", "explain", "roofline, occupancy, warp stall reasons, hotspots", "explain.screen:ExplainScreen"),
    Place("5", "∞", "telemetry", "power, clocks, utilisation and memory over time", "telemetry.screen:TelemetryScreen"),
    Place("6", "§", "learn", "follow a small graph through a kernel, k by k", "learn.screen:LearnScreen", replay=""),
    Place("7", "¶", "sessions", "recordings that are here", "sessions.screen:SessionsScreen", pictured=False),
)


def places(replayed: bool) -> tuple[Place, ...]:
    """The places of a recording or of a live session, by the titles that they have there."""
    return tuple(p._replace(called=p.replay_title) if replayed else p for p in PLACES if p.where(replayed))


def place_names() -> tuple[str, ...]:
    """The places of a recording, for `fwtui render --screen`."""
    return tuple(place.name for place in PLACES if place.recorded and place.pictured)
