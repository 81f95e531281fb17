"""The ladder on the first screen and on its own screen, live and in a replay."""

import pytest
import scenes
from apps import Compare, replay_at_end, view_of
from builders import write_session
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import NARROW, WIDE, go, keyed, opened, press, proceed, until

from fwtui.common import units
from fwtui.experiment.experiment import Experiment
from fwtui.learn.course import load_course
from fwtui.sessions.folders import own_folder, shipped_folder
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.compare.ladder_screen import experiment_here, offers_here
from fwtui.tui.frame import ladder_data
from fwtui.tui.frame.ladder_data import gather, recorded
from fwtui.tui.learn.screen import LearnScreen
from fwtui.tui.widgets.ladder_chart import LadderChart, LadderSubject, ladder_of

STEPS = len(load_course())
HEADLINE = "From 2.53 billion to 13.8 trillion relaxations a second"


def stairs(width: int, rows: int, marked: int | None = None) -> list[str]:
    found = recorded().ladder
    assert found is not None
    return [part.plain.rstrip() for part in LadderChart(None).draw(LadderSubject(found, rows, marked), width)]


@pytest.mark.parametrize(("width", "rows"), [(1, 1), (20, 5), (40, 8), (56, 12), (78, 13), (118, 40), (198, 60)])
def test_the_ladder_fits_its_width_and_height(width: int, rows: int) -> None:
    for marked in (None, 0, 8):
        lines = stairs(width, rows, marked)
        if width >= 40:
            assert len(lines) <= max(rows, 7)
            assert max(map(len, stairs(width, min(rows, 18), marked))) <= width, "but for summaries, which are cut"
        assert marked is None or sum(line.startswith(">") for line in lines) == 1


def test_only_sessions_of_this_machine_are_on_its_ladder() -> None:
    own_folder().mkdir(parents=True)
    told = [
        *scenes.run(1, 1.0, scenes.experiment("serial", 512), seconds=1.0),
        *scenes.run(2, 90.0, scenes.experiment("tiled-cpu", 512), title="Tiled CPU", seconds=0.1),
    ]
    write_session(own_folder() / "20250101-120000-mine.fwt.jsonl", [scenes.header(), *told])
    (own_folder() / "20250102-120000-broken.fwt.jsonl").write_text("{")
    found = ladder_of((run for _, run in gather(scenes.MACHINE).session_runs), "this machine")
    assert found is not None and [rung.run.title for rung in found.rungs] == ["Serial CPU", "Tiled CPU"]
    assert gather(replace(scenes.MACHINE, cpu="another")).session_runs == ()
    low, high = ([row.plain for row in LadderChart(None).draw(LadderSubject(found, rows), 100)] for rows in (14, 30))
    assert 11 < len(low) <= 14 and sum("█" in row for row in low) == 4, "thick bars use the room"
    assert 20 < len(high) <= 30 and any("k must be outermost" in row for row in high), "and lessons"


def test_a_rung_lists_its_actions_here() -> None:
    told = recorded()
    assert told.ladder is not None
    serial, last = told.ladder.rungs[0], told.ladder.rungs[-1]
    assert offers_here(told, serial, None, gpu=False)["r"] == ("run it here, n 1024", "run serial")
    assert offers_here(told, last, None, gpu=True)["r"].answer == "run look-ahead"
    simulated = offers_here(told, last, None, gpu=False)["r"]
    assert simulated.text.startswith("no GPU found: run it in the simulator") and simulated.answer == "simulate look-ahead"
    assert "n 4096" in offers_here(told, last, told.ladder, gpu=True)["r"].text, "beside what was run already"
    assert offers_here(told, last, None, gpu=True)["enter"].answer == "lesson look-ahead"
    gone = replace(last.run, experiment=replace(last.run.experiment, kernel="gone"))
    assert [offer.answer for offer in offers_here(told, last._replace(run=gone), None, gpu=True).values()] == [""]


def test_a_rung_runs_on_the_graph_of_the_ladder_here() -> None:
    own = recorded().ladder
    assert own is not None
    first = own.rungs[0]
    dense, file = scenes.experiment("serial", 512, density=0.7, seed=3), Experiment(file="a.gr")
    for experiment, wanted in ((dense, ("naive", 512, 0.7, 3)), (file, ("naive", 1024, 0.3, 7))):
        rungs = (first._replace(run=replace(first.run, experiment=experiment)), *own.rungs[1:])
        found = experiment_here(own._replace(rungs=rungs), "naive")
        assert (found.kernel, found.n, found.density, found.seed, found.file) == (*wanted, "")
    assert experiment_here(None, "naive") == Experiment(kernel="naive", n=1024)
    assert experiment_here(own, "naive", simulated=True).n == 16


async def test_the_first_screen_shows_the_ladder_until_a_run_and_a_rung_opens_its_lesson(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, size=NARROW) as pilot:
        shown = await go(pilot)
        assert "r         run the experiment: Tiled CPU" in shown
        assert "6 then t  take the course" in shown and "space     replay two runs" in shown
        assert "3 then C  go through the ladder, rung by rung" in shown and HEADLINE in shown
        assert "Serial CPU" in shown and "Look-ahead" in shown
        assert HEADLINE not in await go(pilot, "r")
        assert HEADLINE in await go(pilot, "3", "C"), "it stays a key away"
        await press(pilot, "escape")
        await proceed(pilot)
        shown = await keyed(pilot, "3", "C", "up", "up", "up")
        assert "> Katz-Kider" in shown and "Enter the course: step 4, " in shown
        assert f"4 of {STEPS}" in await keyed(pilot, "enter")
        assert isinstance(dashboard.screen, LearnScreen)
        assert f"1 of {STEPS}" in await keyed(pilot, "alt+3", "C", "enter"), "where the place to learn is there already"
        await press(pilot, "alt+3", "C", "space")
        await until(pilot, lambda: view_of(dashboard).playback is not None)


async def test_a_rung_runs_here_and_is_shown_with_the_recorded_ladder(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        for keys in ((), ("3", "C", "r"), ("3", "C", "up", "r")):
            await proceed(pilot, *keys)
        assert [(e.kernel, e.n) for e in live.started] == [("serial", 1024), ("tiled-cpu", 1024)]
        shown = await go(pilot, "3", "C")
        assert HEADLINE in shown and "v: recorded or this machine" in shown
        fastest = {run.title: run for run in live.model.runs.values()}
        for title in ("Serial CPU", "Tiled CPU"):
            row = next(row for row in shown.splitlines() if f" {title} " in row)
            assert row.rstrip(" │").endswith(f"{units.scaled(fastest[title].rate, '').strip()} n {fastest[title].n}")
        assert "n = 1,024 · this machine" in await go(pilot, "v") and HEADLINE in await go(pilot, "v")
        assert "run it in the simulator" in await go(pilot, "up", "up")
        await proceed(pilot, "r")
    assert (live.started[-1].kernel, live.started[-1].n) == ("naive", 16)


async def test_without_a_course_the_first_screen_names_the_keys(dashboard: FwtuiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder_data, "recorded", ladder_data.RecordedLadder)
    async with opened(dashboard, size=NARROW) as pilot:
        shown = await go(pilot)
        assert "r         run the experiment" in shown and "?         every key, and the glossary" in shown
        assert "a ladder needs verified runs" in await go(pilot, "3", "C")


async def test_the_recording_of_a_ladder_ends_on_it() -> None:
    async with replay_at_end(shipped_folder() / "h200-ladder-n4096.fwt.jsonl.gz").run_test(size=(80, 24)) as pilot:
        shown = await keyed(pilot)
        assert "From 2.53 billion to 13.8 trillion" in shown and "Look-ahead " in shown and "SLOWER THAN" not in shown
        assert "RUN 46" in await keyed(pilot, "down", "enter"), "a chosen run is shown instead"


def test_picture(dashboard: FwtuiApp, snap_compare: Compare) -> None:
    assert snap_compare(dashboard, terminal_size=WIDE)
