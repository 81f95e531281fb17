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
from textual.binding import Binding
from textual.dom import DOMNode

import fwtui.tui
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import folders, library
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import Commands
from fwtui.tui.frame.read_only import LOOKS, WHY, NoEngine, allows, owner

# what must never come into LOOKS, whatever else does
FORBIDDEN = {
    *("Frame.save", "Frame.record", "Frame.mark", "Frame.limits", "Frame.cancel"),
    *(f"RunScreen.{name}" for name in ("run", "again", "go_on", "edit", "answers", "counters")),
    *("FormScreen.run", "LiveSweepScreen.run", "LearnScreen.run_here", "LearnScreen.compare"),
    *(f"SessionsScreen.{name}" for name in ("rename", "annotate", "delete", "undo")),
}


def bound() -> Iterator[tuple[type[DOMNode], str]]:
    """Every action that a key of this program leads to, with the class of the screen or widget that has the key."""
    for module in pkgutil.walk_packages(fwtui.tui.__path__, "fwtui.tui."):
        for _, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(one, DOMNode) and one.__module__ == module.name:
                bindings = (b for base in one.__mro__ for b in vars(base).get("BINDINGS", ()) if isinstance(b, Binding))
                for where, action, _ in (parse(b.action) for b in bindings):
                    yield (FwtuiApp if where == "app" else one), action


def test_whatever_is_not_listed_as_looking_is_refused() -> None:
    found = {
        f"{has.__name__}.{action}": allows(one, action) for one, action in bound() if (has := owner(one, action)) is not None
    }
    ours = {name for name in found if not hasattr(importlib.import_module("textual.widgets"), name.partition(".")[0])}
    assert {name for name in FORBIDDEN if found.get(name, True)} == set(), "each is bound somewhere, and refused"
    assert found["Frame.move"] and found["SessionScreen.race"] and len(ours) > 60
    for name in LOOKS:  # none is left over from an action that is gone
        assert name in found or name == "FwtuiApp.command_palette", name


def test_textuals_own_actions_on_files_and_the_process_are_refused() -> None:
    for action in ("screenshot", "suspend_process", "simulate_key", "push_screen", "toggle_dark"):
        if owner(FwtuiApp, action) is not None:
            assert not allows(FwtuiApp, action), action


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
            for binding in screen._own_bindings():
                action = parse(binding.action)[1]
                if allows(type(screen), action):
                    continue
                screen.say("")
                assert not await app.run_action(binding.action, screen)  # as its key does
                assert app.screen is screen and view.told is not None and view.told.text == WHY, (place.name, action)
                assert all(other.action != binding.action for other in screen.offered()), "the help does not offer it"
                refused.add(action)
        words = [command.words for command in Commands(app.screen)._offered()]
        assert any(word.startswith("Go to") for word in words)
        assert not [word for word in words if word.startswith(("Save", "Kernel", "Measure", "Reproduce", "Run:", "Keep"))]

    async with app.run_test(size=(120, 40)) as pilot:
        while app.view is None or app.view.playback is None:
            await pilot.pause(0.05)
        assert [place.name for place in app.view.places][:2] == ["run", "sweep"]
        await press_all()
        await press(pilot, "1", "y")
        assert app.view.told is not None and app.view.told.text == WHY
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
