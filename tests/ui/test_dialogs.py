"""Dialogs over the dashboard: help, the log, the form, and the palette of commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import scenes
from apps import screen_of
from fake_live import FakeLive
from pressing import NARROW, WIDE, go, opened, proceed, until
from textual.events import Click, Key
from textual.widgets import Input, OptionList

from fwtui.common import units
from fwtui.stream import events
from fwtui.tui.actions import Action
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.frame.dialogs import MOST_ENTRIES, AskScreen, FormScreen, HelpScreen, Hung, Scrolled, log_rows
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.notices import LogEntry
from fwtui.tui.frame.palette import Palette, found
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.run.session_screen import ReplayScreen


async def test_help_lists_every_binding_and_explains_what_the_screens_say(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, size=(120, 240)) as pilot:
        offered = [command.words for command in screen_of(dashboard, RunScreen).commands()]
        shown = await go(pilot, "question_mark")
        assert isinstance(dashboard.screen, HelpScreen)
        bindings = [b for b in RunScreen.BINDINGS if isinstance(b, Action) and b.successor is None and not b.rare]
        assert "Own cost" not in shown and any(words.startswith("Own cost: ") for words in offered)
        assert len({b.id for b in bindings}) == len(bindings) >= 10
        for binding in bindings:
            assert binding.id and binding.tooltip and f" {binding.description} " in shown
        for word, meaning in GLOSSARY:
            assert f" {word} " in shown and " ".join(meaning.split()[:4]) in shown
        await proceed(pilot, "escape")
        await pilot.resize_terminal(60, 16)
        shown = await go(pilot, "question_mark")
        assert "To begin with" in shown and "v: the glossary" in shown and "bandwidth by model" not in shown
        assert "bandwidth by model" in await go(pilot, "v")
        assert "To begin with" in await go(pilot, "v")


async def test_the_log_the_palette_and_dialogs_over_others(dashboard: FwtuiApp, live: FakeLive, tmp_path: Path) -> None:
    async with opened(dashboard) as pilot:
        await proceed(pilot, "r")
        live.tell(events.Notice(t=live.now, text="caches are warm", level="warning"))
        shown = await go(pilot)
        assert "! caches are warm" in shown
        shown = await go(pilot, "l")
        assert dashboard.screen.query(Scrolled)
        assert "run 1 started" in shown and "run 1 finished: ✓ verified" in shown
        await go(pilot, "l")
        assert isinstance(dashboard.screen, RunScreen), "the key that opened it closes it, too"
        answers: list[str | None] = []
        asked = AskScreen("What?")
        dashboard.push_screen(asked, answers.append)
        await proceed(pilot, "ctrl+p")
        asked.dismiss("this")
        asked.dismiss("that")
        await proceed(pilot)
        assert answers == ["this"] and isinstance(dashboard.screen, RunScreen)
        await proceed(pilot, "question_mark")
        shown = await go(pilot, "ctrl+p")
        assert isinstance(dashboard.screen, Palette) and "Run: start what the form says" in shown
        await proceed(pilot, "escape")
        assert isinstance(dashboard.screen, RunScreen)
        broken = tmp_path / "broken.fwt.jsonl"
        broken.write_text("nothing\n")
        dashboard.open(broken)
        await until(pilot, lambda: "is not a fwtui session" in screen_text(dashboard))
        assert "is not a fwtui session" in screen_text(dashboard)
        dashboard.action_command_palette()
        dashboard.screen.dismiss()
        await pilot.pause()
        await pilot.press("ctrl+p")
        dashboard.screen.query_one(Input).value = "run"
        dashboard.screen.dismiss()
        await pilot.pause()
        assert isinstance(dashboard.screen, RunScreen)
        await go(pilot, "ctrl+p")
        beside = Click(dashboard.screen, 200, 60, 0, 0, 1, False, False, False, 200, 60)  # the terminal has shrunk since
        dashboard.screen.post_message(beside)
        await pilot.pause()
        dashboard.screen.query_one(OptionList).remove()
        dashboard.screen.query_one(Input).value = "run"
        await pilot.pause()
        assert isinstance(dashboard.screen, Palette)


def test_of_a_long_log_the_end_is_shown() -> None:
    rows = log_rows([LogEntry(float(number), f"notice {number}") for number in range(MOST_ENTRIES + 5)])
    assert "5 earlier entries" in rows[0][0].plain and (rows[1][1], rows[-1][1]) == ("notice 5", f"notice {MOST_ENTRIES + 4}")


async def test_a_dialog_answers_once_however_many_keys_come(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with app.run_test(size=WIDE) as pilot:
        await proceed(pilot, "G")
        assert isinstance(app.screen, AskScreen)
        app.screen.query_one(Input).value = "run 2"
        for key in ("enter", "enter", "enter", "right_square_bracket", "G"):
            app.post_message(Key(key, None))
        await proceed(pilot)
        assert app.is_running and isinstance(app.screen, ReplayScreen) and len(app.screen_stack) == 1
        assert app.view is not None and app.view.model.current == 2, "the keys after it reach no other screen"
        await proceed(pilot, "right_square_bracket")
        assert app.view.model.current == 3, "later ones do"


async def test_the_form_opens_over_a_narrow_screen_and_enter_runs_it(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with dashboard.run_test(size=NARROW) as pilot:
        assert " tiled-cpu · n 512 · density 0.3 · tile 64 · float32 · eager   e edit" in await go(pilot)
        await proceed(pilot, "e")
        assert isinstance(dashboard.screen, FormScreen)
        field = dashboard.screen.query_one("#field-n", Input)
        field.focus()
        field.value = "9999999"
        shown = await go(pilot, "enter")
        assert isinstance(dashboard.screen, FormScreen) and "outside" in shown
        field.value = "64"
        shown = await go(pilot, "enter")
        assert isinstance(dashboard.screen, RunScreen)
        assert live.started[0].n == 64
        assert "n 64" in shown


async def test_the_palette_offers_keys_kernels_and_sessions(dashboard: FwtuiApp, live: FakeLive, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "fwtui" / "sessions"
    folder.mkdir(parents=True)
    scenes.write(folder / "one-two.fwt.jsonl", scenes.cpu_session())
    folder.with_name("kept").mkdir()
    for number in range(8):
        scenes.write(folder.with_name("kept") / f"kept-{number}.fwt.jsonl", scenes.cpu_session())
    async with opened(dashboard) as pilot:
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
