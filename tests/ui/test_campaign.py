"""Reproduction of a paper in the dashboard, its claims, and hardware counters of runs."""

from pathlib import Path

import pytest
import scenes
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import keyed, opened, press, proceed
from textual.pilot import Pilot

from fwtui.campaigns.claims import RunGroup, papers
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import reader
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.reproduction_screen import whole
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.palette import Command
from fwtui.tui.run.live_screen import RunScreen


def command(app: FwtuiApp, words: str) -> Command:
    return next(offered for offered in app.commands() if offered.title == words)


async def until(pilot: Pilot[None], screen: type) -> str:
    assert isinstance(pilot.app, FwtuiApp)
    for _ in range(400):
        pilot.app.tick()
        await pilot.pause(0.02)
        if isinstance(pilot.app.screen, screen):
            await pilot.pause()
            return screen_text(pilot.app)
    raise AssertionError(screen_text(pilot.app))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all papers by one with three runs of 12 vertices."""
    made = replace(papers()["sing"], runs=(RunGroup(of=("serial", "naive", "scipy"), n=(12,)),))
    monkeypatch.setattr("fwtui.tui.app.reproduction_screen.papers", lambda: {"sing": made})


async def test_a_reproduction_ends_with_its_claims(dashboard: FwtuiApp, live: FakeLive, short: None, tmp_path: Path) -> None:
    async with opened(dashboard) as pilot:
        command(dashboard, "Reproduce: sing, quick").run()
        shown = await until(pilot, Dialog)
        assert [e.kernel for e in live.started] == ["serial", "scipy"]
        assert "SF1" in shown and "here: no GPU" in shown
        await press(pilot, "end")
        assert "naive: needs a GPU" in screen_text(dashboard)
        await pilot.press("escape")
        assert isinstance(dashboard.screen, RunScreen) and not dashboard.screen.view.busy
        assert live.recorder is None
        dashboard.tick()
        assert f"recorded {tmp_path}" in live.model.log[-1].text
        path = next((tmp_path / "data").rglob("*reproduce-sing*.jsonl"))
        loaded = reader.load(path)
        assert loaded.complete and loaded.header.title == "reproduce sing --quick"
        command(dashboard, "Claims: sing").run()
        assert "SF1" in await until(pilot, Dialog)


async def test_cancel_ends_the_whole_reproduction(dashboard: FwtuiApp, live: FakeLive, short: None, tmp_path: Path) -> None:
    live.pace = 5
    async with opened(dashboard) as pilot:
        command(dashboard, "Reproduce: sing").run()
        await proceed(pilot)
        screen = dashboard.screen
        assert isinstance(screen, RunScreen) and screen.view.busy and live.busy
        command(dashboard, "Reproduce: sing").run()
        await pilot.pause()
        assert "a run is active" in screen_text(dashboard)
        await pilot.press("c")
        for _ in range(5):
            await proceed(pilot)
        assert live.cancelled == 1 and not screen.view.busy and len(live.started) == 1 and live.recorder is None
        loaded = reader.load(next((tmp_path / "data").rglob("*reproduce-sing*.jsonl")))
        ended = [line.event for line in loaded.lines if isinstance(line.event, events.RunDone)]
        assert loaded.complete and [e.outcome for e in ended] == ["cancelled"], "the run's end is in the recording"
        assert not isinstance(dashboard.screen, Dialog), "what was cancelled is not answered"


async def test_counters_are_requested_and_shown(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard, "4", "h") as pilot:
        assert not live.counted
        live.start(live.settled(Experiment(kernel="serial", n=12)))
        await proceed(pilot)
        await pilot.press("h")
        assert live.counted == [1]
        live.emit(events.Counters(t=live.now, run=1, op="rest", values={"occupancy": 0.51, "l2_hit_rate": 0.75}))
        await proceed(pilot)
        shown = await keyed(pilot, "h")
    rows = {line.strip(" │")[:18]: line for line in shown.split("\n")}
    assert "profiled: not timings" in shown and "51.0 %" in rows["achieved occupancy"] and "75.0 %" in shown
    assert "bank conflicts" not in shown, "what was not measured is not listed"


async def test_claims_use_the_whole_recording_at_any_position(replay_of) -> None:
    first, *others = scenes.cpu_session()
    app = replay_of([first, events.Marker(t=0.0, text="reproduce sing --quick"), *others], start=0.0)
    async with opened(app) as pilot:
        assert app.view is not None and not app.view.model.runs
        assert len(whole(app.view).runs) == len({e.run for e in others if isinstance(e, events.RunStarted)}) > 0
        assert not app.view.model.runs, "the view stays where it is"
        command(app, "Claims: sing").run()
        shown = await until(pilot, Dialog)
        assert "SF1" in shown and "here: no GPU" in shown


async def test_a_replay_shows_the_counters_and_claims_it_holds(replay_of) -> None:
    told = scenes.cpu_session()
    run = max(e.run for e in told if isinstance(e, events.RunDone))
    told += [
        events.Counters(t=told[-1].t, run=run, op="all", values={"occupancy": 0.25}),
        events.Marker(t=told[-1].t, text="reproduce sing --quick"),
        events.Marker(t=told[-1].t, text="reproduce nothing-known"),
    ]
    app = replay_of(told)
    async with opened(app) as pilot:
        offered = [c.title for c in app.commands()]
        assert "Claims: sing" in offered and not any("nothing-known" in words for words in offered)
        assert not any(words.startswith("Reproduce") for words in offered)
        assert "25.0 %" in await keyed(pilot, "4", "h")
        assert "25.0 %" not in await keyed(pilot, "h"), "again: as before"
