"""Every size down to 1 x 1, every theme, and no colour at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scenes
from apps import dashboard_of
from fake_live import FakeLive
from pressing import go, keyed, opened, press, proceed
from textual.theme import BUILTIN_THEMES

from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.places import LEAST
from fwtui.tui.textual_internals import strips

SIZES = [(80, 24), (120, 40), (200, 60), (60, 16), (59, 15), (59, 40), (120, 15), (20, 5), (1, 1), (3, 60), (200, 1)]


async def test_it_survives_every_size_and_grows_back(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 40)) as pilot:
        await proceed(pilot, "r")
        for size in [*SIZES, (120, 40)]:
            await pilot.resize_terminal(*size)
            shown = await keyed(pilot)
            if size[0] < LEAST[0] or size[1] < LEAST[1]:
                assert "RUN 1" not in shown
                if size[0] >= 25 and size[1] >= 2:
                    assert f"needs {LEAST[0]} x {LEAST[1]}" in shown and f"has {size[0]} x {size[1]}" in shown
            else:
                assert "RUN 1" in shown and "✓ verified" in shown and "20.0 ms" in shown, size


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (120, 40)])
async def test_nothing_essential_is_lost(replay_of: Callable[..., FwtuiApp], size: tuple[int, int]) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app, size=size):
        shown = screen_text(app)
    words = ["RUN 3", "✓ verified", "61.2 ms", "AS FAST AS NAIVE", "SM clock", "Help", "katz-kider"]
    if size != (60, 16):
        words += ["relaxations/s", "reads each number", "remaining tiles", "naive", "throttle"]
    if size[1] >= 40:
        words += ["bandwidth (model)", "occupancy (theory)", "occupancy (GPM)"]
    assert [word for word in words if word not in shown] == []


async def test_dialogs_survive_small_screens(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(60, 16)) as pilot:
        for key in ("e", "question_mark", "l"):
            await pilot.press(key)
            for size in ((20, 5), (1, 1), (60, 16)):
                await pilot.resize_terminal(*size)
                await pilot.pause()
            await press(pilot, "escape")
    assert dashboard.return_code in (0, None)


@pytest.mark.slow
async def test_every_theme_can_be_chosen(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=(80, 24)) as pilot:
        for theme in BUILTIN_THEMES:
            app.theme = theme
            await pilot.pause()
            assert "✓ verified" in screen_text(app)
    assert len(BUILTIN_THEMES) >= 15


async def test_without_colour_every_state_is_still_told(no_colours: None) -> None:
    live = FakeLive(scenes.GPU)
    app = dashboard_of(live, Experiment(kernel="katz-kider", n=1024), found=Hardware())
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("r")
        app.tick()
        live.tell(events.Fault(t=live.now, source="sampler", code="died", message="the telemetry process died"))
        shown = await go(pilot)
        colours = {
            colour.triplet
            for strip in strips(app.screen)
            for segment in strip.apply_filter(app._filters[0], app.screen.background_colors[1])
            if segment.style is not None
            for colour in (segment.style.color, segment.style.bgcolor)
            if colour is not None and colour.triplet is not None
        }
    assert "✓ verified" in shown and "✗ the telemetry process died" in shown and "━" in shown
    assert colours and all(red == green == blue for red, green, blue in colours)
