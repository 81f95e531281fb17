"""Robust screens: quick keys, long sessions, markup in data, and recovery from errors."""

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import scenes
from builders import apply_all, model_of, write_session
from fake_live import FakeLive
from pressing import WIDE, go, opened, press, proceed, settled, until
from textual.events import Key, MouseDown, Paste, Resize
from textual.geometry import Offset, Size
from textual.screen import Screen
from textual.widgets import DataTable, Select, Static
from textual.widgets._select import SelectOverlay

from fwtui.__main__ import main
from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment
from fwtui.sessions import reader
from fwtui.stream import events
from fwtui.stream.requests import Hardware
from fwtui.tui.app import crash_log, terminal_input
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.crash_log import CrashLog, FailedPlace
from fwtui.tui.app.terminal_input import MAX_PASTE, PASTE_SECONDS, KeyParser
from fwtui.tui.compare.screen import CompareScreen
from fwtui.tui.explain.screen import ExplainScreen
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.loaded_recording import Recording, named
from fwtui.tui.frame.playback import Playback
from fwtui.tui.frame.topbar import TopBar
from fwtui.tui.run.live_screen import RunScreen


@pytest.mark.parametrize(
    "junk", [b"\xff", b"\xc3\x28", b"\x1b[99999999999999999999999u", b"\x1b[:2048u", b"\x1b[1;99999999999999999999R", b"\x1b[9A"]
)
def test_keys_after_junk_are_still_keys(junk: bytes) -> None:
    keys = KeyParser()
    told = [message for chunk in (b"a", junk, b"\x1b[Bq", b"\xc3", b"\xa9") for message in keys.messages(chunk)]
    names = [message.key for message in told if isinstance(message, Key)]
    assert names[0] == "a" and names[-3:-1] == ["down", "q"]
    assert isinstance(told[-1], Key) and told[-1].character == "é"


@pytest.mark.parametrize("begin", [b"", b"pasted", b"x" * (MAX_PASTE + 9)], ids=["nothing", "words", "too much"])
def test_a_paste_without_an_end_is_over_after_silence(monkeypatch: pytest.MonkeyPatch, begin: bytes) -> None:
    now = [0.0]
    monkeypatch.setattr(terminal_input.time, "monotonic", lambda: now[0])
    keys = KeyParser()
    told = [*keys.messages(b"\x1b[200~" + begin)]
    assert keys.waiting and [*keys.messages(b"y")] == told == []
    now[0] += PASTE_SECONDS + 0.1
    told = [*keys.messages(b""), *keys.messages(b"q")]
    assert isinstance(told[-1], Key) and told[-1].key == "q"
    assert [message.text for message in told if isinstance(message, Paste)] == [(begin.decode() + "y")[: MAX_PASTE + 1]]


@pytest.mark.parametrize("size", [MAX_PASTE // 2, MAX_PASTE * 3])
def test_a_paste_is_cut_off_and_the_keys_after_it_are_keys(size: int) -> None:
    keys = KeyParser()
    told = [*keys.messages(b"\x1b[200~" + b"q" * size), *keys.messages(b"\x1b[201~j")]
    assert [type(message) for message in told] == [Paste, Key]
    assert isinstance(told[0], Paste) and len(told[0].text) == min(size, MAX_PASTE + 1)


@pytest.mark.parametrize("door", ["environment", "terminal"])
def test_the_first_size_is_bounded(monkeypatch: pytest.MonkeyPatch, door: str) -> None:
    if door == "environment":
        monkeypatch.setenv("COLUMNS", "99999999")
    else:
        monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((65535, 65535)))
    width, height = FwtuiApp(still=True).size
    assert width == 1000 and height <= 300


async def test_a_list_takes_page_keys_before_it_is_there_and_a_dialog_goes_with_the_terminal(dashboard: FwtuiApp) -> None:
    async with opened(dashboard) as pilot:
        chooser = dashboard.screen.query(Select).first()
        overlay = chooser.query_one(SelectOverlay)
        overlay.highlighted = 0
        with pytest.raises(KeyError):
            overlay.action_page_down()
        for action in ("page_down", "page_up"):
            assert await dashboard.run_action(action, overlay)
        chooser.focus()
        await press(pilot, "enter")
        await pilot.press("home", "pagedown")
        assert overlay.has_focus and overlay.highlighted, "once it is there it pages"
        await press(pilot, "escape", "question_mark")
        for columns, rows in ((60, 16), WIDE):
            await pilot.resize_terminal(columns, rows)
            await settled(pilot)
            box = dashboard.screen.query_one("#box").region
            hint = dashboard.screen.query_one("#hint").region
            assert rows - 4 <= box.height <= rows, "as high as there is room"
            assert hint.height and hint.bottom < box.bottom <= rows, "what closes it can be read"


def test_a_long_session_is_applied_in_slices(tmp_path: Path) -> None:
    notices = [events.Notice(t=1.0 + i / 1000, text=f"notice {i}") for i in range(1000)]
    path = write_session(tmp_path / "long.fwt.jsonl", [scenes.header(), *notices])
    loaded = reader.load(path)
    later: list[Callable[[], None]] = []
    shown = Playback(Recording(named(path), loaded), lambda seconds, go_on: later.append(go_on), slice_seconds=1e-9)
    shown.player.pause()
    shown.seek(1.0)
    assert shown.player.index == len(loaded.lines)
    assert shown.position.seconds == shown.model.t < shown.player.duration
    applied = [shown.model.index]
    while shown.model.index < shown.player.index:
        later.pop(0)()
        applied.append(shown.model.index)
    assert shown.position.seconds == shown.player.duration
    assert len(applied) > 5 and applied == sorted(set(applied))
    shown.seek(0.4)
    while shown.model.index != shown.player.index:
        later.pop(0)()
    assert shown.model == model_of(line.event for line in loaded.lines[: shown.player.index])


def test_a_picture_that_cannot_be_written_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_session(tmp_path / "synthetic.fwt.jsonl", scenes.cpu_session())
    out = tmp_path / "nowhere" / "x.svg"
    assert main(["render", str(path), "-o", str(out)]) == 2
    assert capsys.readouterr().err == "fwtui: x.svg cannot be written: no such file or directory; choose another place\n"
    assert [found.name for found in tmp_path.iterdir()] == ["synthetic.fwt.jsonl"]


async def test_sizes_in_rapid_order_settle_and_are_bounded(dashboard: FwtuiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(dashboard) as pilot:
        laid_out: list[Size] = []
        before = Screen._screen_resized
        monkeypatch.setattr(Screen, "_screen_resized", lambda self, size: (laid_out.append(size), before(self, size)))
        for keys in ((), ("question_mark",), ("escape", "ctrl+p")):
            await press(pilot, *keys)
            laid_out.clear()
            for size in (Size(100, 30), Size(*WIDE)):
                dashboard.screen.post_message(Resize(size, size))
                dashboard.screen.call_later(partial(len, ()))  # sizes that come one right after the other are one
            for _ in range(10):
                await pilot.pause()
            assert len(laid_out) < 10 and dashboard.screen.size == WIDE, "they make each other again"
        for (width, height), bounds in (((9_999_999, 30), (1000, 30)), ((120, 9_999_999), (120, 300)), ((0, -5), (1, 1))):
            dashboard.post_message(Resize(Size(width, height), Size(width, height)))
            await pilot.pause(0.1)
            assert dashboard.size == dashboard.screen.size == bounds


MARKUP = ["[@click=app.pwn]free[/]", "[/", "[/]", "[/red]", "[link='https://example.com']here[/link]"]
MARKUP += ["[bold red on blue]loud[/]", "$accent $nothing %s {0} \\[x]", "kernel[tile=32]"]


def hostile(event: Any, text: str) -> Any:
    """Return the event with that text in every string that is shown verbatim."""
    if isinstance(event, str):
        return text
    if isinstance(event, tuple):
        return tuple(hostile(part, text) for part in event)
    if isinstance(event, dict):
        return {f"{text} {key}": value for key, value in event.items()}
    if isinstance(event, msgspec.Struct):
        # those decide what is shown, so they keep their meaning
        kept = ("kind", "format", "backend", "outcome", "phase", "key", "op", "stage", "launch")
        return type(event)(
            **{f: getattr(event, f) if f in kept else hostile(getattr(event, f), text) for f in event.__struct_fields__}
        )
    return event


class Watched(FwtuiApp):
    """Application that counts actions from markup."""

    ran = 0

    def action_pwn(self) -> None:
        Watched.ran += 1


def marked_up(text: str) -> list[events.Event]:
    session = [hostile(event, text) for event in scenes.gpu_session() if not isinstance(event, events.Telemetry)]
    end = session[-1].t
    fault = events.Fault(t=end, source="worker", code="died", message=text, stderr=f"{text}\n{text}")
    return [
        *session,
        events.Notice(t=end, text=text, level=text),
        events.Marker(t=end, text=text, title=text, answer=text),
        fault,
    ]


@pytest.mark.parametrize("text", [MARKUP[0], *(pytest.param(text, marks=pytest.mark.slow) for text in MARKUP[1:])])
async def test_markup_from_data_is_plain_text_wherever_it_is_clicked(text: str) -> None:
    Watched.ran = 0
    live = FakeLive(scenes.GPU)
    app = Watched(live, Experiment(kernel="katz-kider", n=1024), still=True, found=Hardware())
    apply_all(live.model, marked_up(text))
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        shown = await go(pilot)
        assert shown.count(text[:12]) >= 4  # as it was written: banner, log line, title, table
        for y, line in enumerate(shown.split("\n")[:38]):
            for match in re.finditer("free|here|loud", line):
                await pilot.click(offset=(match.start() + 1, y))
        await press(pilot, "l")
        assert text[:12] in screen_text(app)
        await pilot.press("escape")
        app.screen.query_one(DataTable).focus()
        await press(pilot, "down", "enter", "b")
    assert Watched.ran == 0


@pytest.fixture
def survivor(every_frame: None, dashboard: FwtuiApp) -> FwtuiApp:
    """Return the dashboard with the crash log, which handles errors as for a user."""
    dashboard.crash_log = CrashLog()
    return dashboard


def fails(*given: object) -> None:
    secret = "a value that nobody is to see"
    raise IndexError(f"made to fail {len(secret)}")


def details() -> str:
    (file,) = crash_log.folder().iterdir()
    return file.read_text()


async def test_a_failed_widget_or_place_leaves_the_others_working(survivor: FwtuiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(survivor) as pilot:
        before, table = survivor.screen, survivor.screen.query(DataTable).first()
        table.focus()
        table.action_cursor_down = fails  # type: ignore[method-assign]
        await pilot.press("down")
        shown = await go(pilot)
        assert survivor.is_running and survivor.return_code is None
        assert isinstance(survivor.screen, RunScreen) and survivor.screen is not before
        assert "this screen failed and was drawn again" in shown and "IndexError" in shown
        assert "made to fail" in details() and "nobody is to see" not in details()
        await proceed(pilot, "3")
        assert isinstance(survivor.screen, CompareScreen), "its keys are handled"
        with monkeypatch.context() as patched:
            patched.setattr(ExplainScreen, "show", fails)
            patched.setattr(crash_log, "MAX_DRAWN", 1)
            shown = await go(pilot, "4")
            assert isinstance(survivor.screen, FailedPlace) and "This screen cannot be shown: IndexError" in shown
            await proceed(pilot, "1")
            assert isinstance(survivor.screen, RunScreen)
        await proceed(pilot, "4")
        assert isinstance(survivor.screen, ExplainScreen), "another attempt is made"


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


async def test_an_early_error(survivor: FwtuiApp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(RunScreen, "body", fails)
    await survivor.run_async(headless=True, size=WIDE)
    assert not capsys.readouterr().err and survivor.failure.startswith("fwtui: error in the dashboard: IndexError; details in ")
    assert survivor.return_code == 1


def test_the_details_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash_log, "MAX_FILES", 2)
    monkeypatch.setattr(crash_log, "MAX_LOGGED", 3)
    crash_log.folder().mkdir(parents=True)
    for old in ("20200101-000000-1", "20200102-000000-1"):
        (crash_log.folder() / f"{old}.txt").touch()
    kept = CrashLog()
    said = [kept.write(ValueError(f"error {number}")) for number in range(5)]
    assert sorted(file.name for file in crash_log.folder().iterdir()) == ["20200102-000000-1.txt", kept.path.name]
    assert kept.path.read_text().count("ValueError: error") == 3
    assert said[0] == f"ValueError; details in {kept.path}" and "5 errors so far" in said[-1]
    unwritable = CrashLog()
    unwritable.path = kept.path / "x.txt"
    assert [unwritable.write(error) for error in (ValueError(), Refused("a sentence"))] == ["ValueError", "a sentence"]


async def test_presses_and_updates_of_removed_widgets_do_nothing(dashboard: FwtuiApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(dashboard) as pilot:
        with monkeypatch.context() as patch:
            patch.setattr(dashboard.screen, "get_widget_and_offset_at", lambda x, y: (Static("removed"), Offset(0, 0)))
            await dashboard.on_event(MouseDown(None, 20, 10, 0, 0, 1, False, False, False))
        await go(pilot)
        assert dashboard.is_running and dashboard.return_code is None
        screen, mode = dashboard.screen, dashboard.current_mode
        assert isinstance(screen, RunScreen)
        await go(pilot, "3")
        await dashboard.remove_mode(mode)
        screen.update(True)
