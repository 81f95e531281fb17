"""Keys: each is a row of a table that gives a reason when it is unavailable; and keys that arrive faster than handled."""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
import scenes
from apps import own_classes, replay_at_end, screen_of, view_of
from builders import write_session
from fake_live import FakeLive
from pressing import NARROW, go, keyed, opened, press, proceed, until
from textual.actions import parse
from textual.dom import DOMNode
from textual.events import Event, Key, MouseDown, Paste
from textual.pilot import Pilot
from textual.widgets import Footer, Input, Select

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import folders, library
from fwtui.tui.actions import READ_ONLY, Action, is_read_only, rows_of, table
from fwtui.tui.app import input_queue
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.explain.screen import ExplainScreen
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.dialogs import HelpScreen, PromptScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.palette import CommandProvider
from fwtui.tui.frame.playback import Playback
from fwtui.tui.frame.read_only import NoEngine
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.widgets.form import ExperimentForm
from fwtui.tui.widgets.run_table import HistoryTable

# what must never be marked as showing only, whatever else is
FORBIDDEN = {
    *("RunScreen.save", "RunScreen.record", "RunScreen.mark", "ExplainScreen.limits", "RunScreen.cancel"),
    *(f"RunScreen.{name}" for name in ("run", "again", "edit")),
    *("FormScreen.run", "LiveSweepScreen.run", "LearnScreen.run_here"),
    "SessionsScreen.delete",
}


def test_every_key_is_a_row_and_a_read_only_dashboard_runs_only_those_that_show() -> None:
    found: dict[str, bool] = {}
    for one in own_classes():
        if not issubclass(one, DOMNode):
            continue
        assert all(isinstance(row, Action) for row in vars(one).get("BINDINGS", ())), one
        for (name, parameters), row in table(one).items():
            found[f"{one.__name__}.{name}"] = row.shows
            assert row.id and row.tooltip and is_read_only(one, name, parameters) == row.shows
            assert hasattr(one, f"action_{name}") or hasattr(FwtuiApp, f"action_{name}"), row
            assert name not in ("move", "adjust") or hasattr(Playback, str(parameters[0])), row
    assert {name for name in FORBIDDEN if found.get(name, True)} == set(), "each is bound somewhere, and refused"
    assert found["CompareScreen.race"] and found["ReplayScreen.move"] and sum(found.values()) > 60


def test_actions_without_a_row_are_refused_except_textuals_own() -> None:
    for action in ("screenshot", "suspend_process", "simulate_key", "push_screen", "toggle_dark", "change_theme"):
        if hasattr(FwtuiApp, f"action_{action}"):
            assert not is_read_only(FwtuiApp, action, ()), action
    assert is_read_only(Input, "delete_left", ()) and not is_read_only(Frame, "save", ())


def test_the_session_of_a_read_only_dashboard_starts_nothing() -> None:
    nothing = NoEngine()
    for act in (nothing.start, nothing.settled):
        with pytest.raises(Refused, match="read-only"):
            act(Experiment())
    for act in (nothing.mark, nothing.name, nothing.count, nothing.measure_limits):
        with pytest.raises(Refused, match="read-only"):
            act(1)  # type: ignore[arg-type]


async def test_each_key_that_changes_something_gives_the_reason_why_it_is_refused(tmp_path: Path) -> None:
    path = write_session(tmp_path / "session.fwt.jsonl", scenes.gpu_session())
    app = FwtuiApp(replay=path, read_only=True, lesson="1")
    refused: set[str] = set()

    async def press_all() -> None:
        view = app.view
        assert view is not None
        for place in view.places:
            await press(pilot, f"alt+{place.key}")  # in the course a digit alone begins a guess
            screen = app.screen
            assert isinstance(screen, Frame) and place.name == screen.PLACE
            for binding in rows_of(type(screen)):
                action = parse(binding.action)[1]
                if binding.shows:
                    continue
                screen.show_message("")
                assert not await app.run_action(binding.action, screen)  # as its key does
                assert app.screen is screen and view.notice is not None and view.notice.text == READ_ONLY, (place.name, action)
                assert all(other.action != binding.action for other in screen.rows.offered()), "the help does not offer it"
                refused.add(action)
        palette = CommandProvider(app.screen)
        await palette.startup()
        words = [str(hit.text) async for hit in palette.discover()]
        assert any(word.startswith("Go to") for word in words)
        assert not [word for word in words if word.startswith(("Save", "Kernel", "Measure", "Reproduce", "Run:", "Keep"))]

    async with app.run_test(size=(120, 40)) as pilot:
        while app.view is None or app.view.playback is None:
            await pilot.pause(0.05)
        assert [place.name for place in app.view.places][:2] == ["run", "sweep"]
        await press_all()
        await press(pilot, "1", "y")
        assert app.view.notice is not None and app.view.notice.text == READ_ONLY
        await press(pilot, "q")
        assert [place.name for place in app.view.places] == ["learn", "sessions"]
        await press_all()
    assert {"save", "record", "mark", "run_here", "delete"} <= refused
    assert not (tmp_path / "data" / "fwtui").exists(), "nothing was kept"


def test_only_offered_sessions_are_found_whatever_path_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = folders.own_folder()
    own.mkdir(parents=True)
    private, offered = (write_session(own / f"{name}.fwt.jsonl", scenes.gpu_session()) for name in ("private", "offered"))
    outside = write_session(tmp_path / "outside.fwt.jsonl", scenes.gpu_session())
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


# what another binding of the same key does, or what is seen not to move: at the top of a panel, on the first place
ROOM = 80 - 2 - len("   00:00  ")
SILENT = {"leave", "close", "back", "scroll_panel"}
ARROWS = {"jump", "jump.back", "home", "end"}


def unsaid(screen: Frame) -> list[str]:
    """Return unavailable keys of the help whose reason is missing or does not fit in 80 columns."""
    actions = {parse(row.action)[1:] for row in screen.rows.offered() if row.id not in ARROWS}
    reasons = {action: screen.rows.unavailable(action, given) for action, given in actions}
    wrong = {action for action, words in reasons.items() if words is not None and not 0 < len(words) <= ROOM}
    return sorted(wrong - SILENT)


async def assert_reasons(app: FwtuiApp, pilot: Pilot[None]) -> None:
    """Check that each unavailable key of each place has a reason."""
    found: dict[str, list[str]] = {}
    for tab in view_of(app).places:
        await press(pilot, tab.key)
        found[tab.name] = unsaid(screen_of(app, Frame))
    assert found and not any(found.values()), found


async def test_an_unavailable_key_shows_its_reason(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, "escape", size=NARROW) as pilot:
        await assert_reasons(dashboard, pilot)
        assert "no run is active" in await keyed(pilot, "1", "escape", "c")
        assert "a marker needs a recording; R saves this session" in await keyed(pilot, "m")
        assert "no run has started yet" in await keyed(pilot, "b")
        shown = await keyed(pilot, "ctrl+c")
        assert "ctrl+q ends the program" in shown and "Do you want to quit" not in shown
        assert isinstance(dashboard.screen, Frame)
        words = [command.title for command in (*dashboard.screen.commands(), *dashboard.commands())]
        assert "Theme" in words and not {"Screenshot", "Keys", "Maximize"} & {*words}
        assert words and not any(said.endswith(": ") for said in words)
        assert any(said.startswith("Help: ") for said in words)
        assert "the matrix has no room next to the course; t shows it" in await keyed(pilot, "6", "t", "full_stop")


async def test_the_footer_shows_the_active_keys_also_in_an_input_field(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        dashboard.screen.query_one("#field-n").focus()
        shown = await keyed(pilot)
        footer = "f1 Help esc Back ^r Run ^p Palette"
        assert " ".join(shown.splitlines()[-1].replace("▏", " ").split()) == footer
        assert "Run  ^r" in shown and "Cancel  esc c" in shown and "^r            run the experiment: " in shown
        assert "alt+6 then t  take the course" in shown
        shown = await keyed(pilot, "escape")
        line = shown.splitlines()[-1]
        assert line.startswith("? Help q Quit r Run") and "esc" not in line
        assert "Run  r" in shown and "Cancel  c" in shown
        await pilot.click(Footer, offset=(line.index("? Help"), 0))
        await press(pilot)
        assert isinstance(dashboard.screen, HelpScreen)
        await press(pilot, "escape")
        assert "this is the graph before the first step" in await keyed(pilot, "6", "comma")
        assert "this is the last step" in await keyed(pilot, "end", "full_stop")
        live.pace = 1
        await press(pilot, "alt+1")
        dashboard.screen.query_one("#field-n").focus()
        await proceed(pilot, "enter")
        assert dashboard.view is not None and dashboard.view.busy
        assert isinstance(dashboard.focused, HistoryTable)
        dashboard.screen.query_one("#field-n").focus()
        assert (await keyed(pilot)).splitlines()[-1].startswith("f1 Help esc Back")


def key(name: str) -> Key:
    return Key(name, name if len(name) == 1 else None)


async def burst(pilot: Pilot[None], inputs: Iterable[str | Event]) -> None:
    """Send all inputs at once and wait until the last one is handled."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    for given in inputs:
        app.post_message(key(given) if isinstance(given, str) else given)
    await pilot.pause()
    await until(pilot, lambda: not len(app.inputs))
    await pilot.pause()


def value(app: FwtuiApp, name: str) -> str:
    return app.screen.query_one(f"#field-{name}", Input).value


async def test_typed_text_stays_in_order_and_survives_the_detection_of_gpus(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        await burst(pilot, ["e"])
        dashboard.post_message(key("tab"))
        while not len(dashboard.inputs):
            await asyncio.sleep(0)
        dashboard.inputs.key_since -= 2  # seconds in which other programs had the processor
        await burst(pilot, ["4"])
        assert value(dashboard, "n") == "5124", "slow keys are awaited"
        form = dashboard.screen.query_one(ExperimentForm)
        dashboard.screen.query_one("#field-n", Input).value = "64"
        form.sync()  # as when the GPUs are known, and before the form has heard of the key
        assert value(dashboard, "n") == "64" == form.draft.text("n")
        draft = form.draft
        looked = draft.errors
        draft.errors = lambda: (time.sleep(0.02), looked())[1]  # type: ignore[method-assign]
        for typed in ("2048", "/tmp/graph.gr"):
            await burst(pilot, ["ctrl+u", *typed])
            assert value(dashboard, "n") == draft.text("n") == typed


async def test_queued_keys_go_to_the_widget_that_earlier_keys_focused(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        erased = ["backspace"] * 3
        await burst(pilot, ["e", "tab", *erased, "6", "4", "tab", *erased, "1", "tab", "shift+tab", "shift+tab", "8"])
        assert [value(dashboard, name) for name in ("n", "density")] == ["648", "1"]
        assert isinstance(dashboard.screen, RunScreen)
        density = dashboard.screen.query_one("#field-density", Input).region
        pressed = MouseDown(None, density.x + 1, density.y, 0, 0, 1, False, False, False)
        await burst(pilot, ["ctrl+u", Paste("20"), "4", "8", pressed, "5"])
        assert value(dashboard, "n") == "2048" and "5" in value(dashboard, "density")
        await burst(pilot, ["escape", "7", "slash", *"cpu"])
        assert dashboard.screen.query_one("#filter", Input).value == "cpu"
        await burst(pilot, ["ctrl+p", *"quit"])
        assert dashboard.screen.query_one(Input).value == "quit"


@pytest.mark.slow
async def test_the_palette_takes_what_was_typed_and_old_messages_go() -> None:
    app = replay_at_end(library.resolve("h200-ladder-n4096"))
    async with opened(app, *["down"] * 4, "asterisk") as pilot:
        assert "the origin of each number is shown" in screen_text(app)
        assert "the origin of each number" not in await go(pilot, "4") and view_of(app).selected == 21
        for typed, panel in (("occupancy", "occupancy"), ("hotspots", "warps"), ("roofline", "roofline")):
            await burst(pilot, ["ctrl+p", *typed, "enter"])
            await until(pilot, lambda at=panel: screen_of(app, ExplainScreen).single == at)
        assert await go(pilot, "1", *["up"] * 4, "4") and view_of(app).selected is None
        assert "space Pause" in await go(pilot, "space") and "space Play" in await go(pilot, "space")


async def test_keys_wait_for_widgets_and_dialogs(dashboard: FwtuiApp, live: FakeLive, monkeypatch: pytest.MonkeyPatch) -> None:
    free = asyncio.Event()
    async with opened(dashboard) as pilot:
        stuck = dashboard.focused or dashboard.screen
        stuck.call_next(free.wait)
        for name in ("up", "down", "up"):
            await dashboard.on_event(key(name))
        dashboard.inputs.key_since -= 60
        for _ in range(3):
            await dashboard.inputs.give_up()
        waiting = len(dashboard.inputs)
        free.set()
        assert waiting == 0
        await burst(pilot, ["down"])
        assert dashboard.inputs.stuck is None
        asked = PromptScreen("What?")
        dashboard.push_screen(asked)
        await pilot.press("a")
        asked.dismiss("a")
        assert asked.is_running, "it is still being taken down"
        await burst(pilot, ["question_mark"])
        assert isinstance(dashboard.screen, HelpScreen)
        await press(pilot, "escape")
        for name in ("ROW_SECONDS", "WAIT_SECONDS"):
            monkeypatch.setattr(input_queue, name, 60.0)
        for typed in ("gpr", "rug", "gpu7", "r4096"):
            await burst(pilot, typed)
            assert (live.started, view_of(dashboard).paused) == ([], False) and "part of a typed word" in screen_text(dashboard)
            await press(pilot, "escape")
        await burst(pilot, [*"grr", "escape"])
        assert len(live.started) == 1, "it is repeated, and no word follows"


async def test_an_open_list_searches_letters_and_leaves_digits_and_capitals_to_the_screen(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, "e", "space", *"spa") as pilot:
        await press(pilot, "enter")
        field = dashboard.screen.query_one("#field-kernel", Select)
        assert field.value == "sparse-cpu" and not field.expanded
        await press(pilot, "space", "4")
        assert view_of(dashboard).place == "explain" and not field.expanded
        await press(pilot, "1", "space", "escape", "escape")
        assert isinstance(dashboard.focused, HistoryTable)
        shown = await keyed(pilot, "e", "space")
        assert "naive (GPU)" in shown, "it cannot run here"
        assert not {"q", "r", "m", "e"} & {*shown.splitlines()[-1].split()}, "these letters search the list now"
