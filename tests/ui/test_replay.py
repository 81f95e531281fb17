"""The replay screen: the same panels, moved by keys and by the mouse; and pictures without a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import scenes
from apps import playback_of
from pressing import keyed, press

from fwtui.common.errors import Refused
from fwtui.sessions.library import resolve
from fwtui.stream import codec
from fwtui.stream.model import Model
from fwtui.tui import render
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.app.session_opener import recording

Replay = Callable[..., FwtuiApp]
SIZE = (120, 40)


async def test_the_last_frame_stays_and_names_its_origin(replay_of: Replay) -> None:
    async with replay_of(scenes.gpu_session()).run_test(size=SIZE) as pilot:
        shown = await keyed(pilot)
    assert "RUN 3  Katz-Kider · n 4096" in shown and "61.2 ms" in shown
    assert "(end)" in shown and "‖ paused" in shown
    assert "synthetic, for tests · recorded on Example GPU · 2025-01-01" in shown
    assert "Example GPU · 132 SM · 4.81 TB/s peak" in shown
    assert "tile 16 · float32 · threads 256" in shown and "WHAT" not in shown
    assert "DRAM (GPM)" in shown and "measured" in shown
    assert "incomplete" not in shown


async def test_wherever_it_goes_the_model_is_what_the_file_says(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with app.run_test(size=SIZE) as pilot:
        shown = playback_of(app)
        lines = shown.player.lines
        keys = ["end", "left", "shift+left", "comma", "comma", "left_square_bracket", "home", "full_stop"]
        for key in [*keys, "right", "shift+right", "right_square_bracket", "comma", "end", "home"]:
            await press(pilot, key)
            fresh = Model()
            for line in lines[: shown.player.index]:
                fresh.apply(line.event)
            assert shown.model == fresh, key


async def test_runs_are_stepped_through(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with app.run_test(size=SIZE) as pilot:
        shown = await keyed(pilot)
        assert "RUN 1  " in shown and "making the graph" not in shown and "warming up" not in shown, (
            "it begins with what is timed"
        )
        assert "No run has begun yet" in await keyed(pilot, "home")
        for number in (1, 2, 3):
            assert f"RUN {number}  " in await keyed(pilot, "right_square_bracket")
        assert "RUN 2  " in await keyed(pilot, "left_square_bracket")


def test_what_is_between_the_runs_of_ones_own_sessions_is_short(tmp_path: Path) -> None:
    later = [*scenes.run(2, 500.0, scenes.experiment("katz-kider"), title="Katz-Kider")]
    told = [scenes.header(), scenes.GPU, *scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive"), *later]
    path = scenes.write(tmp_path / "mine.fwt.jsonl", told)
    assert recording(path).player.duration < 60 < 500 < recording(path).player.length
    assert recording(path, max_gap=100.0).player.duration > 100, "a longest gap that was asked for counts"
    shipped = resolve("h200-n4096-naive-blocked")
    assert recording(shipped).player.max_gap is None


async def test_playing_moves_with_time_and_pausing_stops(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session(), start=0.0)
    async with app.run_test(size=SIZE) as pilot:
        player = playback_of(app).player
        begun = player.position
        assert begun == pytest.approx(2.4565)  # where the first run is being timed
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
        await pilot.press("L")
        assert player.loop and "loop" in await keyed(pilot)


def test_an_unclosed_and_a_damaged_file_say_so(tmp_path: Path) -> None:
    path = scenes.write(tmp_path / "cut.fwt.jsonl", scenes.cpu_session(), closed=False)
    render(path, None, SIZE, tmp_path / "cut.txt")
    assert "! incomplete" in (tmp_path / "cut.txt").read_text()
    path = tmp_path / "damaged.fwt.jsonl"
    told = [codec.encode(event) for event in scenes.cpu_session()]
    told[5] = told[5].replace(b'"t":', b'"T":')
    path.write_bytes(b"".join(told))
    out = tmp_path / "damaged.txt"
    render(path, None, SIZE, out)
    assert "! damaged: 1 line" in out.read_text()


async def test_q_ends_a_replay_that_is_all_there_is(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "q")
    assert app.return_code == 0


@pytest.mark.parametrize("size", [(0, 10), (1000, 10), (10, 0)])
def test_a_picture_has_a_reasonable_size(tmp_path: Path, size: tuple[int, int]) -> None:
    with pytest.raises(Refused, match="outside 1x1"):
        render(tmp_path / "any", None, size, tmp_path / "out.svg")


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(Refused, match="not a fwtui session"):
        render(tmp_path / "x", None, SIZE, tmp_path / "out.svg")
