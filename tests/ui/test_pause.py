"""A view that stands still while the session goes on."""

from __future__ import annotations

from collections.abc import Callable

import scenes
from fake_live import FakeLive
from pressing import opened, press, proceed

from fwtui.experiment.device import FIRST_GPU
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text


async def test_the_view_stands_still_and_the_data_does_not(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        dashboard.screen.set_focus(None)
        live.tell(*scenes.telemetry(0.1, 1.0, 0.1, gpu=False))
        dashboard.tick()
        await press(pilot, "p")
        before = screen_text(dashboard).splitlines()
        assert "PAUSED" in before[0] and "only the view is paused" in screen_text(dashboard)
        live.tell(*scenes.telemetry(1.1, 9.0, 0.9, gpu=False))
        live.tell(*scenes.run(7, 11.0, scenes.experiment("serial", 128), title="Serial", backend="cpu"))
        await proceed(pilot)
        after = screen_text(dashboard).splitlines()
        assert after[1:] == before[1:], "nothing but the first line changes"
        assert "PAUSED 00:" in after[0] and "0 events" not in after[0] and live.model.index > 90
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert "RUN 7" not in screen_text(dashboard), "nor does a resize show what is newer"
        await press(pilot, "p")
        assert "PAUSED" not in screen_text(dashboard) and "RUN 7" in screen_text(dashboard)


async def test_a_run_that_is_started_is_seen(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        dashboard.screen.set_focus(None)
        await pilot.press("p")
        assert dashboard.view is not None and dashboard.view.paused
        await proceed(pilot, "r")
        assert not dashboard.view.paused and "RUN 1" in screen_text(dashboard)


async def test_a_recording_has_play_and_pause_of_its_own(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.cpu_session())
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("p")
        assert app.view is not None and not app.view.paused
        assert "pause" not in {binding.action for binding in app.screen.rows.offered()}  # type: ignore[attr-defined]


def test_a_frozen_model_is_equal_and_independent() -> None:
    model = Model()
    told = scenes.gpu_session()
    limits = events.Limits(t=0.0, backend="cuda", forms=(events.FormLimit("float32", 1e13),), complete=True)
    for event in (limits, *told[:150]):
        model.apply(event)
    frozen = model.frozen()
    assert frozen == model and frozen.measured.get(FIRST_GPU) == limits, "a pause keeps what the device can do at most"
    seen = (frozen.index, frozen.t, dict(frozen.runs), len(frozen.telemetry), len(frozen.log), len(frozen.markers))
    for event in told[150:]:
        model.apply(event)
    assert seen == (frozen.index, frozen.t, frozen.runs, len(frozen.telemetry), len(frozen.log), len(frozen.markers))
    assert frozen != model
