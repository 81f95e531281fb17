"""The palette: keys, kernels, sessions and measuring what the machine can do."""

from __future__ import annotations

import scenes
from apps import screen_of
from fake_live import FakeLive
from pressing import WIDE, go, opened, proceed, until
from textual.events import Click
from textual.widgets import Input, OptionList

from fwtui.common import units
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.dialogs import Hung
from fwtui.tui.frame.palette import Palette, found
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.run.session_screen import ReplayScreen


async def test_over_the_help_the_palette_offers_what_the_place_below_has(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=WIDE) as pilot:
        await proceed(pilot, "question_mark")
        shown = await go(pilot, "ctrl+p")
        assert isinstance(dashboard.screen, Palette) and "Run: start what the form says" in shown
        await proceed(pilot, "escape")
        assert isinstance(dashboard.screen, RunScreen)


async def test_the_palette_offers_keys_kernels_and_sessions(dashboard: FwtuiApp, live: FakeLive, tmp_path) -> None:
    folder = tmp_path / "data" / "fwtui" / "sessions"
    folder.mkdir(parents=True)
    scenes.write(folder / "one-two.fwt.jsonl", scenes.cpu_session())
    folder.with_name("kept").mkdir()
    for number in range(8):
        scenes.write(folder.with_name("kept") / f"kept-{number}.fwt.jsonl", scenes.cpu_session())
    async with dashboard.run_test(size=WIDE) as pilot:
        screen = screen_of(dashboard, RunScreen)
        words = [command.words for command in (*screen.commands(), *dashboard.commands())]
        assert "Kernel: katz-kider" in words and "Replay: one-two" in words
        assert [w for w in words if "kept-" in w] == [f"Replay: kept-{number}" for number in (7, 6, 5, 4, 3)], "the latest"
        assert any(w.startswith("Run: ") for w in words)
        assert len(set(words)) == len(words), "a key with two names is one command"
        hits = found([*screen.commands(), *dashboard.commands()], "telemetry")
        assert hits[0].words == "Go to Telemetry", "not what telemetry costs"
        assert not any(w.startswith("Cancel: ") for w in words)
        await proceed(pilot, "ctrl+p")
        assert isinstance(dashboard.screen, Palette)
        await pilot.press(*"kernel: serial")
        await pilot.pause(0.2)
        await pilot.press("enter")
        await pilot.pause(0.2)
        assert screen.draft.kernel.id == "serial"
        next(command for command in dashboard.commands() if command.words == "Replay: one-two").run()
        await until(pilot, lambda: isinstance(dashboard.screen, ReplayScreen))
        assert isinstance(dashboard.screen, ReplayScreen)
        footer = (await go(pilot)).rstrip("\n").split("\n")[-1]
        assert "q Back" in footer and "Quit" not in footer
        await proceed(pilot, "question_mark")
        keys = "\n".join(row.plain for row in dashboard.screen.query_one(Hung).lines)
        assert "q         Back " in keys and "Quit" not in keys
        await proceed(pilot, "escape")
        assert "q Quit" in (await go(pilot, "q")).rstrip("\n").split("\n")[-1]
        assert isinstance(dashboard.screen, RunScreen)


async def test_a_session_that_cannot_be_opened_is_a_sentence_on_the_log_line(dashboard: FwtuiApp, tmp_path) -> None:
    broken = tmp_path / "broken.fwt.jsonl"
    broken.write_text("nothing\n")
    async with dashboard.run_test(size=WIDE) as pilot:
        dashboard.open(broken)
        await until(pilot, lambda: "is not a fwtui session" in screen_text(dashboard))
        assert "is not a fwtui session" in screen_text(dashboard)


async def test_the_palette_measures_the_limit_and_the_run_is_a_share_of_it(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with dashboard.run_test(size=(140, 40)) as pilot:
        await proceed(pilot, "r")
        screen = screen_of(dashboard, RunScreen)
        offered = {command.words: command for command in screen.commands()}
        assert "Measure what this GPU can do at most" not in offered, "there is none here"
        offered["Measure what this CPU can do at most"].run()
        shown = await go(pilot)
        run = live.model.run
        assert run is not None and run.rate is not None
        assert "of the limit" in shown and "of 1.00 Trelax/s: float32" in shown
        assert units.percent(run.rate / 1e12) in shown


async def test_a_palette_that_closes_before_or_while_it_searches_just_closes(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        dashboard.action_command_palette()
        dashboard.screen.dismiss()
        await pilot.pause()
        await pilot.press("ctrl+p")
        dashboard.screen.query_one(Input).value = "run"
        dashboard.screen.dismiss()
        await pilot.pause()
        assert isinstance(dashboard.screen, RunScreen)


async def test_a_palette_whose_list_has_gone_and_a_click_beside_the_terminal_do_nothing(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 40)) as pilot:
        await go(pilot, "ctrl+p")
        beside = Click(dashboard.screen, 200, 60, 0, 0, 1, False, False, False, 200, 60)  # the terminal has shrunk since
        dashboard.screen.post_message(beside)
        await pilot.pause()
        dashboard.screen.query_one(OptionList).remove()
        dashboard.screen.query_one(Input).value = "run"
        await pilot.pause()
        assert isinstance(dashboard.screen, Palette)
