"""Replays: seeking, growing recordings, slow opening, and pictures without a terminal."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import scenes
from apps import Replay, playback_of, screen_of, view_of
from builders import model_of, run_started, write_session
from pressing import keyed, opened, press, until
from textual.geometry import Offset
from textual.widgets import ProgressBar

from fwtui.sessions import reader
from fwtui.sessions.library import resolve
from fwtui.stream import codec
from fwtui.stream.model import Model
from fwtui.tui import render
from fwtui.tui.app import session_opener
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.session_opener import ReadingScreen, recording
from fwtui.tui.export.screens import screen_text
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.loaded_recording import MAX_BANDS, Band, Marks
from fwtui.tui.frame.playback import Playback, Timeline, aim

SIZE = (120, 40)


def folded(played: Playback) -> Model:
    return model_of(line.event for line in played.player.lines[: played.player.index])


async def test_playing_stops_at_markers(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with opened(app) as pilot:
        played = playback_of(app)
        await press(pilot, "home")
        await press(pilot, "right_parenthesis")
        assert [m.text for m in played.model.markers] == ["now with tiles in shared memory"]
        assert played.position.seconds == pytest.approx(played.model.markers[0].t)
        at = played.player.index
        await press(pilot, "end", "left_parenthesis")
        assert played.player.index == at
        assert "stops at ◆" in await keyed(pilot, "home", "M", "space")
        played.tick(0.0)
        played.tick(1000.0)
        assert not played.player.playing and len(played.model.markers) == 1
        assert played.position.seconds == pytest.approx(played.model.markers[0].t)
        await press(pilot, "space")
        played.tick(2000.0)
        played.tick(3000.0)
        assert played.player.at_end and played.model == folded(played)
        await press(pilot, "home")
        line = app.screen.query_one(Timeline)
        (marker,) = [band for band in played.position.bands if band.kind == "marker"]
        x = int(marker.start / played.player.duration * line.size.width)
        await pilot.click(line, offset=Offset(x, 0))
        await pilot.pause()
        assert played.position.seconds == pytest.approx(marker.start) and len(played.model.markers) == 1
        await pilot.mouse_down(line, offset=Offset(3, 0))
        await pilot.hover(line, offset=Offset(line.size.width - 1, 0))
        await pilot.pause()
        assert played.player.at_end
        await pilot.mouse_up(line, offset=Offset(line.size.width - 1, 0))


def test_aiming() -> None:
    bands = (Band(10.0, 20.0, "run"), Band(10.4, 10.4, "marker"), Band(50.0, 50.0, "fault"))
    assert aim(bands, 10, 100.0, 100) == pytest.approx(0.104)
    assert aim(bands[:1], 10, 100.0, 100) == pytest.approx(0.1)
    assert aim(bands, 50, 100.0, 100) == pytest.approx(0.5)
    assert aim(bands, 99, 100.0, 100) == 1.0 and aim(bands, -5, 100.0, 100) == 0.0 and aim((), 500, 100.0, 100) == 1.0
    assert aim(bands, 0, 0.0, 1) == 0.0


def test_a_timeline_of_very_many_marks_is_bounded_and_so_is_the_work_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded, decode = list[bytes](), codec.decode
    begun = run_started(title="T" * 1000)
    started = codec.as_line(begun).packed()
    assert isinstance(started.payload, codec.Undecoded)
    monkeypatch.setattr(codec, "decode", lambda raw: [decoded.append(raw), decode(raw)][1])
    marks = Marks([started] * (MAX_BANDS + 50))
    assert len(marks._places) == len(decoded) == MAX_BANDS


class Slow:
    """A reader that blocks until the test releases it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gone_on = threading.Event()
        real = reader.load

        def load(path: Path, watch: Callable[[float], None], for_screen: bool) -> reader.LoadedSession:
            watch(0.5)
            assert self.gone_on.wait(120)
            watch(0.9)
            return real(path, watch, for_screen)

        monkeypatch.setattr(session_opener, "reader", SimpleNamespace(load=load))
        monkeypatch.setattr("fwtui.tui.app.session_opener.PATIENCE", 0.01)


class TestOpening:
    async def test_a_large_session_shows_its_progress(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        slow = Slow(monkeypatch)
        path = write_session(tmp_path / "big.fwt.jsonl", scenes.cpu_session())
        app = FwtuiApp(replay=path, still=True)
        async with opened(app) as pilot:
            await until(pilot, lambda: "big.fwt.jsonl" in screen_text(app) and "40%" in screen_text(app))
            assert isinstance(app.screen, ReadingScreen)
            assert app.screen.query_one(ProgressBar).progress == pytest.approx(40)
            slow.gone_on.set()
            await until(pilot, lambda: isinstance(app.screen, Frame))
            assert playback_of(app).recording.session.complete

    async def test_giving_up_ends_the_reading_and_the_program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        slow = Slow(monkeypatch)
        path = write_session(tmp_path / "big.fwt.jsonl", scenes.cpu_session())
        app = FwtuiApp(replay=path, still=True)
        async with opened(app) as pilot:
            await until(pilot, lambda: isinstance(app.screen, ReadingScreen))
            await pilot.press("escape")
            slow.gone_on.set()
            await until(pilot, lambda: app.return_code is not None)
        assert app.return_code == 0 and app.refusal is None and app.view is None

    async def test_late_and_given_up_sessions(self, replay_of: Replay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write_session(tmp_path / "big.fwt.jsonl", scenes.gpu_session())
        app = replay_of(scenes.cpu_session())
        async with opened(app) as pilot:
            before = await keyed(pilot)
            waiting = ReadingScreen(app, path, lambda reading: None)
            app.push_screen(waiting)
            waiting.dismiss(None)
            assert await keyed(pilot) == before
            slow = Slow(monkeypatch)
            app.open(path)
            await until(pilot, lambda: isinstance(app.screen, ReadingScreen))
            await pilot.press("q")
            slow.gone_on.set()
            await until(pilot, lambda: "big.fwt.jsonl was not opened" in screen_text(app))
            assert len(app.views.views) == 1

    def test_an_abandoned_reading_stops(self, tmp_path: Path) -> None:
        path = write_session(tmp_path / "s.fwt.jsonl", [*scenes.cpu_session(), *scenes.telemetry(9, 600, 0.1)])
        done = threading.Event()

        class Given(ReadingScreen):
            def _watch(self, share: float) -> None:
                self.given_up = True
                super()._watch(share)

        app = FwtuiApp(replay=path, still=True)
        app.call_later = lambda then: then()  # type: ignore[method-assign, assignment]
        given = Given(app, path, lambda reading: done.set())
        assert done.wait(120) and isinstance(given.outcome, session_opener.GivenUp)


async def test_at_every_position_the_model_is_that_of_the_file(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with opened(app) as pilot:
        shown = await keyed(pilot)
        assert "RUN 1  " in shown and "making the graph" not in shown and "warming up" not in shown, (
            "it begins with what is timed"
        )
        assert "No run has begun yet" in await keyed(pilot, "home")
        for number in (1, 2, 3):
            assert f"RUN {number}  " in await keyed(pilot, "right_square_bracket")
        assert "RUN 2  " in await keyed(pilot, "left_square_bracket")
        player = playback_of(app).player
        player.seek(begun := 2.4565)
        await pilot.press("space", "greater_than_sign", "greater_than_sign")
        assert player.playing and player.speed == 4
        app.tick(100.0)
        app.tick(100.5)
        assert player.position == pytest.approx(begun + 2.0)
        assert "speed 4x" in await keyed(pilot) and "▶ playing" in screen_text(app)
        await pilot.press("space")
        app.tick(105.0)
        assert player.position == pytest.approx(begun + 2.0) and not player.playing
        for _ in range(10):
            await pilot.press("less_than_sign")
        assert player.speed == 0.25
        played = playback_of(app)
        keys = ["end", "left", "comma", "comma", "left_square_bracket", "home", "full_stop"]
        for key in [*keys, "right", "right_square_bracket", "comma", "end", "home"]:
            await press(pilot, key)
            assert played.model == folded(played), key
        await press(pilot, "p")
        assert not view_of(app).paused, "a recording has play and pause of its own"
        assert "pause" not in {binding.action for binding in screen_of(app, Frame).rows.offered()}
        await press(pilot, "end")
        shown = await keyed(pilot)
        await press(pilot, "q")
        assert app.return_code == 0
        assert "RUN 3  Katz-Kider · n 4096" in shown and "61.2 ms" in shown
        assert "(end)" in shown and "‖ paused" in shown
        assert "synthetic, for tests · recorded on Example GPU · 2025-01-01" in shown
        assert "Example GPU · 132 SMs · 4.81 TB/s peak" in shown
        assert "tile 16 · float32" in shown and "WHAT" not in shown
        assert "DRAM throughput" in shown and "measured" in shown
        assert "incomplete" not in shown


def test_gaps_between_runs_of_own_sessions_are_shortened(tmp_path: Path) -> None:
    later = [*scenes.run(2, 500.0, scenes.experiment("katz-kider"))]
    told = [scenes.header(), scenes.GPU, *scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive"), *later]
    path = write_session(tmp_path / "mine.fwt.jsonl", told)
    assert recording(path).player.duration < 60 < 500 < recording(path).player.length
    assert recording(path, max_gap=100.0).player.duration > 100, "a longest gap that was asked for counts"
    shipped = resolve("h200-n4096-naive-blocked")
    assert recording(shipped).player.max_gap is None


def test_incomplete_and_damaged_files_are_marked(tmp_path: Path) -> None:
    path = write_session(tmp_path / "cut.fwt.jsonl", scenes.cpu_session(), closed=False)
    render(path, None, SIZE, tmp_path / "cut.txt")
    assert "! incomplete" in (tmp_path / "cut.txt").read_text()
    path = tmp_path / "damaged.fwt.jsonl"
    told = [codec.encode(event) for event in scenes.cpu_session()]
    told[5] = told[5].replace(b'"t":', b'"T":')
    path.write_bytes(b"".join(told))
    out = tmp_path / "damaged.txt"
    render(path, None, SIZE, out)
    assert "! 1 damaged line skipped" in out.read_text()
