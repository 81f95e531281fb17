"""The dashboard that only shows: every action that is not one of looking is refused, in words."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import scenes
from pressing import press
from textual.actions import parse
from textual.dom import DOMNode
from textual.widgets import Input

import fwtui.tui
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import folders, library
from fwtui.tui.actions import READ_ONLY, Action, only_shows, table
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Palette
from fwtui.tui.frame.read_only import NoEngine

# what must never be marked as showing only, whatever else is
FORBIDDEN = {
    *("RunScreen.save", "RunScreen.record", "RunScreen.mark", "ExplainScreen.limits", "RunScreen.cancel"),
    *(f"RunScreen.{name}" for name in ("run", "again", "go_on", "edit", "view")),
    *("FormScreen.run", "LiveSweepScreen.run", "LearnScreen.run_here", "LearnScreen.compare"),
    *(f"SessionsScreen.{name}" for name in ("rename", "annotate", "delete", "undo")),
}


def classes() -> Iterator[type[DOMNode]]:
    """Every screen and widget of this program, and the application."""
    for module in pkgutil.walk_packages(fwtui.tui.__path__, "fwtui.tui."):
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(one, DOMNode) and one.__module__ == module.name:
                yield one


def test_every_key_of_the_program_is_a_row_and_only_those_that_show_are_carried_out() -> None:
    found: dict[str, bool] = {}
    for one in classes():
        assert all(isinstance(row, Action) for row in vars(one).get("BINDINGS", ())), one
        for (name, parameters), row in table(one).items():
            found[f"{one.__name__}.{name}"] = row.shows
            assert row.id and row.tooltip and only_shows(one, name, parameters) == row.shows
    assert {name for name in FORBIDDEN if found.get(name, True)} == set(), "each is bound somewhere, and refused"
    assert found["CompareScreen.race"] and found["ReplayScreen.move"] and sum(found.values()) > 60


def test_what_is_no_row_is_refused_but_for_textuals_own_widgets() -> None:
    for action in ("screenshot", "suspend_process", "simulate_key", "push_screen", "toggle_dark", "change_theme"):
        if hasattr(FwtuiApp, f"action_{action}"):
            assert not only_shows(FwtuiApp, action, ()), action
    assert only_shows(Input, "delete_left", ()) and not only_shows(Frame, "save", ())


def test_its_session_starts_nothing() -> None:
    nothing = NoEngine()
    for act in (nothing.start, nothing.settled):
        with pytest.raises(Refused, match="read-only"):
            act(Experiment())
    for act in (nothing.mark, nothing.name, nothing.count, nothing.answer, nothing.tell, nothing.go_on, nothing.measure_limits):
        with pytest.raises(Refused, match="read-only"):
            act(1)  # type: ignore[arg-type]


async def test_each_key_that_would_change_something_says_why_not(tmp_path: Path) -> None:
    path = scenes.write(tmp_path / "session.fwt.jsonl", scenes.gpu_session())
    app = FwtuiApp(replay=path, read_only=True, lesson="1")
    refused: set[str] = set()

    async def press_all() -> None:
        view = app.view
        assert view is not None
        for place in view.places:
            await press(pilot, f"alt+{place.key}")  # in the course a digit alone begins a guess
            screen = app.screen
            assert isinstance(screen, Frame) and place.name == screen.PLACE
            for binding in type(screen).BINDINGS:
                assert isinstance(binding, Action)
                action = parse(binding.action)[1]
                if binding.shows:
                    continue
                screen.say("")
                assert not await app.run_action(binding.action, screen)  # as its key does
                assert app.screen is screen and view.told is not None and view.told.text == READ_ONLY, (place.name, action)
                assert all(other.action != binding.action for other in screen.rows.offered()), "the help does not offer it"
                refused.add(action)
        app.action_command_palette()
        await press(pilot)
        assert isinstance(app.screen, Palette)
        words = [command.words for command in app.screen.shown]
        await press(pilot, "escape")
        assert any(word.startswith("Go to") for word in words)
        assert not [word for word in words if word.startswith(("Save", "Kernel", "Measure", "Reproduce", "Run:", "Keep"))]

    async with app.run_test(size=(120, 40)) as pilot:
        while app.view is None or app.view.playback is None:
            await pilot.pause(0.05)
        assert [place.name for place in app.view.places][:2] == ["run", "sweep"]
        await press_all()
        await press(pilot, "1", "y")
        assert app.view.told is not None and app.view.told.text == READ_ONLY
        await press(pilot, "q")
        assert [place.name for place in app.view.places] == ["learn", "sessions"]
        await press_all()
    assert {"save", "record", "mark", "run_here", "compare", "rename", "annotate", "delete", "undo"} <= refused
    assert not (tmp_path / "data" / "fwtui").exists(), "nothing was kept"


def test_only_offered_sessions_are_found_whatever_path_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = folders.own_folder()
    own.mkdir(parents=True)
    private, offered = (scenes.write(own / f"{name}.fwt.jsonl", scenes.gpu_session()) for name in ("private", "offered"))
    outside = scenes.write(tmp_path / "outside.fwt.jsonl", scenes.gpu_session())
    monkeypatch.setattr(library, "_offered", None)  # as it is again afterwards
    library.offer_only([offered])
    found = {entry.name: entry.origin for entry in library.find()}
    assert found.pop("offered") == "own" and "lecture-tiles" in found and set(found.values()) == {"shipped"}
    assert library.resolve("offered") == library.resolve(str(offered)) == offered
    assert library.resolve("lecture-tiles").name == "lecture-tiles.fwt.jsonl.gz"
    assert private not in library.paths() and offered in library.paths()
    for other in ("private", str(private), str(outside), "/etc/passwd"):
        with pytest.raises(Refused, match="there is no session"):
            library.resolve(other)
