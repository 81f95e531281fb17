"""Lectures: they stop at markers, point at panels, and reveal the run's answer on request."""

from pathlib import Path

import msgspec
import pytest
import scenes
from apps import Replay, playback_of, view_of
from builders import write_session
from pressing import NARROW, WIDE, keyed, opened, proceed, until
from recorded_sessions import LECTURE, medians, milliseconds
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.color import Color
from textual.pilot import Pilot

from fwtui.experiment.experiment import Experiment
from fwtui.learn.questions import PANELS as ALL_PANELS
from fwtui.learn.questions import SOURCE
from fwtui.sessions import reader
from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.export.screens import picture, screen_text
from fwtui.tui.frame.appearance import THEMES, Appearance
from fwtui.tui.frame.contrast import LEGIBLE_DIM, MIN_CONTRAST, contrast
from fwtui.tui.frame.cue_card import CueCard
from fwtui.tui.frame.loaded_recording import Recording
from fwtui.tui.frame.playback import Playback
from fwtui.tui.textual_internals import strips
from fwtui.tui.widgets.run_table import TextTable

PANELS = [panel for panel in ALL_PANELS if panel != SOURCE]  # beside the card


@pytest.fixture
def lecture() -> FwtuiApp:
    return FwtuiApp(replay=Recording("lecture-tiles", reader.load(LECTURE)), still=True)


async def at(pilot: Pilot[None], marker: int, *keys: str) -> str:
    """Go to that marker, press the keys, and return the text of the screen."""
    app = pilot.app
    assert isinstance(app, FwtuiApp)
    playback_of(app).show_card(marker)
    await proceed(pilot)
    await pilot.press(*keys)
    await pilot.pause()
    await pilot.pause()
    return " ".join(screen_text(app).split())


async def press(pilot: Pilot[None], *keys: str) -> str:
    text = await keyed(pilot, *keys)
    await pilot.pause()
    return " ".join(text.split())


def pointed(app: FwtuiApp) -> set[str]:
    return {
        next((name for name in widget.classes if name in PANELS), type(widget).__name__)
        for widget in app.screen.query(".-pointed")
    }


async def test_questions_are_shown_and_answered_by_the_run(lecture: FwtuiApp) -> None:
    async with opened(lecture) as pilot:
        assert playback_of(lecture).player.stops, "a lecture stops at its markers"
        card = lecture.screen.query_one(CueCard)
        assert not card.region.area
        text = await at(pilot, 1)
        assert card.region.area and "1 of 9" in text and "P presents the cue cards" in text
        text = await at(pilot, 3)
        assert "Effective bandwidth · What share of the peak bandwidth" in text and "3 of 9" in text
        assert card.region.area
        assert "90.3 %: 4.35 TB/s of 4.81 TB/s" not in text
        assert "90.3 %: 4.35 TB/s of 4.81 TB/s" in await at(pilot, 3, "exclamation_mark")
        assert pointed(lecture) == {"meters"}
        assert "90.3 %: 4.35 TB/s of 4.81 TB/s" not in await at(pilot, 3, "exclamation_mark"), "again: hidden"
        naive, blocked = (medians(LECTURE)[run] for run in (1, 2))
        answer = f"Katz-Kider: {naive / blocked:.2f}x speedup over Naive: {milliseconds(blocked)} against {milliseconds(naive)}"
        assert answer in await at(pilot, 6, "exclamation_mark")
        text = await at(pilot, 7)
        assert "Which phase takes longest?" in text and pointed(lecture) == {"phases"}
        text = await at(pilot, 7, "exclamation_mark")
        assert "✓ remainder" in text and "remainder: 92.7 % of the time" in text
        assert "All 64 warps fit; registers are just enough" in await at(pilot, 8, "exclamation_mark")
        text = await at(pilot, 9, "exclamation_mark")
        assert "What would you try next?" in text and "Registers: they are faster" in text
        assert pointed(lecture) == {"HistoryTable"}
        await pilot.press("full_stop", "comma", "comma", "comma", "home")
        await pilot.pause()
        assert not card.region.area and not pointed(lecture)
        text = await at(pilot, 1)
        assert "A thread for each pair" in text and "! Answer" not in text
        assert "! Answer" in await at(pilot, 3)
        assert "What share of the peak" in await at(pilot, 3, "4"), "on the place Explain too"


async def test_only_the_keys_of_cards_act_on_a_card(lecture: FwtuiApp) -> None:
    async with opened(lecture) as pilot:
        shown = await at(pilot, 5, "P", "i", "4")
        assert "the marker here has no question about a run" in shown and view_of(lecture).place == "run"
        for key in ("full_stop", "b", "end"):
            assert "cue cards are presented; esc leaves them" in await at(pilot, 5, key), key
        words = await press(pilot, "question_mark")
        assert "the previous card" in words and "5 s back" not in words and "play and pause" not in words


async def test_a_picture_for_a_projector_shows_the_requested_cue_card() -> None:
    for place, number, answered, words in (
        ("run", 4, False, "Now in tiles"),
        ("run", 7, True, "= remainder: 92.7 % of the time"),
        ("explain", None, False, "Your turn"),
    ):
        text, complete = await picture(LECTURE, None, WIDE, True, place, Appearance(presenter=True), number, answered)
        assert complete and words in text.split("━" * 60)[0] and f"{number or 9} of 9 " in text


async def test_the_table_of_runs_and_the_chart_behind_a_guess_are_visible(lecture: FwtuiApp) -> None:
    async with opened(lecture, size=(80, 24)) as pilot:
        table = await at(pilot, 9, "P")
        assert "katz-kider 4096 31.5 ms" in table and "naive 4096 253 ms" in table and "┗" in table
        guessing = await at(pilot, 3, "i")
        (meters,), box = lecture.screen_stack[-2].query(".-pointed"), lecture.screen.query_one("#box")
        assert lecture.screen.styles.background.is_transparent and not meters.region.overlaps(box.region)
        assert "Your guess: What share of the peak bandwidth" in guessing
        assert "Enter: show the answer · Esc: cancel" in guessing


async def test_the_indicated_panel_is_scrolled_into_view_and_the_log_shows_the_marker(lecture: FwtuiApp) -> None:
    async with opened(lecture, size=NARROW) as pilot:
        await at(pilot, 8)
        meters = next(m for m in lecture.screen.query(".meters") if m.display and m.region.area)
        panel = lecture.screen.query_one("RunPanel")
        most = min(meters.region.height, panel.region.height) - 1

        def seen() -> bool:
            return panel.region.intersection(meters.region).height >= most

        await until(pilot, seen)
        above = next(w for w in meters.ancestors[0].children if w.region.area)
        above.styles.min_height = 30
        await pilot.pause()
        await until(pilot, seen)
        await pilot.press("pageup")
        above.styles.min_height = 60
        await pilot.pause(0.05)
        assert not seen(), "after a key, the place is the user's to scroll"
        await at(pilot, 7)
        shown = screen_text(lecture)
        log, card = (next(row for row in shown.splitlines() if said in row) for said in ("marker: Which", " · Which"))
        assert log.split("marker: ")[1].strip() == card.split(" · ", 1)[1].split("  ")[0].strip()
        assert "@phases" not in shown and "b Baseline" in shown.splitlines()[-1] and "q Quit" in shown.splitlines()[-1]


async def test_a_guess_is_shown_with_the_answer(lecture: FwtuiApp) -> None:
    async with opened(lecture) as pilot:
        assert "i guess" in await at(pilot, 3, "P")
        await pilot.press("i", *"40", "enter")
        text = await press(pilot)
        assert "the guess" in text and "40.0 %" in text and "the run" in text and "= 2.26 times too low. 90.3 %" in text
        assert "1 pivot 2 panels 3 remainder" in await press(pilot, *["space"] * 5), "choices for a show of hands"
        assert "type a number from 1 to 3, not '7'" in await press(pilot, "i", "7", "enter")
        text = await press(pilot, "backspace", "3", "enter")
        assert "✓ remainder" in text and "your guess" in text and "= Right. remainder: 92.7 % of the time" in text
        assert "the marker here has no question about a run" in await press(pilot, *["space"] * 3, "i"), "an answer in words"
        assert "40.0 %" in await at(pilot, 3, "exclamation_mark"), "it is kept"


async def test_a_card_shows_the_source_and_what_changed_in_it() -> None:
    talk = shipped_folder() / "lecture-own-kernel.fwt.jsonl.gz"
    app = FwtuiApp(replay=Recording("it", reader.load(talk)), still=True)
    async with opened(app) as pilot:
        for size, keys in ((WIDE, ()), (NARROW, ()), (WIDE, ("P",))):
            await pilot.resize_terminal(*size)
            text = await at(pilot, 8, *keys)
            assert "mine.py + new and - gone since run 3" in text and "30 + product(d, other, p, p)" in text


def test_a_lecture_waits_at_an_initial_marker(tmp_path: Path) -> None:
    for text, waits in (("@runs Look.", True), ("just words", False)):
        told = [scenes.header(), events.Marker(t=1.0, text=text), events.Notice(t=2.0, text="later")]
        path = write_session(tmp_path / f"{waits}.fwt.jsonl", told, True)
        playback = Playback(Recording("it", reader.load(path)), lambda seconds, call: None)
        assert playback.player.playing is not waits


async def test_a_long_hostile_marker_leaves_room_and_is_no_markup(replay_of: Replay) -> None:
    words = "@phases ?limiter [bold]red[/] " + "x" * 1900
    told = scenes.run(1, 0.3, Experiment(kernel="naive", n=64))
    broken = [msgspec.structs.replace(e, threads=0) if isinstance(e, events.Occupancy) else e for e in told]
    app = replay_of([scenes.header(), scenes.GPU, *broken, events.Marker(t=9.0, text=words)])
    async with opened(app, size=NARROW) as pilot:
        text = await at(pilot, 1, "exclamation_mark")
        assert "[bold]red[/]" in text and app.screen.query_one("RunPanel").region.height >= 3
        assert app.screen.query_one(CueCard).region.height <= 12


async def test_other_recordings_play_over_their_markers(replay_of: Replay) -> None:
    app = replay_of([scenes.header(), scenes.NO_GPU, events.Marker(t=0.1, text="just words")])
    async with opened(app, "P", size=NARROW):
        assert not playback_of(app).player.stops
        assert app.look.presenter and not view_of(app).presenting, "without cue cards the same key enlarges the figures"


def shades(app: FwtuiApp, shade: str) -> set[str]:
    """Return the names of visible widgets that are lit or dimmed."""
    found = [widget for widget in app.screen.query(f".-{shade}") if widget.region.area]
    return {next((name for name in widget.classes if name in PANELS), widget.id or type(widget).__name__) for widget in found}


async def test_cue_cards_are_presented_one_by_one_until_the_end(lecture: FwtuiApp) -> None:
    async with opened(lecture, size=NARROW) as pilot:
        player, table = playback_of(lecture).player, lecture.screen.query_one("HistoryTable")
        text = await press(pilot, "P")
        assert "1 of 9" in text and "A thread for each pair" in text and lecture.screen.query_one(CueCard).region.y == 0
        assert "power" not in text and "paused" not in text and lecture.focused is None
        assert "this is the first cue card" in await press(pilot, "left")
        assert not shades(lecture, "dimmed"), "nothing is pointed at"
        text = await press(pilot, "space")
        assert "RUN 1 Naive · n 4096" in text and "253 ms" in text and not table.display, "whose time, and no empty box"
        text = await press(pilot, "right")
        assert "3 of 9" in text and shades(lecture, "pointed") == {"meters"}
        assert "phases" in shades(lecture, "dimmed") and "card" not in shades(lecture, "dimmed")
        rows = (strips(lecture.screen)[y] for y in range(table.region.y, table.region.bottom))
        assert all(legible(segment) for row in rows for segment in row if segment.text.strip()), "dimmed, and legible"
        assert "i guess space answer" in text and "┗━┫┃ ┃ ━┫" not in text
        text = await press(pilot, "space")
        assert "3 of 9" in text and "┗━┫┃ ┃ ━┫" in text and "space next" in text, "the first space answers, in large digits"
        assert "try next" not in text, "it answers a later card"
        meters, panel = (lecture.screen.query_one(name).region for name in (".meters", "RunPanel"))
        assert meters.height and panel.contains_region(meters), "it has been scrolled to again"
        index = player.index
        for key in ("right_square_bracket", "full_stop", "greater_than_sign", "M", "home", "b"):
            assert "cue cards are presented; esc leaves them" in await press(pilot, key)
        assert player.index == index and not player.playing and player.stops and player.speed == 1.0
        assert "4 of 9" in await press(pilot, "space") and "2 of 9" in await press(pilot, "pageup", "pageup")
        text = await press(pilot, *["pagedown"] * 13)
        assert "End of the lecture" in text and not shades(lecture, "pointed")
        assert {"body", "history"} <= shades(lecture, "dimmed")
        assert "End of the lecture" in await press(pilot, "space", "right", "exclamation_mark")
        assert player.index == len(player.lines) - 1
        assert "9 of 9" in await press(pilot, "left") and shades(lecture, "pointed") == {"HistoryTable"}
        text = await press(pilot, "escape")
        assert "paused" in text and not player.playing and not shades(lecture, "dimmed") and lecture.focused is table
        assert "8 of 9" in await press(pilot, "left_parenthesis", "P"), "it begins where the recording stands"


def legible(segment: Segment) -> bool:
    assert segment.style is not None and segment.style.color is not None and segment.style.bgcolor is not None
    return contrast(Color.from_rich_color(segment.style.color), Color.from_rich_color(segment.style.bgcolor)) >= MIN_CONTRAST


@pytest.mark.parametrize("name", [name for name in THEMES if not name.startswith("ansi")])  # a terminal dims its own colours
def test_dim_text_is_legible_in_each_theme(dashboard: FwtuiApp, name: str) -> None:
    colours = dashboard.available_themes[name].to_color_system().generate()
    for ground in (Color.parse(colours[key]) for key in ("background", "surface", "panel")):
        for key in ("foreground", "primary", "secondary", "text-primary", "text-success", "text-warning", "text-error"):
            style = Style(color=Color.parse(colours[key]).rich_color, bgcolor=ground.rich_color, dim=True)
            (dimmed,) = LEGIBLE_DIM.apply([Segment("x", style)], ground)
            assert legible(dimmed) and dimmed.style != style, (key, ground)


async def test_the_marked_row_of_a_table_is_legible_in_each_theme(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test() as pilot:
        table = TextTable()
        await dashboard.screen.mount(table)
        table.add_column("kernel")
        table.add_row(Text("the other row"))
        table.add_row(Text("the marked row"))
        table.move_cursor(row=1)
        for name in THEMES:
            dashboard.theme = name
            for focused in (table, None):
                dashboard.screen.set_focus(focused)
                await pilot.pause()
                cells = [cell for strip in strips(dashboard.screen) for cell in strip if cell.text.strip().endswith(" row")]
                other, marked = (cell for cell in cells if cell.text.strip() in ("the other row", "the marked row"))
                assert other.style != marked.style and marked.style is not None, (name, focused)
                if not name.startswith("ansi"):
                    assert legible(marked), (name, focused)
                else:  # the colours of a terminal, such as its default for text and ground, which are swapped
                    assert marked.style.reverse, (name, focused)


@pytest.mark.slow
async def test_every_panel_can_be_pointed_at(replay_of: Replay) -> None:
    session = [event for event in scenes.gpu_session() if not isinstance(event, events.Marker)]
    app = replay_of([*session, *(events.Marker(t=60.0, text=f"@{panel} Look.") for panel in PANELS)], start=0.0)
    async with opened(app, size=NARROW) as pilot:
        await press(pilot, "P")
        for panel in PANELS:
            (lit,) = [widget for widget in app.screen.query(".-pointed") if widget.region.area]
            assert lit.content_size.height >= 1 and lit.styles.border_top[0] == "heavy", panel
            assert app.screen.region.intersection(lit.region).height >= 3, panel
            await press(pilot, "space")


async def test_a_lecture_that_is_opened_while_presenting_begins_with_its_cards() -> None:
    app = FwtuiApp(replay=Recording("lecture-tiles", reader.load(LECTURE)), look=Appearance(presenter=True))
    async with opened(app, size=NARROW) as pilot:
        await until(pilot, lambda: app.view is not None and app.view.presenting)
        await press(pilot, "escape")
        assert not view_of(app).presenting and not app.look.presenter, "one mode, left by one key"


@pytest.mark.slow
def test_picture(lecture: FwtuiApp, snap_compare) -> None:
    async def before(pilot: Pilot[None]) -> None:
        assert "7 of 9" in await press(pilot, "P", *["space"] * 9)

    assert snap_compare(lecture, terminal_size=WIDE, run_before=before)
