"""Applications for tests: the dashboard with a scripted session, and replays at their end."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from fake_live import FakeLive
from textual.app import App
from textual.screen import Screen

import fwtui.tui
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import reader
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.loaded_recording import Recording, named
from fwtui.tui.frame.playback import Playback
from fwtui.tui.frame.view import View

S = TypeVar("S", bound=Screen[Any])
Replay = Callable[..., FwtuiApp]  # of these events
Compare = Callable[..., bool]  # a picture with the one that is kept


def own_classes() -> Iterator[type]:
    """Yield every class of fwtui.tui."""
    for module in pkgutil.walk_packages(fwtui.tui.__path__, "fwtui.tui."):
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if one.__module__ == module.name:
                yield one


def dashboard_of(live: FakeLive, experiment: Experiment | None = None, **given: Any) -> FwtuiApp:
    """Return a dashboard, by default of a machine without a GPU."""
    usual = {"still": True, "found": Hardware(reason="no NVIDIA driver is installed")}
    return FwtuiApp(live, experiment or Experiment(kernel="tiled-cpu", n=512), **usual | given)


def replay_at_end(path: Path, place: str = "run", **given: Any) -> FwtuiApp:
    """Return a replay of a session file at its end."""
    loaded = reader.load(path)
    return FwtuiApp(replay=Recording(named(path), loaded, start=loaded.duration), still=True, place=place, **given)


def screen_of(app: App[Any], kind: type[S]) -> S:
    """Return the current screen, which must be of that class."""
    assert isinstance(app.screen, kind), app.screen
    return app.screen


def view_of(app: FwtuiApp) -> View:
    assert app.view is not None
    return app.view


def playback_of(app: FwtuiApp) -> Playback:
    played = view_of(app).playback
    assert played is not None
    return played
