"""Errors of the screens themselves: the program goes on, and says where the details are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fake_live import FakeLive
from pressing import WIDE, go, opened, proceed, until
from textual.widgets import DataTable

from fwtui.tui.app import crash_log
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.crash_log import CrashLog, FailedPlace
from fwtui.tui.explain.screen import ExplainScreen
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.run.live_screen import RunScreen


@pytest.fixture
def survivor(every_frame: None, dashboard: FwtuiApp) -> FwtuiApp:
    """The dashboard as a user has it: with what a test would see raised."""
    dashboard.crash_log = CrashLog()
    return dashboard


def fails(*given: object) -> None:
    secret = "a value that nobody is to see"
    raise IndexError(f"made to fail {len(secret)}")


def details() -> str:
    (file,) = crash_log.folder().iterdir()
    return file.read_text()


async def test_a_widget_that_fails_is_drawn_anew(survivor: FwtuiApp) -> None:
    async with opened(survivor) as pilot:
        before, table = survivor.screen, survivor.screen.query(DataTable).first()
        table.focus()
        table.action_cursor_down = fails  # type: ignore[method-assign]
        await pilot.press("down")
        shown = await go(pilot)
        assert survivor.is_running and survivor.return_code is None
        assert isinstance(survivor.screen, RunScreen) and survivor.screen is not before
        assert "this screen failed and was drawn anew" in shown and "IndexError" in shown
        assert "made to fail" in details() and "nobody is to see" not in details()
        await proceed(pilot, "4")
        assert isinstance(survivor.screen, ExplainScreen), "its keys are handled"


async def test_the_program_itself_goes_on_after_an_error(survivor: FwtuiApp, live: FakeLive) -> None:
    async with survivor.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: survivor.painted)
        await proceed(pilot, "question_mark")
        survivor.action_place = fails  # type: ignore[method-assign, assignment]
        survivor.post_message(TopBar.Chosen("explain"))
        while len(survivor.screen_stack) > 1:  # "no dialog is left open"; Pilot would wait for the one that is closed
            await asyncio.sleep(0.01)
        del survivor.action_place
        assert "IndexError" in await go(pilot)
        await proceed(pilot, "r")
        assert len(live.started) == 1


async def test_a_place_that_never_works_says_so_and_the_others_are_there(
    survivor: FwtuiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(survivor) as pilot:
        with monkeypatch.context() as patched:
            patched.setattr(ExplainScreen, "show", fails)
            survivor.crash_log = CrashLog(most_drawn=1)
            shown = await go(pilot, "4")
            assert isinstance(survivor.screen, FailedPlace) and "This place cannot be shown: IndexError" in shown
            await proceed(pilot, "1")
            assert isinstance(survivor.screen, RunScreen)
        await proceed(pilot, "4")
        assert isinstance(survivor.screen, ExplainScreen), "another attempt is made"


async def test_an_error_before_the_first_frame_is_one_sentence(
    survivor: FwtuiApp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RunScreen, "body", fails)
    await survivor.run_async(headless=True, size=WIDE)
    assert not capsys.readouterr().err and survivor.failure.startswith("fwtui: error in the dashboard: IndexError; details in ")
    assert survivor.return_code == 1


def test_the_details_are_bounded(tmp_path: Path) -> None:
    crash_log.folder().mkdir(parents=True)
    for old in ("20200101-000000-1", "20200102-000000-1"):
        (crash_log.folder() / f"{old}.txt").touch()
    kept = CrashLog(most_files=2, most_errors=3)
    said = [kept.keep(ValueError(f"error {number}")) for number in range(5)]
    assert sorted(file.name for file in crash_log.folder().iterdir()) == ["20200102-000000-1.txt", kept.path.name]
    assert kept.path.read_text().count("ValueError: error") == 3
    assert said[0] == f"ValueError; details in {kept.path}" and "5 errors by now" in said[-1]
    (tmp_path / "file").touch()
    assert CrashLog(tmp_path / "file" / "x.txt").keep(ValueError()) == "ValueError", "no file can be made"


async def test_a_screen_that_is_taken_away_is_not_updated(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=WIDE) as pilot:
        await go(pilot)
        screen, mode = dashboard.screen, dashboard.current_mode
        assert isinstance(screen, RunScreen)
        await go(pilot, "3")
        await dashboard.remove_mode(mode)
        screen.update(True)
