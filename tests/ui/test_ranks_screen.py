"""Runs on several ranks: a bar for each, and the matrix picture with the owners of its rows."""

import pytest
import scenes
from apps import Compare, Replay, view_of
from builders import model_of
from msgspec.structs import replace
from pressing import keyed, opened, press, proceed, until

from fwtui.analysis import rank_timing
from fwtui.analysis.plan_frames import PlanFrame, PlanFrames, Scene
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.widgets import run_text
from fwtui.tui.widgets.matrix import FILLED, GLYPHS, PARTS, READ, REST, SENT, WRITTEN, MatrixPicture, owners, pixels
from fwtui.tui.widgets.run_text import RunSubject
from fwtui_kernels import registry
from fwtui_kernels.plan import Rect, Shape


def subject(model: Model) -> RunSubject:
    run = model.runs[2]
    return RunSubject(run, None, model.gpu, None, True, gained=rank_timing.gain(model, run))


@pytest.mark.parametrize(("count", "width"), [(2, 56), (2, 78), (8, 40), (8, 120), (20, 78)])
def test_each_rank_has_a_bar_of_work_broadcast_and_wait(count: int, width: int) -> None:
    model = model_of(scenes.ranked_session(count))
    rows = [row.plain for row in run_text.ranks(subject(model), width)]
    assert max(map(len, rows)) <= width
    bars = [row for row in rows if row.startswith("rank ")]
    assert [row.split(" (")[0] for row in bars] == [f"rank {number}" for number in range(min(count, 8))]
    assert "░" not in bars[0] and all("▆" in row and "▒" in row for row in bars) and "░" in bars[1]
    lengths = [row.count("░") for row in bars]
    assert lengths == sorted(lengths), "the later ranks of this session wait longer"
    assert ("and 12 other ranks" in " ".join(rows)) == (count == 20)
    legend = " ".join(" ".join(rows).split())
    assert "▒ broadcast of a panel" in legend and "░ wait for the owner" in legend and "imbalance" in legend


class TestMatrix:
    @pytest.mark.parametrize("count", [2, 3, 8])
    def test_a_row_is_sent_while_all_ranks_are_busy_with_the_round_before(self, count: int) -> None:
        made = PlanFrames.of(registry()["distributed"], Shape(9 * 64, 64, ranks=count))
        assert made.process() and made.rounds == 9
        frames = made.slowly()
        sent = [frame for frame in frames if frame.phase == "broadcast"]
        assert [frame.sent for frame in sent] == [Rect(row * 64, 0, (row + 1) * 64, 576) for row in range(9)]

        def rows(frame: PlanFrame) -> set[int]:
            return {row for rect in frame.targets for row in range(rect.top // 64, rect.bottom // 64)}

        rests = [frame for frame in frames if frame.phase == "rest" and len(rows(frame)) > 1]
        assert [(frame.round, frame.sent and frame.sent.top // 64) for frame in rests] == [
            *((number, number) for number in range(1, 9)),
            (9, None),
        ]
        assert rows(rests[0]) == set(range(2, 9)), "of all ranks at once"
        assert all(len(frame.targets) <= 4 for frame in frames), "neighbouring rows are one rectangle, however many there are"

    def test_pixels_have_the_colour_of_the_rank_whose_row_it_is(self) -> None:
        made = PlanFrames.of(registry()["distributed-cpu"], Shape(256, 32, ranks=3))
        assert made.process()
        shown = Scene(256, (), targets=(Rect(32, 0, 64, 128),), deal=made.deal, sent=Rect(64, 0, 96, 256))
        assert owners(shown, 8) == [0, 1, 2, 0, 1, 2, 0, 1]
        grid = pixels(shown, 8, 8)
        assert [row[7] // len(PARTS) for row in grid] == owners(shown, 8)
        assert [GLYPHS[row[0] % len(PARTS)] for row in grid] == ["·", "▒", "=", *"·····"] and grid[2][7] % len(PARTS) == SENT

    def test_with_more_rows_than_pixels_they_take_turns_and_a_single_row_has_its_own(self) -> None:
        made = PlanFrames.of(registry()["distributed-cpu"], Shape(1024, 32, ranks=2))
        shown = Scene(1024, (), deal=made.deal, sent=Rect(32, 0, 64, 1024))
        assert owners(shown._replace(sent=None), 4) == [0, 1, 0, 1]
        assert owners(shown, 4) == [1, 1, 0, 1]

    @pytest.mark.parametrize("plain", [pytest.param(False, marks=pytest.mark.slow), True])
    async def test_a_legend_names_the_sender(self, plain: bool, replay_of: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
        if plain:
            monkeypatch.setenv("NO_COLOR", "1")
        app = replay_of(scenes.ranked_session(2))
        async with opened(app, size=(120, 50)) as pilot:
            picture = app.screen.query_one(MatrixPicture)
            assert picture.scene is not None and picture.scene.deal is not None
            picture.scene = picture.scene._replace(sent=Rect(128, 0, 256, 4096))
            picture.refresh()
            shown = await keyed(pilot)
        assert ("0 gets" in shown) and ("1 sends" in shown) and ("= sent" if plain else "■ sent") in shown
        if plain:
            assert "0▒▒▒▒" in shown and "1====" in shown


def test_two_ranks_on_a_run_page(replay_of: Replay, snap_compare: Compare) -> None:
    assert snap_compare(replay_of(scenes.ranked_session(2)), terminal_size=(120, 50))


def rows(grid: list[bytearray]) -> list[str]:
    return ["".join(".f#r"[part] for part in row) for row in grid]


def test_reads_and_writes_are_at_their_place_in_the_picture() -> None:
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
    """Return a run with a warm-up of eight seconds, one per round."""
    told = scenes.run(1, 1.0, scenes.experiment("katz-kider", 256), until="clean")
    begin = next(i for i, e in enumerate(told) if isinstance(e, events.Stage) and e.name == "warm-up")
    start = told[begin].t
    steps = [
        events.Progress(t=start + second, run=1, stage="warm-up", done=second / 8, step=3 * second - 1) for second in range(1, 8)
    ]
    return [scenes.header(), scenes.GPU, *told[: begin + 1], *steps]


async def test_a_replay_shows_the_round_of_each_moment(replay_of: Replay) -> None:
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
            seen.append((picture.scene.captions[0], picture.scene.targets))
        assert [words for words, _ in seen] == [f"round {r} of 8 · pivot tile" for r in (4, 7, 2)]
        assert seen[0][1] == (Rect(96, 96, 128, 128),)


async def test_an_ended_run_has_no_matrix_picture_and_its_plan_moves_slowly_on_cards(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        for size in ((80, 24), (120, 40)):
            await pilot.resize_terminal(*size)
            await press(pilot)
            shown = app.screen.query_one(RunPanel)
            assert not app.screen.query_one(MatrixPicture).region.area, "of a run that has ended it would be of one colour"
            for name in (".outside", ".meters"):
                assert sum(bool(part.display and part.region.width) for part in shown.query(name)) == 1, (size, name)
        await press(pilot)
        picture = app.screen.query_one(MatrixPicture)
        picture.slow_steps_per_second, app.still = 200, False  # in a still dashboard nothing moves
        end, said = picture.scene, set[str]()
        assert end is not None and end.captions[0].startswith("finished: round 256 of 256")

        def moved() -> bool:
            assert picture.scene is not None
            said.add(picture.scene.captions[0])
            return len(said) > 5

        run = view_of(app).run
        assert run is not None
        picture.show(run, 99.0, motion=True)
        await until(pilot, moved)
        assert all(words.startswith(("slow motion: round", "finished: ")) for words in said)
        picture.show(run, 99.0)
        assert picture.scene == end, "and stands still again"
        picture.steps_at_once, picture.pause_seconds = 20, 0.001
        app.still = False  # from now on a user waits for keys
        picture.show(replace(run, experiment=scenes.experiment("naive"), n=101), 99.0)
        assert not picture.display
        await until(pilot, lambda: picture.display)
        assert picture.scene is not None and picture.scene.captions[1] == "finished: round 101 of 101"
