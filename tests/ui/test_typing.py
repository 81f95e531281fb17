"""Keys that come faster than they are handled, as on a busy machine: each does what it does on a quiet one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from pressing import opened, until
from textual.events import Event, Key, MouseDown, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.dialogs import AskScreen, HelpScreen
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.widgets.form import ExperimentForm


def key(name: str) -> Key:
    return Key(name, name if len(name) == 1 else None)


async def burst(pilot: Pilot[None], inputs: Iterable[str | Event]) -> None:
    """Have all of these come at once, and wait until the last one is handled."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    for given in inputs:
        app.post_message(key(given) if isinstance(given, str) else given)
    await pilot.pause()
    await until(pilot, lambda: not len(app.inputs))
    await pilot.pause()


def value(app: FwtuiApp, name: str) -> str:
    return app.screen.query_one(f"#field-{name}", Input).value


async def test_nothing_is_scrambled_while_what_was_typed_is_looked_at(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        await burst(pilot, ["tab"])
        draft = dashboard.screen.query_one(ExperimentForm).draft
        looked = draft.errors
        draft.errors = lambda: (time.sleep(0.02), looked())[1]  # type: ignore[method-assign]
        for typed in ("2048", "/tmp/graph.gr"):
            await burst(pilot, ["ctrl+u", *typed])
            assert value(dashboard, "n") == draft.text("n") == typed


async def test_keys_go_where_those_before_them_have_led(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        erased = ["backspace"] * 3
        await burst(pilot, ["tab", *erased, "6", "4", "tab", *erased, "1", "tab", "shift+tab", "shift+tab", "8"])
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


async def test_a_key_that_takes_its_time_is_waited_for_and_what_was_typed_before_the_machine_is_known_stays(
    dashboard: FwtuiApp,
) -> None:
    async with opened(dashboard) as pilot:
        dashboard.post_message(key("tab"))
        while not len(dashboard.inputs):
            await asyncio.sleep(0)
        dashboard.inputs.key_since -= 2  # seconds in which other programs had the processor
        await burst(pilot, ["4"])
        assert value(dashboard, "n") == "5124"
        form = dashboard.screen.query_one(ExperimentForm)
        dashboard.screen.query_one("#field-n", Input).value = "64"
        form.sync()  # as when the GPUs are known, and before the form has heard of the key
        assert value(dashboard, "n") == "64" == form.draft.text("n")


async def test_a_widget_that_is_stuck_is_waited_for_once(dashboard: FwtuiApp) -> None:
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


async def test_a_key_that_is_pressed_once_a_dialog_has_answered_counts(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        asked = AskScreen("What?")
        dashboard.push_screen(asked)
        await pilot.press("a")
        asked.dismiss("a")
        assert asked.is_running, "it is still being taken down"
        await burst(pilot, ["question_mark"])
        assert isinstance(dashboard.screen, HelpScreen)
