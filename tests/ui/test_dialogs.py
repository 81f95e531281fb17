"""Dialogs over the dashboard: help, the log, the form."""

from __future__ import annotations

from collections.abc import Callable

import scenes
from fake_live import FakeLive
from pressing import NARROW, WIDE, go, opened, proceed
from textual.events import Key
from textual.widgets import Input

from fwtui.stream import events
from fwtui.tui.actions import Action
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.dialogs import MOST_ENTRIES, AskScreen, FormScreen, HelpScreen, Scrolled, log_rows
from fwtui.tui.frame.glossary import GLOSSARY
from fwtui.tui.frame.notices import LogEntry
from fwtui.tui.run.live_screen import RunScreen
from fwtui.tui.run.session_screen import ReplayScreen


async def test_help_lists_every_binding(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 60)) as pilot:
        await proceed(pilot)
        assert isinstance(dashboard.screen, RunScreen)
        offered = [command.words for command in dashboard.screen.commands()]
        shown = await go(pilot, "question_mark")
        assert isinstance(dashboard.screen, HelpScreen)
    bindings = [b for b in RunScreen.BINDINGS if isinstance(b, Action) and b.successor is None and not b.rare]
    assert len(bindings) >= 10
    for binding in bindings:
        assert binding.id and binding.tooltip
        assert f" {binding.description} " in shown
    assert len({b.id for b in bindings}) == len(bindings)
    assert "Own cost" not in shown and any(words.startswith("Own cost: ") for words in offered)


async def test_help_explains_what_the_screens_say(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 240)) as pilot:
        shown = await go(pilot, "question_mark")
    for word, meaning in GLOSSARY:
        assert f" {word} " in shown and " ".join(meaning.split()[:4]) in shown


async def test_the_glossary_is_two_keys_away_on_the_smallest_screen(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(60, 16)) as pilot:
        shown = await go(pilot, "question_mark")
        assert "To begin with" in shown and "v: the glossary" in shown and "bandwidth by model" not in shown
        assert "bandwidth by model" in await go(pilot, "v")
        assert "To begin with" in await go(pilot, "v")


async def test_the_log_holds_what_happened(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with dashboard.run_test(size=WIDE) as pilot:
        await proceed(pilot, "r")
        live.tell(events.Notice(t=live.now, text="caches are warm", level="warning"))
        shown = await go(pilot)
        assert "! caches are warm" in shown
        shown = await go(pilot, "l")
        assert dashboard.screen.query(Scrolled)
        assert "run 1 started" in shown and "run 1 finished: ✓ verified" in shown
        await go(pilot, "l")
        assert isinstance(dashboard.screen, RunScreen), "the key that opened it closes it, too"


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


async def test_a_dialog_that_answers_while_another_is_open_over_it_takes_that_along(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        answers: list[str | None] = []
        asked = AskScreen("What?")
        dashboard.push_screen(asked, answers.append)
        await proceed(pilot, "ctrl+p")
        asked.dismiss("this")
        asked.dismiss("that")
        await proceed(pilot)
        assert answers == ["this"] and isinstance(dashboard.screen, RunScreen)


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
