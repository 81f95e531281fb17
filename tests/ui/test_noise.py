"""Noise: said once in the bar, and noisy runs repeated by a key once the machine is quiet."""

from __future__ import annotations

import pytest
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import WIDE, go, proceed

from fwtui.campaigns.noise import LOOK, noisy_runs
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp


def others(live: FakeLive, share: float, seconds: float = LOOK + 1) -> None:
    """Other programs use that share of the CPU for so long."""
    begun = live.model.t
    for second in range(1, int(seconds) + 1):
        live.model.apply(events.Telemetry(t=begun + second, other_cpu_utilisation=share))


def disturbed(live: FakeLive, share: float) -> None:
    """Other programs used that share of the CPU while the last run was timed."""
    window = live.model.run.clean_window if live.model.run is not None else None
    assert window is not None
    live.model.apply(events.Telemetry(t=sum(window) / 2, other_cpu_utilisation=share))


async def test_the_bar_says_how_busy_the_machine_is_and_a_key_repeats_noisy_runs_when_it_is_quiet(
    dashboard: FwtuiApp, live: FakeLive
) -> None:
    async with dashboard.run_test(size=WIDE) as pilot:
        assert "machine busy" not in await go(pilot, "r")
        disturbed(live, 0.66)
        assert live.model.run is not None and noisy_runs(live.model) == (live.model.run,)
        run = live.model.runs[1]
        assert run.done is not None
        live.model.runs[1] = replace(run, done=replace(run.done, spread=0.3))
        others(live, 0.66)
        shown = await go(pilot)
        assert "machine busy 66 %: ± 30 %" in shown.splitlines()[0]
        assert "1 noisy run will be repeated once the machine is quiet" in await go(pilot, "Y")
        others(live, 0.66)
        await proceed(pilot)
        assert len(live.started) == 1, "not yet"
        others(live, 0.01)
        shown = await go(pilot)
        assert "machine busy" not in shown and len(live.started) == 2 and live.started[0] == live.started[1]
        await proceed(pilot)
        disturbed(live, 0.01)
        assert noisy_runs(live.model) == (), "it has a quiet run now"


@pytest.mark.parametrize("keys", [("Y",), ("Y", "Y")])
async def test_what_was_asked_for_is_taken_back_by_the_same_key(
    dashboard: FwtuiApp, live: FakeLive, keys: tuple[str, ...]
) -> None:
    async with dashboard.run_test(size=WIDE) as pilot:
        await proceed(pilot, "r")
        disturbed(live, 0.66)
        others(live, 0.66)
        await proceed(pilot, *keys)
        others(live, 0.01)
        await proceed(pilot)
        assert len(live.started) == (2 if len(keys) == 1 else 1)
