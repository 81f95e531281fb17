"""Random keys and clicks, faster than frames are drawn: nothing fails."""

import random
from pathlib import Path

import pytest
import scenes
from attacking import SEED, sized
from builders import write_session
from fake_live import FakeLive
from textual.binding import Binding
from textual.events import Key, MouseDown, MouseMove, MouseScrollDown, MouseUp

from fwtui.experiment.experiment import Experiment
from fwtui.sessions import reader
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.loaded_recording import Recording
from fwtui.tui.frame.places import PLACES, load
from fwtui.tui.widgets.run_table import TextTable

pytestmark = pytest.mark.usefixtures("every_frame")

SIZES = ((120, 40), (80, 24), (60, 16), (59, 15))
BEYOND = {"D", "W", "h"}  # what these start is a program, not a screen
USUAL = ("enter", "escape", "tab", "shift+tab", "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "space")
TYPED = ("a", "7", "minus", "backspace", "ctrl+p", "ctrl+r", "delete", "f1")


def keys() -> list[str]:
    """Return all keys of places, fields and lists."""
    classes = {load(where) for place in PLACES for where in (place.where(False), place.where(True)) if where}
    own = {key for cls in classes for b in cls.BINDINGS if isinstance(b, Binding) for key in b.key.split(",")}
    return sorted({*own, *USUAL, *TYPED, *(place.key for place in PLACES)} - BEYOND)


def session(kind: str, folder: Path) -> FwtuiApp:
    """Return an empty dashboard, a replay of one run, or a damaged one."""
    if kind == "live":
        found = Hardware(reason="no NVIDIA driver is installed")
        return FwtuiApp(FakeLive(pace=7), Experiment(kernel="tiled-cpu", n=512), still=True, found=found)
    told = {"empty": [scenes.header()], "one run": scenes.cpu_session()[:60], "damaged": scenes.gpu_session()}[kind]
    path = write_session(folder / "monkey.fwt.jsonl", told, closed=kind != "damaged")
    if kind == "damaged":
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line for number, line in enumerate(lines) if number % 3 or not number)[:-40])
    return FwtuiApp(replay=Recording("monkey", reader.load(path)), still=True)


async def go_wild(app: FwtuiApp, seed: int, steps: int) -> None:
    """Send that many random keys, clicks and sizes; none may end the program."""
    chance, offered = random.Random(seed), keys()
    app.exit = lambda *given, **how: None  # type: ignore[method-assign]
    async with app.run_test(size=SIZES[seed % len(SIZES)]) as pilot:
        for _ in range(steps):
            width, height = app.size
            # on a table's header or anywhere
            tables = [table.region for table in app.screen.query(TextTable) if table.region]
            at = chance.choice(tables).offset if tables and chance.random() < 0.3 else (0, 0)
            x, y = (at[0] + 1, at[1]) if any(at) else (chance.randrange(width), chance.randrange(height))
            match chance.choice(("key", "key", "key", "place", "click", "move", "scroll", "size", "tick")):
                case "key":
                    app.post_message(Key(chance.choice(offered), None))
                case "place":
                    app.post_message(Key(chance.choice(PLACES).key, None))
                case "click":
                    for event in (MouseDown, MouseUp):
                        app.post_message(event(None, x, y, 0, 0, 1, False, False, False, x, y))
                case "move":
                    app.post_message(MouseMove(None, x, y, 0, 0, 0, False, False, False, x, y))
                case "scroll":
                    app.post_message(MouseScrollDown(None, x, y, 0, 0, 0, False, False, False, x, y))
                case "size" if chance.random() < 0.2:
                    await pilot.resize_terminal(*chance.choice(SIZES))
                case _:
                    app.tick(chance.random() * 100)
            if chance.random() < 0.3:
                await pilot.pause(0)
        await pilot.pause()  # what is on its way may open a place, and Textual then fails to close all
        assert app.is_running and app.return_code is None


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a temporary folder, where saved files go."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.attack
@pytest.mark.parametrize(
    ("storm", "steps"), [(0, 60), *(pytest.param(storm, 300, marks=pytest.mark.slow) for storm in range(1, 21))]
)
@pytest.mark.parametrize(
    "kind", ["live", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("one run", "empty", "damaged"))]
)
async def test_no_key_and_no_click_breaks_a_screen(tmp_path: Path, kind: str, storm: int, steps: int) -> None:
    await go_wild(session(kind, tmp_path), SEED + storm, sized(steps))
