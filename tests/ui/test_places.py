"""Places: digits, palette and mouse go to each, live and in a replay, and all read one model."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import scenes
from apps import Replay, replay_at_end, screen_of, view_of
from builders import model_of
from pressing import WIDE, keyed, opened, press, settled, until
from test_keys import unsaid
from textual.binding import Binding
from textual.events import Key
from textual.widgets import Input

from fwtui.sessions.library import resolve
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.terminal_input import KeyParser
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.bindings import TO_PLACES
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.places import PLACES, Place, place_names
from fwtui.tui.frame.topbar import Top, TopBar, top_of
from fwtui.tui.run.session_screen import ReplayScreen

RECORDED = [place for place in PLACES if place.recorded]
LIVE = [place for place in PLACES if place.live]
SHIPPED = sorted((Path(__file__).parents[2] / "sessions").glob("*.fwt.jsonl*"))


def place_of(app: FwtuiApp) -> str:
    return screen_of(app, Frame).PLACE


def test_places_have_keys_names_and_words_of_their_own() -> None:
    for values in ([p.key for p in PLACES], [p.name for p in PLACES], [p.title for p in PLACES]):
        assert len(set(values)) == len(values)
    assert [p.key for p in PLACES] == sorted(p.key for p in PLACES) and all(p.tooltip for p in PLACES)
    assert all(place.live or place.recorded for place in PLACES)
    assert place_names() == tuple(place.name for place in RECORDED if place.pictured)


async def test_keys_and_mouse_reach_every_place_of_a_replay(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with app.run_test(size=(120, 40)) as pilot:
        for place in [*RECORDED, RECORDED[0]]:
            shown = await keyed(pilot, place.key)
            assert place_of(app) == place.name and unsaid(screen_of(app, Frame)) == []
            first = shown.split("\n")[0]
            assert all(f"{p.key} {p.replay_title or p.title}" in first for p in RECORDED)
            assert " / 00:" in shown and "q Quit" in shown
        for place in (RECORDED[-1], RECORDED[0]):
            first = screen_text(app).split("\n")[0]
            await pilot.click(offset=(first.index(f"{place.key} {place.replay_title or place.title}") + 1, 0))
            await press(pilot)
            assert place_of(app) == place.name
        await pilot.click(offset=(1, 0))
        assert place_of(app) == "run"
        words = [command.title for command in app.commands()]
        assert all(f"Go to {p.replay_title or p.title}: {p.tooltip}" in words for p in RECORDED)


async def test_one_key_shows_the_sources_of_numbers() -> None:
    app = replay_at_end(resolve("h200-n4096-naive-blocked"))

    async def sourced(*keys: str) -> set[str]:
        """Press keys and return the places that name the source of a number."""
        await press(pilot, *keys)
        found: set[str] = set()
        for place in ("run", "compare"):
            app.action_place(place)
            found |= {place} if re.search(r"\((probe|model|GPM|counters|theory)\)", await settled(pilot)) else set()
        return found

    async with opened(app, size=(160, 50)) as pilot:
        assert await sourced("asterisk") == {"run", "compare"}
        assert await sourced("asterisk") == set()


async def test_a_digit_typed_into_a_field_is_a_digit_and_alt_goes_away(dashboard: FwtuiApp) -> None:
    async with dashboard.run_test(size=(120, 40)) as pilot:
        field = dashboard.screen.query_one("#field-n", Input)
        field.focus()
        field.value = ""
        await press(pilot, "5")
        assert field.value == "5" and place_of(dashboard) == "run"
        await press(pilot, "alt+5")
        assert place_of(dashboard) == "telemetry" and field.value == "5"
        await press(pilot, "escape")
        assert place_of(dashboard) == "run"
        await press(pilot, "alt+5")
        for _ in range(2):  # the second one takes the place of the first
            dashboard.open(SHIPPED[0])
            await until(pilot, lambda: isinstance(dashboard.screen, ReplayScreen))
            assert "Replay" in await keyed(pilot)
            await press(pilot, "5")
        assert place_of(dashboard) == "telemetry" and "q Back" in await keyed(pilot)
        await press(pilot, "q")
        assert view_of(dashboard).source is not None and place_of(dashboard) == "telemetry" and len(dashboard.views.views) == 1


@pytest.mark.parametrize("binding", TO_PLACES, ids=lambda binding: binding.id)
@pytest.mark.parametrize("bytes_of", [b"%s", b"\x1b%s", b"\x1b[%d;3u"], ids=["digit", "alt", "alt, new protocol"])
def test_every_encoding_of_alt_and_a_digit_is_bound(binding: Binding, bytes_of: bytes) -> None:
    digit = (binding.key_display or "").encode()
    (key,) = KeyParser().messages(bytes_of % (ord(digit) if b"%d" in bytes_of else digit))
    assert isinstance(key, Key) and key.key in binding.key.split(",")
    assert key.is_printable is (bytes_of == b"%s"), "a field takes what is printable"


# the others wait for -m slow
ONE_PLACE = ["explain", *(pytest.param(p, marks=pytest.mark.slow) for p in place_names()[1:] if p != "explain")]


@pytest.mark.parametrize("place", ONE_PLACE)
async def test_empty_sessions_and_machines_without_a_gpu_have_every_place(replay_of: Replay, place: str) -> None:
    for told in ([scenes.header(), events.Notice(t=0.5, text="nothing ran")], scenes.cpu_session()):
        app = replay_of(told)
        async with app.run_test(size=(80, 24)) as pilot:
            app.action_place(place)
            shown = await keyed(pilot)
            assert place_of(app) == place and "nan" not in shown


@pytest.mark.parametrize("place", [*ONE_PLACE, pytest.param("run", marks=pytest.mark.slow)])
async def test_no_place_depends_on_colour_or_theme(replay_of: Replay, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=WIDE) as pilot:
        app.action_place(place)
        plain = await settled(pilot)
        for theme in ("textual-light", "ansi-dark"):
            app.theme = theme
            assert await settled(pilot) == plain
    if place == "run":  # its matrix has signs in place of colours (test_ranks_screen)
        return
    monkeypatch.setenv("NO_COLOR", "1")
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=WIDE) as pilot:
        app.action_place(place)
        assert await settled(pilot) == plain


def test_the_bar_names_the_device_at_every_size_of_a_recording_or_at_none() -> None:
    model = model_of([scenes.header(), scenes.GPU])
    for width in range(80, 160):
        named = set()
        for size in (9_000, 99_999, 999_999, 9_999_999):
            source = SimpleNamespace(now=5.0, recorder=SimpleNamespace(began=0.0, bytes=size))
            top = top_of(SimpleNamespace(source=source, paused=False, model=model), tuple(LIVE), "run")  # type: ignore[arg-type]
            named.add(TopBar(top).draw(top, width)[0].plain.partition("●")[0])
        assert len(named) == 1, width


@pytest.mark.parametrize("paused", ["", "01:02 · 1,234 events"])
@pytest.mark.parametrize("recording", ["", "00:42 · 74.1 KiB"])
def test_the_bar_of_places_fits_and_keeps_recording_and_pause_visible(recording: str, paused: str) -> None:
    names = ("Run", "Sweep", "Compare", "Explain", "Telemetry", "Learn", "Sessions")
    tabs = tuple(Place(str(key), "", name.lower(), "") for key, name in enumerate(names, 1))
    device = "Example GPU · 132 SMs · 4.81 TB/s peak"
    bar = TopBar(Top(tabs, "explain", device, recording, paused))
    words = {part for word in (device, recording, paused) for part in word.split(" · ")}
    words.add("")
    for width in range(8, 160, 3):
        (row,) = [content.plain for content in bar.draw(bar.subject, width)]
        assert len(row) <= width or width < 50
        if width >= 60:
            rest = row[row.index("7") + 1 :].removeprefix(" Sessions").replace("● REC", "").replace("‖ PAUSED", "")
            assert "…" not in row and {part.strip() for part in re.split("   | · ", rest)} <= words, "whole words only"
            assert ("‖ PAUSED" in row) == bool(paused)
        if width >= 64:
            assert "4 Explain" in row and row.startswith("fwtui") and ("● REC" in row) == bool(recording)
            assert all(f" {key} " in row for key in range(1, 8))
        if width >= 110:
            assert all(f"{key} {name}" in row for key, name in enumerate(names, 1))
