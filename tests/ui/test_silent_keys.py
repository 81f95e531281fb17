"""No key that the help names does nothing without a word."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import scenes
from fake_live import FakeLive
from pressing import NARROW, keyed, opened, press, proceed
from textual.actions import parse

from fwtui.experiment.experiment import Experiment
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.frame.dialogs import HelpScreen
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.key_line import KeyLine

# what another binding of the same key does, or what is seen not to move: at the top of a panel, on the first place
ROOM = 80 - 2 - len("   00:00  ")
SILENT = {"leave", "close", "back", "scroll_panel"}
ARROWS = {"jump", "jump.back", "leap", "leap.back", "home", "end"}


def unsaid(screen: Frame) -> list[str]:
    """Keys that the help names, that can do nothing now, and that would not say why in a line of 80 columns."""
    actions = {parse(row.action)[1:] for row in screen.rows.offered() if row.id not in ARROWS}
    reasons = {action: screen.unavailable(action, given) for action, given in actions}
    wrong = {action for action, words in reasons.items() if words is not None and not 0 < len(words) <= ROOM}
    return sorted(wrong - SILENT)


async def everywhere(app: FwtuiApp, size: tuple[int, int], *first: str) -> dict[str, list[str]]:
    found = {}
    async with opened(app, *first, size=size) as pilot:
        assert app.view is not None
        for tab in app.view.places:
            await press(pilot, tab.key)
            assert isinstance(app.screen, Frame)
            found[tab.name] = unsaid(app.screen)
    return found


@pytest.mark.parametrize(("size", "ran"), [((80, 24), False), pytest.param((120, 40), True, marks=pytest.mark.slow)])
async def test_every_key_of_the_dashboard_says_why_it_can_do_nothing(
    dashboard: FwtuiApp, live: FakeLive, size: tuple[int, int], ran: bool
) -> None:
    if ran:
        live.start(live.settled(Experiment(kernel="tiled-cpu", n=512)))
        live.drain()
    found = await everywhere(dashboard, size)
    assert found and not any(found.values()), found


@pytest.mark.parametrize(("size", "start"), [((80, 24), 0.0), pytest.param((120, 40), None, marks=pytest.mark.slow)])
async def test_every_key_of_a_replay_says_why_it_can_do_nothing(
    replay_of: Callable[..., FwtuiApp], size: tuple[int, int], start: float | None
) -> None:
    found = await everywhere(replay_of(scenes.gpu_session(), start), size)
    assert found and not any(found.values()), found


async def test_a_key_that_can_do_nothing_says_so_on_the_log_line(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(80, 24)) as pilot:
        assert "nothing is running that could be cancelled" in await keyed(pilot, "escape", "c")
        assert "a marker needs a recording; R keeps this session" in await keyed(pilot, "m")
        assert "no run has begun yet" in await keyed(pilot, "o")


async def test_a_key_that_has_moved_says_where(dashboard: FwtuiApp) -> None:
    moved = (
        *(("1", "A", "A is now v"), ("1", "g", "g is now in Compare: press 3 then g"), ("4", "n", "n is now ↓")),
        *(("1", "C", "C is now in Compare: press 3 then C"), ("1", "h", "h is now in Explain: press 4 then h")),
        *(("1", "D", "D is now in Explain: press 4 then D"), ("5", "T", "T is now P")),
    )
    async with opened(dashboard, "escape", size=NARROW) as pilot:
        for place, key, words in moved:
            assert words in await keyed(pilot, place, key)
            assert words not in [row.tooltip for row in dashboard.screen.rows.offered()]  # type: ignore[attr-defined]


async def test_a_recording_says_where_it_ends_and_forgets_it_elsewhere(replay_of: Callable[..., FwtuiApp]) -> None:
    async with replay_of(scenes.gpu_session()).run_test(size=(80, 24)) as pilot:
        assert "no run begins after this" in await keyed(pilot, "right_square_bracket")
        assert "this is the end" in await keyed(pilot, "full_stop")
        there = await keyed(pilot, "left_square_bracket")
        assert "no run begins" not in there and "this is the end" not in there
        assert "0.25x is the slowest speed" in await keyed(pilot, *["less_than_sign"] * 3)


async def test_the_matrix_of_a_lesson_says_where_it_ends(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 40)) as pilot:
        assert "this is the graph itself: the beginning" in await keyed(pilot, "6", "comma")
        assert "these are the distances: the end" in await keyed(pilot, "end", "full_stop")


async def test_a_lesson_without_room_for_the_matrix_says_so(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(80, 24)) as pilot:
        assert "the matrix has no room beside the course; t shows it" in await keyed(pilot, "6", "t", "full_stop")


@pytest.mark.parametrize(("size", "first"), [((80, 24), ()), pytest.param((120, 40), ("P",), marks=pytest.mark.slow)])
async def test_where_the_form_is_hidden_the_arrows_are_the_tables(
    dashboard: FwtuiApp, live: FakeLive, size: tuple[int, int], first: tuple[str, ...]
) -> None:
    for n in (256, 512):
        live.start(live.settled(Experiment(kernel="tiled-cpu", n=n)))
        live.drain()
    async with dashboard.run_test(size=size) as pilot:
        assert "RUN 2" in await keyed(pilot)
        await press(pilot, *first)
        assert "RUN 1" in await keyed(pilot, "down", "enter")


async def test_the_palette_has_no_command_that_fwtui_does_not_draw(dashboard: FwtuiApp) -> None:
    async with opened(dashboard, size=(80, 24)):
        assert isinstance(dashboard.screen, Frame)
        words = [command.words for command in (*dashboard.screen.commands(), *dashboard.commands())]
        assert "Theme" in words and not {"Screenshot", "Keys", "Maximize"} & {*words}
        assert words and not any(said.endswith(": ") for said in words)
        assert any(said.startswith("Help: ") for said in words)


async def test_a_field_offers_no_second_run_beside_one_that_goes_on(dashboard: FwtuiApp, live: FakeLive) -> None:
    live.pace = 1
    async with dashboard.run_test(size=(120, 40)) as pilot:
        dashboard.screen.query_one("#field-n").focus()
        await proceed(pilot, "enter")
        assert dashboard.view is not None and dashboard.view.busy
        assert (await keyed(pilot)).splitlines()[-1].startswith("esc Leave field")


async def test_ctrl_c_says_what_ends_the_program_and_covers_nothing(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(80, 24)) as pilot:
        shown = await keyed(pilot, "ctrl+c")
        assert "ctrl+q ends the program" in shown and "Do you want to quit" not in shown


async def test_the_footer_says_what_keys_do_now_also_while_a_field_takes_the_letters(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 40)) as pilot:
        dashboard.screen.query_one("#field-n").focus()
        shown = await keyed(pilot)
        footer = "enter Run esc Leave field tab Next alt+1 … Place f1 Help ^q Quit ^p Palette"
        assert " ".join(shown.splitlines()[-1].split()) == footer
        assert "Run  ^r" in shown and "Cancel  esc c" in shown and "^r       run the experiment: " in shown
        shown = await keyed(pilot, "escape")
        line = shown.splitlines()[-1]
        assert line.startswith("r Run") and " q Quit" in line and "esc" not in line
        assert "Run  r" in shown and "Cancel  c" in shown
        await pilot.click(KeyLine, offset=(line.index("? Help"), 0))
        await press(pilot)
        assert isinstance(dashboard.screen, HelpScreen)
