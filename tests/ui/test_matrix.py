"""The little matrix: what is drawn where, in a replay at any moment, small and without colours."""

from __future__ import annotations

from collections.abc import Callable

import scenes
from apps import view_of
from msgspec.structs import replace
from pressing import opened, press, proceed, until

from fwtui.analysis.plan_frames import Scene
from fwtui.stream import events
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.app.picture import screen_text
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.widgets.matrix import FILLED, READ, REST, WRITTEN, MatrixPicture, pixels
from fwtui_kernels.plan import Rect


def rows(grid: list[bytearray]) -> list[str]:
    return ["".join(".f#r"[part] for part in row) for row in grid]


def test_what_is_read_and_written_is_where_it_is_in_the_matrix() -> None:
    shown = Scene(8, (), sources=(Rect(2, 0, 4, 8),), targets=(Rect(0, 0, 2, 8), Rect(4, 6, 8, 8)))
    assert rows(pixels(shown, 4, 4)) == ["####", "rrrr", "...#", "...#"]
    assert rows(pixels(shown, 8, 2)) == ["rrrrrrrr", "......##"], "more rows than pixels: what is read is not hidden"
    one = Scene(65536, (), sources=(Rect(40000, 0, 40001, 65536), Rect(0, 65535, 65536, 65536)))
    assert rows(pixels(one, 8, 8)) == ["." * 7 + "r"] * 4 + ["r" * 8] + ["." * 7 + "r"] * 3, "a single vertex of many is seen"
    assert rows(pixels(Scene(2, (), targets=(Rect(0, 0, 1, 1),)), 4, 4)) == ["##..", "##..", "....", "...."]
    for share, lines in ((0.0, 0), (0.5, 4), (1.0, 8)):
        assert [row[0] for row in pixels(Scene(9, (), filled=share), 3, 8)] == [FILLED] * lines + [REST] * (8 - lines)
    assert (REST, FILLED, WRITTEN, READ) == (0, 1, 2, 3)


def slow_run() -> list[events.Event]:
    """A run whose warm-up takes eight seconds, one for each of its rounds."""
    told = scenes.run(1, 1.0, scenes.experiment("katz-kider", 256), title="Katz-Kider", until="clean")
    begin = next(i for i, e in enumerate(told) if isinstance(e, events.Stage) and e.name == "warm-up")
    start = told[begin].t
    steps = [
        events.Progress(t=start + second, run=1, stage="warm-up", done=second / 8, step=3 * second - 1) for second in range(1, 8)
    ]
    return [scenes.header(), scenes.GPU, *told[: begin + 1], *steps]


async def test_a_replay_shows_the_round_of_each_moment(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(slow_run(), start=0.0)
    async with opened(app) as pilot:
        picture = app.screen.query_one(MatrixPicture)
        playback = app.view.playback if app.view is not None else None
        assert playback is not None
        playback.seek(0.0)
        app.tick(0.0)
        assert not picture.display
        seen = []
        for second in (3, 6, 1):
            playback.player.seek(2.0021 + second)
            playback.follow()
            await proceed(pilot)
            assert picture.display and picture.scene is not None
            seen.append((picture.scene.words[0], picture.scene.targets))
        assert [words for words, _ in seen] == [f"round {r} of 8 · pivot tile" for r in (4, 7, 2)]
        assert seen[0][1] == (Rect(96, 96, 128, 128),)


async def test_it_goes_first_where_there_is_little_room(replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        for size, seen in (((120, 40), True), ((80, 24), False), ((200, 60), True), ((60, 16), False), ((120, 40), True)):
            await pilot.resize_terminal(*size)
            await press(pilot)
            await press(pilot, "o")
            assert view_of(app).motion is seen, "without a picture there is no key for it"
            shown = app.screen.query_one(RunPanel)
            assert bool(app.screen.query_one(MatrixPicture).region.area) is seen, size
            await press(pilot, *["o"] * seen)
            assert not app.screen.query_one(MatrixPicture).region.area, "of a run that has ended it would be of one colour"
            for name in (".outside", ".meters"):
                assert sum(bool(part.display and part.region.width) for part in shown.query(name)) == 1, (size, name)
        await press(pilot)
        picture = app.screen.query_one(MatrixPicture)
        picture.slow_steps_per_second = 200
        end, said = picture.scene, set[str]()
        assert end is not None and end.words[0].startswith("finished: round 256 of 256")

        def moved() -> bool:
            assert picture.scene is not None
            said.add(picture.scene.words[0])
            return len(said) > 5

        await pilot.press("o")
        await until(pilot, moved)
        assert all(words.startswith(("slow motion: round", "finished: ")) for words in said)
        await press(pilot, "o")
        assert picture.scene == end, "and stands still again"
        run = view_of(app).run
        assert run is not None
        picture.steps_at_once, picture.pause_seconds = 20, 0.001
        app.still = False  # from now on a user waits for keys
        picture.show(replace(run, experiment=scenes.experiment("naive"), n=101), 99.0)
        assert not picture.display
        await until(pilot, lambda: picture.display)
        assert picture.scene is not None and picture.scene.words[1] == "finished: round 101 of 101"


async def test_it_is_told_apart_without_colours(no_colours: None, replay_of: Callable[..., FwtuiApp]) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app, "o", size=(120, 44)) as pilot:
        await until(pilot, lambda: "█ read" in screen_text(app))
        shown = screen_text(app)
        assert "▒ written" in shown and "▀" not in shown
        assert any("█▒▒▒" in row for row in shown.splitlines())
