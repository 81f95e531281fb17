"""Kernels of a user's own on the screens: chosen in the form after a question, and their recorded source as text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
from fake_live import FakeLive
from pressing import opened, press
from pretending import Pretend
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Select

from fwtui.commands.new import python
from fwtui.experiment.experiment import Experiment
from fwtui.machine import trust
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.dialogs import ChoiceScreen
from fwtui.tui.widgets.form_model import OWN


async def until(pilot: Pilot[None], so: Callable[[], bool]) -> None:
    for _ in range(400):
        if so():
            return
        await pilot.pause()
        await asyncio.sleep(0.02)
    raise AssertionError(screen_text(pilot.app))  # type: ignore[arg-type]


async def test_a_kernel_of_ones_own_is_chosen_in_the_form_once_its_folder_is_trusted(
    dashboard: FwtuiApp, live: FakeLive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend
) -> None:
    pretend.no_own_kernels()
    monkeypatch.setenv("FWTUI_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "hw").mkdir()
    (tmp_path / "config.toml").write_text(f'kernel_folder = "{tmp_path / "hw"}"\n')
    (tmp_path / "hw" / "mine.py").write_text(python("serial", "mine"))
    (tmp_path / "hw" / "broken.py").write_text("def plan(:\n")

    async def named(file: str) -> None:
        await until(pilot, lambda: bool(dashboard.screen.query("PickFile #path")))
        dashboard.screen.query_one(Input).value = str(tmp_path / "hw" / file)
        dashboard.screen.query_one(Input).focus()
        await pilot.press("enter")

    async def asked(*keys: str) -> None:
        await until(pilot, lambda: type(dashboard.screen) is ChoiceScreen and bool(dashboard.screen.query(OptionList)))
        assert "can do whatever Python can do" in screen_text(dashboard)
        await press(pilot, *keys)

    async with dashboard.run_test(size=(120, 40)) as pilot:
        assert dashboard.view is not None
        select = dashboard.screen.query_one("#field-kernel", Select)
        select.value = OWN
        await until(pilot, lambda: bool(dashboard.screen.query("PickFile OptionList")))
        assert dashboard.screen.query_one(OptionList).option_count == 2, "those of the folder that a setting names"
        await named("mine.py")
        await asked("enter")  # the first answer is no
        assert not trust.trusted(tmp_path / "hw" / "mine.py") and select.value == "tiled-cpu"
        select.value = OWN
        await named("broken.py")
        await asked("down", "enter")
        await until(pilot, lambda: "broken.py:1:10: SyntaxError: invalid syntax: def plan(:" in screen_text(dashboard))
        select.value = OWN
        await named("mine.py")
        await until(pilot, lambda: select.value == "mine")
        assert dashboard.view.own_files == (str(tmp_path / "hw" / "mine.py"),)
        await pilot.press("escape", "ctrl+r")
        assert live.started[0].kernel == "mine" and live.started[0].code
        (tmp_path / "hw" / "yours.py").write_text(python("serial", "yours"))
        live.drain()
        await pilot.press("2")
        kernels = dashboard.screen.query_one("#field-kernel", Input)
        kernels.value = f"mine,{tmp_path / 'hw' / 'yours.py'}"
        kernels.focus()
        await pilot.press("enter")
        await until(pilot, lambda: kernels.value == "mine,yours" and "sweeping" in screen_text(dashboard))


async def test_a_recorded_source_is_shown_as_text(replay_of: Callable[..., FwtuiApp]) -> None:
    told = scenes.run(1, 1.0, Experiment(kernel="mine", code="0123456789abcdef", n=512), title="mine", backend="cpu")
    lines = ("def plan(shape, stepwise):", "    [bold red]yield[/] \x1b[31m")
    source = events.Source(t=1.1, run=1, file="mine.py", first=1, lines=lines)
    app = replay_of([scenes.header(), told[0], source, *told[1:]])
    async with opened(app, "4", "s") as pilot:
        shown = screen_text(app)
        assert "Source of mine, as recorded with run 1" in shown and "    2     [bold red]yield[/] [31m" in shown
        await press(pilot, "s", "1")
        assert "mine" in screen_text(app)
