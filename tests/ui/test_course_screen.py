"""The Learn screen: steps of the course, guesses and answers, errors, and a plan followed step by step."""

from dataclasses import replace
from typing import Any

import pytest
from apps import dashboard_of, screen_of
from fake_live import FakeLive
from pressing import NARROW, SIZES, WIDE, keyed, opened, press
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input

from fwtui.common.errors import Refused
from fwtui.learn import lessons as lessons_module
from fwtui.learn.course import load_course
from fwtui.learn.kernel_source import source
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.ui_state import SavedUiState
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.appearance import Appearance
from fwtui.tui.frame.dialogs import PromptScreen
from fwtui.tui.learn.course_panel import CourseAnswer, CourseText, GuessInput
from fwtui.tui.learn.distance_grid import DistanceGrid, distance_text
from fwtui.tui.learn.screen import LearnScreen
from fwtui.tui.learn.source_view import GUTTER, SourceView, _numbered
from fwtui_kernels import registry

STEPS = len(load_course())


def begun(live: FakeLive, step: str, **given: Any) -> FwtuiApp:
    """Return the application as `fwtui learn STEP` starts it."""
    return dashboard_of(live, found=Hardware(reason="none"), place="learn", lesson=step, **given)


async def go(pilot: Pilot[None], *keys: str) -> str:
    return " ".join((await keyed(pilot, *keys)).split())


def answered(app: FwtuiApp) -> str:
    """Return the answer and the guess as one line."""
    return " ".join(" ".join(row.plain for row in app.screen.query_one(CourseAnswer).lines).split())


def guessing(app: FwtuiApp) -> str | None:
    """Return the text of the guess, or None if its input does not have the focus."""
    return app.focused.value if isinstance(app.focused, GuessInput) else None


async def test_guess_and_answer_are_shown_together(live: FakeLive) -> None:
    app = begun(live, "blocked")
    async with opened(app) as pilot:
        text = await go(pilot)
        assert f"4 of {STEPS} Tiles in shared memory" in text and "recorded on NVIDIA H200" in text
        assert "the recorded run" not in text
        text = await go(pilot, "6", "x", "enter")
        answer = screen_of(app, LearnScreen).progress.lessons.answer(screen_of(app, LearnScreen).progress.step)
        assert answer.number is not None and answer.number > 6
        assert "your guess" in text and "6.00x" in text and answer.text in answered(app) and "times too low" in text
        assert f"5 of {STEPS} The lonely pivot" in await go(pilot, "enter"), "Enter goes on once it is answered"
        assert isinstance(app.screen, LearnScreen)
        assert "type a number from 1 to 3, not '7'" in await go(pilot, "7", "enter") and guessing(app) == "7"
        text = await go(pilot, "backspace", "3", "enter")
        assert "✓ remainder" in text and "Right. remainder:" in text
        assert "6.00x" in await go(pilot, "left_parenthesis"), "guesses are kept"


async def test_an_empty_guess_shows_the_answer_and_an_invalid_one_is_refused(live: FakeLive) -> None:
    app = begun(live, "serial")
    async with opened(app, size=NARROW) as pilot:
        text = await go(pilot, "9", *"soon", "enter")
        assert "type a time such as 20 s, 5 ms or 2 min, not '9soon'" in text and guessing(app) == "9soon"
        text = await go(pilot, "escape")
        assert guessing(app) is None and "soon" not in text and not screen_of(app, LearnScreen).progress.answered, (
            "Esc does not answer"
        )
        text = await go(pilot, "enter", "enter")
        assert "the recorded run" in text and "your guess" not in text
        assert "this is the first step" in await go(pilot, "left_parenthesis")
        text = await go(pilot, "end", "right_parenthesis")
        assert f"{STEPS} of {STEPS}" in text and "this is the last step" in text
        text = await go(pilot, "9", "0", "enter")
        assert "All kernels of the course, n 4096" in text and "Serial CPU" in text and "1.00x" in text and "Look-ahead" in text


async def test_the_course_goes_on_where_it_was_and_a_narrow_screen_shows_its_lesson_or_the_matrix(live: FakeLive) -> None:
    app = begun(live, "blocked", saved_state=SavedUiState(course="blocked"))
    async with opened(app, size=NARROW) as pilot:
        assert "continued at step 4; Home opens the first step" in await go(pilot)
        text = await go(pilot, "home")
        assert f"1 of {STEPS}" in text
        assert f"{STEPS} steps; the course continues where you stopped" in text
        assert f"{STEPS} of {STEPS}" in await go(pilot, "end")
        assert "going on" not in await go(pilot, *["left_parenthesis"] * (STEPS - 4))
        words, grid = app.screen.query_one(CourseText), app.screen.query_one(DistanceGrid)
        assert words.region.area and not grid.region.area
        assert screen_of(app, LearnScreen).stepping.position == 0
        await press(pilot, "colon", "w")
        assert isinstance(app.screen, LearnScreen) and screen_of(app, LearnScreen).stepping.position == 0, (
            "no key moves what is not seen"
        )
        text = await go(pilot, "t")
        assert not words.region.area and grid.region.area and "Katz-Kider · n 8" in text
        assert "step 1 of 6" in await go(pilot, "colon")
        assert "The lonely pivot" in await go(pilot, "right_parenthesis"), "the course goes on from the matrix too"
        assert "Tiles in shared memory" in await go(pilot, "left_parenthesis")
        await pilot.resize_terminal(120, 40)
        text = await go(pilot)
        assert words.region.area and grid.region.area and "fwtui_kernels/parts/blocked_tiles.py" in text
        assert "step 1 of 6" in await go(pilot, "colon")
        await press(pilot, "t")
        assert not words.region.area


async def test_a_step_runs_here_and_its_answer_is_shown_with_the_recorded_run(live: FakeLive) -> None:
    live.pace = 3
    app = begun(live, "cores")
    async with opened(app, "r") as pilot:
        app.tick(0.0)
        await pilot.pause()
        assert "Serial CPU is running" in await go(pilot)
        await press(pilot, "c")
        live.pace = 1000
        for _ in range(3):
            app.tick(0.0)
            await pilot.pause()
        assert len(live.started) == 1 and "Serial CPU was cancelled" in await go(pilot), "and what was to follow"
        await press(pilot, "r")
        for _ in range(4):
            app.tick(0.0)
            await pilot.pause()
        assert [(e.kernel, e.n) for e in live.started[1:]] == [("serial", 512), ("tiled-cpu", 512)]
        text = await go(pilot)
        assert "done; guess" in text, "the answer is not told before"
        text = await go(pilot, *"100", "enter")
        assert "here, n 512" in text and "speedup over Serial CPU: 6.67 ms against 10.0 ms" in answered(app)
        assert "here, n" not in await go(pilot, "right_parenthesis")


async def test_a_kernel_for_gpus_is_simulated_and_no_key_leaves_the_page_while_a_guess_is_typed(live: FakeLive) -> None:
    app = begun(live, "naive")
    async with opened(app, size=NARROW) as pilot:
        assert "r: run it in the simulator" in await go(pilot)
        await press(pilot, "r")
        app.tick(0.0)
        assert [(e.kernel, e.n, e.device) for e in live.started] == [("naive", 8, "simulator")]
        assert "here, n 8: all distances are correct; the simulator" in await go(pilot)
        await pilot.resize_terminal(60, 16)
        text = await go(pilot, "2")
        assert guessing(app) == "2" and "your guess: 2" in text and isinstance(app.screen, LearnScreen), "2 is not a place here"
        page = screen_of(app, LearnScreen).page
        await press(pilot, "tab", "shift+tab", *"q?tr1<", "up", "down")
        assert guessing(app) == "2q?tr1<" and screen_of(app, LearnScreen).page == page and app.is_running
        app.screen.set_focus(None)  # as a click on the text does
        await press(pilot, "q")
        assert guessing(app) == "2q?tr1<q", "not by the mouse either"
        await press(pilot, "escape")
        assert guessing(app) is None and screen_of(app, LearnScreen).query_one(GuessInput).value == ""
        await press(pilot, "enter", "enter")
        assert screen_of(app, LearnScreen).progress.answered
        await press(pilot, "2")
        assert not isinstance(app.screen, LearnScreen), "answered, digits go to places as everywhere"


async def test_a_step_that_cannot_run_here_is_not_offered(live: FakeLive, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {**registry(), "naive": replace(registry()["naive"], simulates=False)}
    monkeypatch.setattr(lessons_module, "registry", lambda: kernels)
    app = begun(live, "naive")
    async with opened(app) as pilot:
        assert "run it" not in await go(pilot)
        assert "naive needs a GPU" in await go(pilot, "r") and not live.started


async def test_a_missing_course_is_reported(live: FakeLive, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise Refused("the course in course cannot be read: no such file or directory; install the program again")

    monkeypatch.setattr("fwtui.tui.learn.screen.lessons", gone)
    app = begun(live, "1")
    async with opened(app, size=NARROW) as pilot:
        assert "the course in course cannot be read" in await go(pilot)
        assert "cell d[0,0]" in await go(pilot, "t"), "the matrix is there nevertheless"


@pytest.mark.parametrize("size", SIZES)
def test_pictures(live: FakeLive, snap_compare, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await press(pilot, "2", "enter")

    assert snap_compare(begun(live, "slices"), terminal_size=size, run_before=before)


@pytest.fixture
def learning(live: FakeLive) -> FwtuiApp:
    return dashboard_of(live, found=Hardware(reason="none"), place="learn")


async def test_a_plan_is_followed_forwards_and_backwards(learning: FwtuiApp) -> None:
    async with opened(learning) as pilot:
        shown_first = await keyed(pilot)
        assert "before the first step: edge weights" in shown_first and "Katz-Kider · n 8 · tile 4 · seed 7" in shown_first
        assert "step 1 of 6 · round 1 of 2" in await keyed(pilot, "colon")
        assert "k = 3" in await keyed(pilot, "full_stop")
        assert "step 2 of 6" in await keyed(pilot, "full_stop")
        assert "step 3 of 6" in await keyed(pilot, "right_curly_bracket")
        assert "step 6 of 6 · round 2 of 2" in await keyed(pilot, "end")
        assert "k = 6" in await keyed(pilot, "semicolon")
        assert "step 3 of 6" in await keyed(pilot, "left_curly_bracket")
        assert "step 2 of 6" in await keyed(pilot, "comma")
        assert await keyed(pilot, "home") == shown_first
        here = screen_of(learning, LearnScreen)
        await press(pilot, "space")
        for _ in range(30):
            here.play_on()
        await pilot.pause()
        assert "step 6 of 6" in screen_text(learning) and not here.plays
        await press(pilot, "space")
        assert here.plays and here.stepping.position < 6, "it begins again"
        await press(pilot, "space")
        await pilot.resize_terminal(80, 24)
        here.stepping.choose(n=24)
        here.update(True)
        await press(pilot, *["right"] * 30, *["down"] * 30)
        grid = learning.screen.query_one(DistanceGrid)
        assert grid.scroll_offset.x > 0 and grid.scroll_offset.y > 0
        assert "d[23,23]" in screen_text(learning)
        follow = {c.title: c for c in screen_of(learning, LearnScreen).commands()}
        follow["Follow: kleene"].run()
        assert "R-Kleene" in await keyed(pilot) or "kleene" in (await keyed(pilot)).lower()


async def test_the_marked_cell_shows_its_relaxation_and_path(learning: FwtuiApp) -> None:
    async with opened(learning, "end", *["right"] * 6, *["down"] * 4) as pilot:
        s = screen_of(learning, LearnScreen).stepping
        assert (s.row, s.column) == (4, 6)
        text = await keyed(pilot)
        assert " → ".join(map(str, s.path)) + f", length {distance_text(s.distances[4, 6])}" in text
        begin = next(m for m in range(len(s.trace.moments)) if s.trace.distances[m + 1][4, 6] < s.trace.distances[m][4, 6])
        s.go(begin + 1)
        screen_of(learning, LearnScreen).update(True)
        text = await keyed(pilot)
        k = s.trace.moments[begin].k
        assert f"d[4,6] = min(d[4,6], d[4,{k}] + d[{k},6])" in text and f"{distance_text(s.distances[4, 6])}*" in text
        s.mark(0, 0)
        screen_of(learning, LearnScreen).update(True)
        await pilot.click(DistanceGrid, offset=(4 + 5 * 2 + 1, 4))
        assert (s.row, s.column) == (3, 2)
        s.mark(0, 0)
        await press(pilot, "home", "right", "w")
        assert isinstance(learning.screen, PromptScreen)
        learning.screen.query_one(Input).value = "3"
        text = await keyed(pilot, "enter")
        assert screen_of(learning, LearnScreen).stepping.weights[0, 1] == 3 and "weights changed by hand" in text
        await press(pilot, "w")
        learning.screen.query_one(Input).value = "three"
        assert "'three' is not an integer" in await keyed(pilot, "enter")
        await press(pilot, "Z")
        learning.screen.query_one(Input).value = "25"
        assert "25" in await keyed(pilot, "enter") and screen_of(learning, LearnScreen).stepping.trace.n == 8
        await press(pilot, "Z")
        learning.screen.query_one(Input).value = "11"
        assert "n 11" in await keyed(pilot, "enter")
        assert "seed 8" in await keyed(pilot, "F")
        before = screen_of(learning, LearnScreen).stepping.trace.kernel.id
        await press(pilot, "k")
        assert screen_of(learning, LearnScreen).stepping.trace.kernel.id != before
        await press(pilot, "K")
        assert screen_of(learning, LearnScreen).stepping.trace.kernel.id == before


async def test_the_source_of_what_runs_is_marked(learning: FwtuiApp) -> None:
    async with learning.run_test(size=(120, 60)) as pilot:
        assert "▌ " not in (await keyed(pilot)).replace("▌ runs now", ""), "nothing runs at the beginning"
        for name in ("pivot(distance, p)", "panels(distance, p)", "rest(distance, p)"):
            text = await keyed(pilot, "colon")
            assert f" ▌ def {name}:" in text
            await press(pilot, "full_stop")
        place = learning.screen.query_one("#source")
        words = learning.screen.query_one(SourceView)
        await press(pilot, "pagedown")
        assert place.scroll_y > words.begins, "the page keys read on"
        before = place.scroll_y
        assert "▌ def panels" in await keyed(pilot, "comma") and place.scroll_y < before


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_of_a_source_is_cut(width: int) -> None:
    for part in source("look-ahead"):
        for code in part.lines:
            drawn = _numbered(1, Content(code), True, False, width)
            assert all(row.cell_length <= width for row in drawn)
            assert "".join(row.plain[GUTTER:] for row in drawn).replace(" ", "") == code.replace(" ", "")


@pytest.mark.parametrize("size", [pytest.param((60, 16), marks=pytest.mark.slow), WIDE])
def test_snapshots(learning: FwtuiApp, snap_compare, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await press(pilot, "full_stop", "full_stop", "colon", *["right"] * 6, *["down"] * 4)

    assert snap_compare(learning, terminal_size=size, run_before=before)


async def test_a_clicker_goes_through_the_course() -> None:
    app = FwtuiApp(place="learn", lesson="1", look=Appearance(presenter=True), read_only=True)
    async with opened(app, size=(120, 40)) as pilot:
        page = app.screen
        assert isinstance(page, LearnScreen) and not page.progress.answered
        seen = set()
        for _ in range(8):
            await press(pilot, "pagedown")
            seen.add((page.progress.place, page.progress.answered))
        assert {(0, True), (1, False)} <= seen
        await press(pilot, *["pageup"] * 12)
        assert page.progress.place == 0
