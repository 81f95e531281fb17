"""Runs that several ranks share: what they gain and lose, a bar for each; and the little matrix, with whose rows are whose."""

import pytest
import scenes
from apps import Compare, Replay, view_of
from builders import model_of
from msgspec.structs import replace
from pressing import keyed, opened, press, proceed, until

from fwtui.analysis import rank_timing
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.explanation import explain
from fwtui.analysis.hints import hints
from fwtui.analysis.limits import limit_of, share_of_peak
from fwtui.analysis.phase_table import phase_rows, roofs_of
from fwtui.analysis.plan_frames import PlanFrame, PlanFrames, Scene
from fwtui.analysis.report import result
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.tui.run.run_panel import RunPanel
from fwtui.tui.widgets import run_text
from fwtui.tui.widgets.matrix import FILLED, GLYPHS, PARTS, READ, REST, SENT, WRITTEN, MatrixPicture, owners, pixels
from fwtui.tui.widgets.run_text import RunSubject
from fwtui_kernels import registry
from fwtui_kernels.plan import Rect, Shape
from fwtui_kernels.probes.probe_forms import right_for


def subject(model: Model) -> RunSubject:
    run = model.runs[2]
    return RunSubject(
        run, None, model.gpu, None, True, gained=rank_timing.gain(model, run), to_compare=rank_timing.how_to_compare(run)
    )


def parted(told: list[events.Event], **seconds: float) -> list[events.Event]:
    """With other seconds in these phases of every rank."""
    return [
        replace(event, parts=tuple(replace(part, seconds=seconds.get(part.phase, part.seconds)) for part in event.parts))
        if isinstance(event, events.Phases | events.RankPhases) and event.run == 2
        else event
        for event in told
    ]


class TestGain:
    def test_it_is_over_the_fastest_right_run_on_one_device_of_the_same_graph_and_type(self) -> None:
        session = scenes.ranked_session(2)
        slower = scenes.run(3, 9.0, scenes.experiment("naive"), seconds=0.2)
        wrong = scenes.run(4, 15.0, scenes.experiment("look-ahead"), title="T", seconds=0.001, verdict=scenes.verdict("wrong"))
        typed = scenes.run(5, 20.0, scenes.experiment("look-ahead", dtype="int16"), title="T", seconds=0.001)
        other = scenes.run(6, 25.0, scenes.experiment("look-ahead", seed=8), title="T", seconds=0.001)
        model = model_of([*session, *slower, *wrong, *typed, *other])
        found = rank_timing.gain(model, model.runs[2])
        assert found is not None and found.reference.id == 1 and found.times == pytest.approx(1.94)
        assert found.text == "1.94x over one GPU (97 % efficiency)" and found.efficiency == pytest.approx(0.97)
        told = result(model, model.runs[2])
        assert (told["one_device"], told["efficiency"]) == (1, found.efficiency) and len(told["ranks"]) == 2
        assert told["ranks"][1]["phases"]["wait"] > 0 and told["imbalance"] == pytest.approx(1.02, abs=0.01)

    def test_it_is_over_the_fastest_run_on_such_a_gpu_and_the_first_of_equally_fast_ones(self) -> None:
        def on(gpu: int, number: int, seconds: float) -> list[events.Event]:
            told = scenes.run(number, 10.0 * number, scenes.experiment("naive"), title="T", seconds=seconds)
            return [replace(event, gpu=gpu) if isinstance(event, events.RunStarted) else event for event in told]

        session = [
            replace(event, ranks=tuple(replace(rank, name="made-up GPU") for rank in event.ranks))
            if isinstance(event, events.RunStarted)
            else event
            for event in scenes.ranked_session(2)
        ]
        named = [events.Device(t=0.0, gpu=gpu, name=name) for gpu, name in ((0, "made-up GPU"), (1, "another"), (2, ""))]
        others = [*on(1, 3, 0.001), *on(0, 4, 0.02), *on(2, 5, 0.02)]
        model = model_of([*session, *named, *others])
        found = rank_timing.gain(model, model.runs[2])
        assert found is not None and found.reference.id == 4
        unnamed = model_of([*scenes.ranked_session(2), *named, *on(1, 3, 0.02), *on(0, 4, 0.02)])
        assert (found := rank_timing.gain(unnamed, unnamed.runs[2])) is not None and found.reference.id == 3

    def test_without_such_a_run_it_is_said_which_one_is_missing(self) -> None:
        model = model_of(scenes.ranked_session(2, alone=False))
        assert rank_timing.gain(model, model.runs[2]) is None
        said = " ".join(" ".join(row.plain for row in run_text.ranks(subject(model), 90)).split())
        assert "no run of this graph on one GPU yet; run look-ahead on one GPU to see the speedup" in said

    def test_processes_of_one_machine_share_its_cores_and_have_no_efficiency(self) -> None:
        alone = scenes.run(1, 1.0, scenes.experiment("tiled-cpu", 512), seconds=0.02)
        model = model_of([scenes.header(), *alone, *scenes.ranked_run(2, 5.0, 2, seconds=0.04, backend="cpu", n=512)])
        found = rank_timing.gain(model, model.runs[2])
        assert found is not None and (found.times, found.efficiency, found.text) == (0.5, None, "0.50x over one process")
        assert model.runs[2].device_count == 1

    def test_limits_are_those_of_all_devices_together(self) -> None:
        form = events.FormLimit(form=right_for("cuda", "float32", True)[0].key, relaxations_per_second=1e13)
        model = model_of(scenes.ranked_session(4))
        model.apply(events.Limits(t=0.1, backend="cuda", forms=(form,), complete=True))
        one, four = (limit_of(model, model.runs[number]) for number in (1, 2))
        assert one is not None and four is not None and four.relaxations_per_second == 4 * one.relaxations_per_second
        assert roofs_of(model, model.runs[2]).bytes_per_second == 4 * 4.81e12
        run, gpu = model.runs[2], model.gpu
        assert run.bandwidth is not None and share_of_peak(run, gpu) == pytest.approx(run.bandwidth / 4.81e12 / 4)


class TestWhy:
    def test_what_waiting_costs_and_what_the_broadcast_carries(self) -> None:
        model = model_of(scenes.ranked_session(2))
        run = model.runs[2]
        said = explain(ComparedRun(model, run), ComparedRun(model, model.runs[1])).sentence()
        assert said.startswith("1.94x speedup over Look-ahead: two GPUs instead of one.")
        assert said.endswith("Waiting for the panel takes 2 % of a rank's time: the owner rank produces the next panel too late.")
        lines = {line.key: str(line.limiter) for line in phase_rows(model, run)}
        assert lines["broadcast"] == "interconnect: 74.6 GB/s between GPUs"
        assert str(rank_timing.link_bandwidth(run)) == "74.6 GB/s between GPUs, 2.06 MiB in 29.0 us each"
        assert lines["wait"] == "the owner rank produces the next panel too late"

    def test_what_no_slot_carries_went_over_nvlink(self) -> None:
        model = model_of(parted(scenes.ranked_session(2), broadcast=0.0002))
        assert "346 GB/s over NVLink" in str(rank_timing.link_bandwidth(model.runs[2]))

    def test_a_graph_that_is_too_small_for_its_ranks(self) -> None:
        model = model_of(parted(scenes.ranked_session(2), broadcast=0.02))
        run = model.runs[2]
        said = explain(ComparedRun(model, run), None).sentence()
        assert said.startswith("Bottleneck: interconnect in the broadcast phase (") and ": 3.46 GB/s between GPUs" in said
        assert "The graph is too small for that many ranks: waiting for panels and broadcasting them take 5" in said
        (found,) = [hint for hint in hints(model, run) if hint.key == "exchange"]
        assert str(found).endswith("; a larger graph or fewer ranks give each rank more work")

    def test_on_a_busy_machine_the_graph_is_not_blamed(self) -> None:
        told = parted(scenes.ranked_session(2), broadcast=0.02)
        run = model_of(told).runs[2]
        assert run.clean_window is not None
        at = sum(run.clean_window) / 2
        busy = [events.Telemetry(t=at + place / 1000, other_cpu_utilisation=0.9, throttle=4) for place in range(5)]
        model = model_of(scenes.merged(told, busy))  # type: ignore[arg-type]
        said = rank_timing.describe_waiting(model, model.runs[2])
        assert said.startswith("waiting for panels and broadcasting them take ")

    def test_uneven_rows_are_the_reason_where_they_are(self) -> None:
        model = model_of(scenes.ranked_session(8))
        said = rank_timing.describe_waiting(model, model.runs[2])
        assert said.endswith("rank 0 (GPU 0) is busy longest, 1.18x the mean work"), "each has as many rows"
        uneven = replace(model.runs[2], padded=9 * 128)
        assert "rank 0 (GPU 0) has 2 of 9 rows of tiles" in rank_timing.describe_waiting(model, uneven)
        model.runs[2] = uneven
        (found,) = [hint for hint in hints(model, uneven) if hint.key == "uneven rows"]
        assert str(found) == "9 rows of tiles for 8 ranks: some ranks have more rows than others; a tile of 64 gives more rows"

    def test_nothing_is_said_of_what_is_not_known(self) -> None:
        told = [event for event in scenes.ranked_session(2) if not isinstance(event, events.RankPhases)]
        model = model_of(told)
        assert (
            rank_timing.rank_times(model.runs[2]) == ()
            and not rank_timing.describe_waiting(model, model.runs[2])
            and not rank_timing.overlap_text(model.runs[2])
        )
        assert run_text.ranks(subject(model), 80) == []


class TestBars:
    @pytest.mark.parametrize(("count", "width"), [(2, 56), (2, 78), (8, 40), (8, 120), (20, 78)])
    def test_each_rank_has_one_of_its_work_the_broadcast_and_its_wait(self, count: int, width: int) -> None:
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

    @pytest.mark.parametrize("plain", [False, True])
    async def test_a_legend_says_who_sends(self, plain: bool, replay_of: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_eight_ranks_explained(replay_of: Replay, snap_compare: Compare) -> None:
    app = replay_of(scenes.ranked_session(8))
    assert snap_compare(app, terminal_size=(120, 50), press=["4"])


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
            seen.append((picture.scene.words[0], picture.scene.targets))
        assert [words for words, _ in seen] == [f"round {r} of 8 · pivot tile" for r in (4, 7, 2)]
        assert seen[0][1] == (Rect(96, 96, 128, 128),)


async def test_it_goes_first_where_there_is_little_room(replay_of: Replay) -> None:
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
