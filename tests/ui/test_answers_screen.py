"""The panel of answers: requested, shown in every size and without colours, and in a replay."""

from typing import Any

import msgspec
import pytest
import scenes
from apps import Replay, view_of
from fake_live import FakeLive
from pressing import go, keyed, opened, press, proceed, until
from textual.app import App
from textual.pilot import Pilot

from fwtui.analysis import answers
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import screen_text
from fwtui.tui.run.answers_panel import AnswersPanel, DistanceMap, Histogram

CHECKSUM = "9f3c2a77b18d40e1"  # what scenes.run says


def halves(run: int = 1, **changes: Any) -> events.Answers:
    """Return answers for 100 vertices in two halves; the second cannot reach the first."""
    side = 48
    heat = tuple(
        tuple(None if row >= side // 2 > column else float(abs(row - column)) for column in range(side)) for row in range(side)
    )
    usual = events.Answers(t=100.0, run=run, vertices=100, reachable=7400, components=51, largest=50, checksum=CHECKSUM)
    distances = {"diameter": 57, "farthest": ("Aix", "Brno"), "mean": 17.25, "edges": (0, 20, 40, 60), "counts": (5000, 2399, 1)}
    return msgspec.structs.replace(usual, **{**distances, "heat": heat, "seconds": 0.0123, **changes})


def is_open(app: App[None]) -> bool:
    return bool(app.screen.query(AnswersPanel)) and app.screen.query_one(AnswersPanel).display


async def panel(pilot: Pilot[None]) -> AnswersPanel:
    """Wait for the panel of answers and return it."""
    await until(pilot, lambda: is_open(pilot.app) and bool(pilot.app.screen.query(Histogram)))
    return pilot.app.screen.query_one(AnswersPanel)


async def ended(pilot: Pilot[None], live: FakeLive, runs: int = 1, n: int = 12) -> None:
    for _ in range(runs):
        live.start(live.settled(Experiment(kernel="serial", n=n)))
        await proceed(pilot)


async def test_answers_are_requested_recomputed_cancelled_and_shown_on_arrival(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard, "v") as pilot:
        assert not live.answered, "there is no run yet"
        await ended(pilot, live)
        assert "summarising run 1" in await keyed(pilot, "v") and live.answered == [1]
        assert dashboard.screen.check_action("run", ()) is False, "one thing at a time"
        live.emit(halves(radius=None))
        dashboard.tick()
        await panel(pilot)
        shown = screen_text(dashboard)
        wanted = ("Distance summary · run 1", "57, from Aix to Brno", "74.7 % of 9,900 ordered pairs", "51, the largest of 50")
        for words in (*wanted, "none: no vertex reaches", "12.3 ms", "0 to 19", "no path"):
            assert words in shown, words
        assert "diameter 57 · mean 17.25 · 74.7 % reachable" in await keyed(pilot, "v", "pagedown") and not is_open(dashboard)
        await pilot.press("v")
        await panel(pilot)
        assert live.answered == [1], "what is known is not asked again"
        await press(pilot, "v")
        await ended(pilot, live, 2, n=13)
        view_of(dashboard).selected = 2
        dashboard.tick()
        assert "run 2, computed once more (about 10.0 ms); c cancels" in await keyed(pilot, "v") and live.answered == [1, 2]
        live.emit(events.Progress(t=9.0, run=2, stage="answers", done=0.34, left=7.0))
        shown = await go(pilot)
        assert "summarising" in shown and "34 %" in shown and "7 s left" in shown
        assert "34 %" not in await go(pilot, "c") and live.cancelled == 1
        assert not is_open(dashboard), "who cancels does not want to read that"
        view_of(dashboard).selected = None
        await press(pilot, "v", "question_mark")
        live.emit(halves(run=3))
        await proceed(pilot)
        assert not is_open(dashboard)
        assert "the distance summary of run 3 is ready; v shows it" in await go(pilot, "escape") and not is_open(dashboard)


async def test_missing_answers_have_a_reason(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard) as pilot:
        await ended(pilot, live)
        await pilot.press("v")
        live.emit(events.Answers(t=9.0, run=1, note="[b]the file[/b] is gone"))
        dashboard.tick()
        await until(pilot, lambda: is_open(dashboard) and "[b]the file[/b] is gone" in screen_text(dashboard))
        await pilot.press("v", "v")
        assert live.answered == [1, 1], "what failed may be asked again"
        live.verdict = scenes.verdict("negative cycle", cycle=(1, 2))
        live.emit(halves(note="gone"))
        dashboard.tick()
        await ended(pilot, live)
        await pilot.press("v")
        assert dashboard.screen.check_action("view", ()) is False and live.answered == [1, 1], "of a run without right distances"


async def test_a_replay_shows_what_any_run_of_these_distances_told(replay_of: Replay) -> None:
    first = scenes.run(1, 1.0, scenes.experiment("naive"))
    again = scenes.run(2, 20.0, scenes.experiment("katz-kider"), title="Katz-Kider")
    other = scenes.run(3, 40.0, scenes.experiment("naive", seed=8))
    app = replay_of([scenes.header(), scenes.GPU, *first, halves(t=first[-1].t), *again, *other])
    async with opened(app) as pilot:
        assert app.screen.check_action("view", ()) is False, "run 3 is of another graph"
        shown = await keyed(pilot, "left_square_bracket", "v")
        assert "run 2 has no distance summary at this position; go to its end" in shown
        await press(pilot, "left_square_bracket", "right_square_bracket", *["full_stop"] * 40, "v")
        await panel(pilot)
        assert "run 1, which computed" in screen_text(app)


@pytest.fixture
def answered(replay_of: Replay) -> FwtuiApp:
    """Return a replay of a run with answers."""
    run = scenes.run(1, 1.0, scenes.experiment("naive"))
    return replay_of([scenes.header(), scenes.GPU, *run, halves(t=run[-1].t)])


async def test_on_the_smallest_screen_the_map_is_whole_and_the_cursor_in_view(answered: FwtuiApp) -> None:
    async with opened(answered, "v", size=(60, 16)) as pilot:
        screen = await panel(pilot)
        picture = screen.query_one(DistanceMap)
        assert picture.size.width == 48, "no column is cut off"
        shown = await keyed(pilot, "x")
        assert picture.has_focus and "row 1 to 2, column 1 to 2: 0" in shown
        assert answers.MAP in shown and "no path" in shown, "what the map is, beside its first row"
        assert "row 98 to 100, column 3 to 4: no path" in await keyed(pilot, *["down"] * 60, "right")
        scroll = screen.region
        assert picture.region.bottom - 1 in range(scroll.y, scroll.bottom), "the cursor's line is in view"
        assert answers.MAP in await keyed(pilot, *["up"] * 60)
        await press(pilot, "escape", "v")
        assert not is_open(answered)
        await pilot.resize_terminal(120, 40)
        await press(pilot, "v")
        picture = (await panel(pilot)).query_one(DistanceMap)
        cells = list(picture.render_line(2))
        assert all(cell.text == "▀" and cell.style and cell.style.bgcolor for cell in cells[:48])
        assert len({cell.style.color for cell in cells[:48] if cell.style}) > 24, "a shade each"
        assert [cell.text for cell in picture.render_line(22)][:24] == ["·"] * 24


async def test_the_map_uses_characters_without_colours(no_colours: None, answered: FwtuiApp) -> None:
    async with opened(answered, "v") as pilot:
        picture = (await panel(pilot)).query_one(DistanceMap)
        lines = ["".join(s.text for s in picture.render_line(y)) for y in range(26)]
    assert lines[2][0] == "░" and lines[2][-1] == "█" and lines[25][:24] == "·" * 24 and set(lines[14]) <= set("░▒▓█·")
    assert lines[0].startswith(answers.MAP) and lines[1].startswith("0 ░") and "· no path" in lines[1]


def test_answers_of_a_forged_file_break_nothing() -> None:
    odd = halves(
        heat=((1.0,), (), (None, 2.0, 3.0)), counts=(1, 2), edges=(5.0,), diameter=1e15, farthest=(), centre=(), centres=7
    )
    picture = DistanceMap(odd)
    assert picture.under and answers.facts(odd) and answers.histogram(odd) == [] and answers.in_short(odd)
    assert Histogram(halves(counts=(0, 0, 0))).lines and not Histogram(odd).lines
    empty = events.Answers(t=0.0, run=1)
    assert answers.span(empty) is None and DistanceMap(empty).under and answers.facts(empty)
