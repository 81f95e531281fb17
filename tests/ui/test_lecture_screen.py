"""A lecture on the screen: it stops at its markers, points at a panel, and shows what the run answers when asked."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import scenes
from pressing import ONE_SIZE, SIZES
from recorded import medians, milliseconds
from textual.pilot import Pilot

from fwtui.experiment.experiment import Experiment
from fwtui.learn.cue import PANELS
from fwtui.sessions import reader
from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.cue_card import CueCard
from fwtui.tui.frame.playback import Playback
from fwtui.tui.frame.recording import Recording
from fwtui.tui.frame.view import View

LECTURE = shipped_folder() / "lecture-tiles.fwt.jsonl"


@pytest.fixture
def lecture() -> FwtuiApp:
    return FwtuiApp(replay=Recording("lecture-tiles", reader.load(LECTURE)), still=True)


def view_of(app: FwtuiApp) -> View:
    assert app.view is not None
    return app.view


async def at(pilot: Pilot[None], marker: int, *keys: str) -> str:
    """The screen at that marker, after the keys."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    playback = view_of(app).playback
    assert playback is not None and not playback.go(f"marker {marker}")
    app.tick(0.0)
    await pilot.pause()
    await pilot.press(*keys)
    await pilot.pause()
    await pilot.pause()
    return " ".join(screen_text(app).split())


def pointed(app: FwtuiApp) -> set[str]:
    return {
        next((name for name in widget.classes if name in PANELS), type(widget).__name__)
        for widget in app.screen.query(".-pointed")
    }


@pytest.mark.parametrize("size", ONE_SIZE)
async def test_questions_are_shown_and_answered_by_the_run(lecture: FwtuiApp, size: tuple[int, int]) -> None:
    async with lecture.run_test(size=size) as pilot:
        await pilot.pause()
        playback = view_of(lecture).playback
        assert playback is not None and playback.player.stops, "a lecture stops at its markers"
        card = lecture.screen.query_one(CueCard)
        assert card.region.area and "1 of 8" in screen_text(lecture), "the first marker is where it begins"
        text = await at(pilot, 3)
        assert "the meters: What share of the peak bandwidth" in text and "3 of 8" in text and card.region.area
        assert "92.1 %: 4.43 TB/s of 4.81 TB/s" not in text
        assert "92.1 %: 4.43 TB/s of 4.81 TB/s" in await at(pilot, 3, "exclamation_mark")
        assert pointed(lecture) == {"meters"}
        assert "92.1 %: 4.43 TB/s of 4.81 TB/s" not in await at(pilot, 3, "exclamation_mark"), "again: hidden"
        naive, blocked = (medians(LECTURE)[run] for run in (4, 8))
        answer = f"{naive / blocked:.2f}x as fast: {milliseconds(blocked)} against {milliseconds(naive)}"
        assert answer in await at(pilot, 5, "exclamation_mark")
        text = await at(pilot, 6)
        assert "Which phase takes longest?" in text and pointed(lecture) == {"phases"}
        text = await at(pilot, 6, "exclamation_mark")
        assert "✓ rest" in text and "rest: 92.6 % of the time" in text
        assert "warps and registers: 64 of 64 warps, 100 %" in await at(pilot, 7, "exclamation_mark")
        text = await at(pilot, 8, "exclamation_mark")
        assert "What would you try next?" in text and pointed(lecture) == {"HistoryTable"}
        await pilot.press("full_stop", "comma", "comma", "comma", "home")
        await pilot.pause()
        assert not card.region.area and not pointed(lecture)


async def test_the_panel_that_is_pointed_at_is_scrolled_to(lecture: FwtuiApp) -> None:
    async with lecture.run_test(size=(80, 24)) as pilot:
        await at(pilot, 7)
        meters = next(m for m in lecture.screen.query(".meters") if m.display and m.region.area)
        panel = lecture.screen.query_one("RunPanel")
        assert panel.region.intersection(meters.region).height >= min(meters.region.height, panel.region.height) - 1


async def test_the_log_says_a_marker_as_the_card_does(lecture: FwtuiApp) -> None:
    async with lecture.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await at(pilot, 6)
        shown = screen_text(lecture)
        log, card = (
            next(row for row in shown.splitlines() if said in row) for said in ("marker: the phases: ", "? the phases: ")
        )
        assert log.split("marker: ")[1].strip() == card.split("? ", 1)[1].split("  ")[0].strip()
        assert "@phases" not in shown and "b Baseline" in shown.splitlines()[-1] and "q Quit" in shown.splitlines()[-1]


async def test_a_marker_of_words_has_no_answer_and_any_place_shows_it(lecture: FwtuiApp) -> None:
    async with lecture.run_test(size=(120, 40)) as pilot:
        text = await at(pilot, 1)
        assert "A thread for each pair" in text and "! Answer" not in text
        assert "! Answer" in await at(pilot, 3)
        assert "What share of the peak" in await at(pilot, 3, "4"), "on the place Explain too"


async def test_a_question_before_anything_ran_says_so(replay_of: Callable[..., FwtuiApp]) -> None:
    told = [scenes.header(), scenes.NO_GPU, events.Marker(t=0.1, text="@phases ?phase"), events.Marker(t=0.2, text="?speedup")]
    app = replay_of([*told, *scenes.run(1, 0.3, Experiment(kernel="tiled-cpu", n=64), title="Tiled CPU", backend="cpu")])
    async with app.run_test(size=(120, 40)) as pilot:
        assert "no run has begun here" in await at(pilot, 1, "exclamation_mark")
        lines = app.screen.query_one(CueCard).lines
        assert "no run has begun here" in lines[-1].plain


def test_it_waits_at_a_marker_that_it_begins_with() -> None:
    for path, waits in ((LECTURE, True), (shipped_folder() / "h200-n4096-naive-blocked.fwt.jsonl", False)):
        playback = Playback(Recording("it", reader.load(path)), lambda seconds, call: None)
        assert playback.player.playing is not waits


async def test_a_long_hostile_marker_leaves_room_and_is_no_markup(replay_of: Callable[..., FwtuiApp]) -> None:
    words = "@phases ?limiter [bold]red[/] " + "x" * 1900
    told = scenes.run(1, 0.3, Experiment(kernel="naive", n=64), title="Naive")
    broken = [msgspec.structs.replace(e, threads=0) if isinstance(e, events.Occupancy) else e for e in told]
    app = replay_of([scenes.header(), scenes.GPU, *broken, events.Marker(t=9.0, text=words)])
    async with app.run_test(size=(80, 24)) as pilot:
        text = await at(pilot, 1, "exclamation_mark")
        assert "[bold]red[/]" in text and app.screen.query_one("RunPanel").region.height >= 3
        assert app.screen.query_one(CueCard).region.height <= 12


async def test_other_recordings_play_over_their_markers(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of([scenes.header(), scenes.NO_GPU, events.Marker(t=0.1, text="just words")])
    async with app.run_test(size=(80, 24)):
        playback = view_of(app).playback
        assert playback is not None and not playback.player.stops


@pytest.mark.parametrize("size", SIZES)
def test_pictures(lecture: FwtuiApp, snap_compare, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await at(pilot, 6, "exclamation_mark")
        assert pilot.app.screen.query_one(".phases").has_class("-pointed")

    assert snap_compare(lecture, terminal_size=size, run_before=before)
