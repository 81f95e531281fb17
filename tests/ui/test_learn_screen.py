"""The place to learn: keys move through the plan both ways, weights change, the kernel itself is compared."""

from __future__ import annotations

import pytest
from apps import dashboard_of, screen_of
from fake_live import FakeLive
from pressing import WIDE, keyed, opened, press, until
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input

from fwtui.learn import real
from fwtui.learn.kernel_source import source
from fwtui.learn.real import Agreement
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.dialogs import AskScreen
from fwtui.tui.learn.distance_grid import DistanceGrid, shown
from fwtui.tui.learn.screen import LearnScreen
from fwtui.tui.learn.source_words import GUTTER, SourceWords, _numbered


@pytest.fixture
def learning(live: FakeLive) -> FwtuiApp:
    return dashboard_of(live, found=Hardware(reason="none"), place="learn")


async def test_a_plan_is_followed_forwards_and_backwards(learning: FwtuiApp) -> None:
    async with opened(learning) as pilot:
        shown_first = await keyed(pilot)
        assert "the graph itself" in shown_first and "Katz-Kider · n 8 · tile 4 · seed 7" in shown_first
        assert "step 1 of 6 · round 1 of 2" in await keyed(pilot, "full_stop")
        assert "k = 3" in await keyed(pilot, "right_square_bracket")
        assert "step 2 of 6" in await keyed(pilot, "right_square_bracket")
        assert "step 3 of 6" in await keyed(pilot, "right_curly_bracket")
        assert "step 6 of 6 · round 2 of 2" in await keyed(pilot, "end")
        assert "k = 6" in await keyed(pilot, "comma")
        assert "step 3 of 6" in await keyed(pilot, "left_curly_bracket")
        assert "step 2 of 6" in await keyed(pilot, "left_square_bracket")
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
        follow = {c.words: c for c in screen_of(learning, LearnScreen).commands()}
        follow["Follow: kleene"].run()
        assert "R-Kleene" in await keyed(pilot) or "kleene" in (await keyed(pilot)).lower()


async def test_the_marked_cell_tells_its_relaxation_and_its_path(learning: FwtuiApp) -> None:
    async with opened(learning, "end", *["right"] * 6, *["down"] * 4) as pilot:
        s = screen_of(learning, LearnScreen).stepping
        assert (s.row, s.column) == (4, 6)
        text = await keyed(pilot)
        assert " → ".join(map(str, s.path)) + f", length {shown(s.distances[4, 6])}" in text
        begin = next(m for m in range(len(s.trace.moments)) if s.trace.distances[m + 1][4, 6] < s.trace.distances[m][4, 6])
        s.go(begin + 1)
        screen_of(learning, LearnScreen).update(True)
        text = await keyed(pilot)
        k = s.trace.moments[begin].k
        assert f"d[4,6] = min(d[4,6], d[4,{k}] + d[{k},6])" in text and f"{shown(s.distances[4, 6])}*" in text
        s.mark(0, 0)
        screen_of(learning, LearnScreen).update(True)
        await pilot.click(DistanceGrid, offset=(4 + 5 * 2 + 1, 4))
        assert (s.row, s.column) == (3, 2)
        s.mark(0, 0)
        await press(pilot, "home", "right", "w")
        assert isinstance(learning.screen, AskScreen)
        learning.screen.query_one(Input).value = "3"
        text = await keyed(pilot, "enter")
        assert screen_of(learning, LearnScreen).stepping.weights[0, 1] == 3 and "weights changed by hand" in text
        await press(pilot, "w")
        learning.screen.query_one(Input).value = "three"
        assert "'three' is not a whole number" in await keyed(pilot, "enter")
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


async def test_the_source_follows_what_runs_and_the_kernel_itself_is_compared_on_request(
    learning: FwtuiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with learning.run_test(size=(120, 60)) as pilot:
        assert "▌ " not in (await keyed(pilot)).replace("▌ runs now", ""), "nothing runs at the beginning"
        for name in ("pivot(distance, p)", "panels(distance, p)", "rest(distance, p)"):
            text = await keyed(pilot, "full_stop")
            assert f" ▌ def {name}:" in text
            await press(pilot, "right_square_bracket")
        place = learning.screen.query_one("#source")
        words = learning.screen.query_one(SourceWords)
        await press(pilot, "pagedown")
        assert place.scroll_y > words.begins, "the page keys read on"
        before = place.scroll_y
        assert "▌ def panels" in await keyed(pilot, "left_square_bracket") and place.scroll_y < before
        answers = iter([Agreement(6), Agreement(6, wrong=2), Agreement(reason="no numba")])
        monkeypatch.setattr(real, "compare", lambda trace, experiment, stop: next(answers))
        for words in ("has the same distances after each of 6 steps", "differs after step 3", "could not be compared: no numba"):
            await press(pilot, "V")
            await until(pilot, lambda words=words: all(word in screen_text(learning) for word in words.split()))
        assert "V runs the kernel itself" in await keyed(pilot, "F"), "another graph has not been compared"


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_of_a_source_is_cut(width: int) -> None:
    for part in source("look-ahead"):
        for code in part.lines:
            drawn = _numbered(1, Content(code), True, False, width)
            assert all(row.cell_length <= width for row in drawn)
            assert "".join(row.plain[GUTTER:] for row in drawn).replace(" ", "") == code.replace(" ", "")


@pytest.mark.parametrize("size", [(60, 16), WIDE])
def test_snapshots(learning: FwtuiApp, snap_compare, size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await press(pilot, "right_square_bracket", "right_square_bracket", "full_stop", *["right"] * 6, *["down"] * 4)

    assert snap_compare(learning, terminal_size=size, run_before=before)
