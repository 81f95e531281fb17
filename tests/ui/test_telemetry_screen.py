"""Telemetry: bins that do not wobble, tracks that fit, a cursor with values, runs as bands; and the strip below every run."""

import math
import re

import pytest
import scenes
from apps import Replay, dashboard_of, replay_at_end, view_of
from builders import apply_all, model_of
from fake_live import FakeLive
from hypothesis import given, settings
from hypothesis import strategies as st
from pressing import keyed as shown
from pressing import opened, press, settled
from textual.events import MouseScrollUp
from textual.geometry import Region
from textual.widgets import SelectionList

from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.library import resolve
from fwtui.stream import events
from fwtui.stream.requests import Hardware
from fwtui.tui.frame import telemetry_strip
from fwtui.tui.telemetry.screen import QuantitiesScreen
from fwtui.tui.telemetry.track_chart import TrackChart
from fwtui.tui.telemetry.track_drawing import GUTTER, WIDE_GUTTER, Row, TrackDrawing, Window, changes, stepped
from fwtui.tui.telemetry.tracks import HOLD_SECONDS, Bins, Track, moments, span_for, tracks_of


def row(text: str, title: str) -> str:
    return next(line for line in text.split("\n") if line.startswith(f" {title} "))


def readings(values: list[float | None], every: float = 0.1) -> list[events.Telemetry]:
    return [events.Telemetry(t=place * every, gpu_power_watts=value) for place, value in enumerate(values)]


def test_bins_are_means_and_a_sample_holds_for_a_limited_time() -> None:
    bins = Bins(1.0, ("gpu_power_watts",))
    told = [events.Telemetry(t=t, gpu_power_watts=w) for t, w in ((0.0, 100.0), (0.5, 200.0), (1.2, 50.0), (6.0, 70.0))]
    bins.take([*told, *(events.Telemetry(t=7.0 + place / 10) for place in range(30))])
    assert bins.means(0, 0, 7) == [150, 50, 50, 50, None, None, 70]
    assert HOLD_SECONDS == 1.5
    slow = Bins(1.0, ("gpu_power_watts",))
    slow.take(readings([100.0, 200.0, 300.0], every=4.0))
    assert slow.means(0, 0, 10) == [100] * 4 + [200] * 4 + [300, None], "a recording of few readings has no gaps"
    fine = Bins(0.05, ("gpu_power_watts",))
    fine.take(told[:3])
    assert fine.means(0, 0, 12) == [100] * 10 + [200] * 2
    assert bins.means(0, -3, 4) == [None, None, None, 150]


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e15)), max_size=60),
    st.lists(st.integers(0, 60), max_size=6),
    st.sampled_from([0.01, 0.25, 3.0]),
)
def test_bins_follow_a_list_that_grows_and_is_cut(values: list[float | None], cuts: list[int], seconds: float) -> None:
    told = readings(values)
    followed = Bins(seconds, ("gpu_power_watts", "gpu_clock_mhz"))
    for cut in [*cuts, len(told)]:
        followed.take(told[:cut])
        fresh = Bins(seconds, ("gpu_power_watts", "gpu_clock_mhz"))
        fresh.take(told[:cut])
        assert followed.means(0, -5, 40) == fresh.means(0, -5, 40)
        assert followed.means(1, 0, 9) == [None] * 9


def test_moments_are_round_and_few() -> None:
    assert moments(0, 60, 6) == [0, 10, 20, 30, 40, 50, 60][:6]
    assert moments(3.2, 8.9, 6) == [4, 5, 6, 7, 8] and moments(5, 5, 3) == [] and moments(0, 1, 0) == []
    assert span_for(59) == 60 and span_for(61) == 120 and span_for(1e6) == 1e6


def test_an_area_is_solid_and_a_gradient_from_its_foot_to_its_top() -> None:
    model = model_of([scenes.header(), scenes.GPU, *readings([0.0, 700.0, None, 350.0], every=1.0)])
    bins = Bins(1.0, ("gpu_power_watts",))
    bins.take(model.telemetry)
    tracks = [Track("gpu_power_watts", FIRST_GPU, "power")]
    rows = TrackDrawing(model, None, tracks, {FIRST_GPU: bins}, Window(1.0, 0, 5), [4], None, {}).rows()[2:6]
    # never quite full; what was not read for a moment is what it was, and what was never read has a foot
    assert ["".join(text for text, _ in row)[GUTTER:] for row in rows] == ["┄▇▇┄┄", " ██  ", " ███ ", "▁███╌"], "┄: maximum"
    assert [row[-1][1] for row in rows] == ["peak", "area-3", "area-1", "area-0"]


def test_gpus_share_one_scale_and_stale_values_are_not_shown() -> None:
    gpus = [DeviceId("cuda", index) for index in range(2)]
    rates = [*((t, 0, 4e9) for t in range(10)), *((t, 1, 1e9) for t in range(3))]
    model = model_of(events.Telemetry(t=t, gpu=gpu, pcie_bytes_per_second=rate) for t, gpu, rate in sorted(rates))
    tracks = tracks_of(model, ("pcie_bytes_per_second", "cpu_utilisation"), gpus)
    assert [(track.title, track.gpu, bool(track.head)) for track in tracks] == [
        ("GPU 0", gpus[0], True),
        ("GPU 1", gpus[1], False),
        ("CPU", None, False),
    ]
    bins: dict[DeviceId | None, Bins] = {gpu: Bins(1.0, ("pcie_bytes_per_second",)) for gpu in gpus}
    for gpu in gpus:
        bins[gpu].take(model.readings[gpu])
    rows = TrackDrawing(model, None, tracks[:2], bins, Window(1.0, 0, 10), [1, 1], None, {}).rows()[2:5]
    head, first, second = ("".join(text for text, _ in row) for row in rows)
    assert head.startswith("PCIe, sent and received")
    assert first[GUTTER:] == "█" * 10 and first.split()[:3] == ["GPU", "0", "4.00"]
    assert second[GUTTER:] == "▂▂▂╌╌╌╌╌╌╌" and second.split()[:3] == ["GPU", "1", "n/a"]


def test_a_scale_without_a_known_end_goes_in_steps_and_not_back_and_forth() -> None:
    tops, top = [], 0.0
    for greatest in (90, 101, 99, 101, 150, 99, 70, 60, 210, 99):
        tops.append(top := stepped(top, greatest))
    assert tops == [100, 150, 150, 150, 150, 150, 150, 150, 300, 100]
    assert stepped(0.0, 0.0) > 0 and stepped(5.0, 0.0) > 0


def test_only_changed_cells_of_a_row_are_painted() -> None:
    before: Row = (("power    81 W ", "title"), ("▁▁█", "area-0"))
    assert changes(before, before) == []
    assert changes(before, (("power    82 W ", "title"), ("▁▁█", "area-0"))) == [(10, 11)]
    assert changes(before, (("power    82 W ", "title"), ("▁▁", "area-0"), ("█", "run-area-0"))) == [(10, 17)]


def test_the_end_of_a_scale_is_a_field_of_device_or_machine() -> None:
    for quantity in events.QUANTITIES.values():
        if isinstance(quantity.most, str):
            assert quantity.most in (events.Machine if quantity.host else events.Device).__struct_fields__


def test_sparks_leave_gaps_and_history_is_means_of_half_seconds() -> None:
    assert telemetry_strip.spark([0.0, 0.5, 1.0, 2.0, -1.0, None, math.nan], 0, 1) == "▁▅██▁  "
    assert telemetry_strip.spark([1.0], 1, 1) == " "
    readings = [events.Telemetry(t=t / 10, gpu_utilisation=1.0 if t >= 95 else 0.0) for t in range(0, 100)]
    assert telemetry_strip.history(readings, "gpu_utilisation")[-2:] == (0.0, 1.0)
    assert telemetry_strip.history(readings, "gpu_power_watts") == (None,) * telemetry_strip.BINS
    assert telemetry_strip.history([], "t") == (None,) * telemetry_strip.BINS
    for device in (scenes.GPU, scenes.NO_GPU):
        assert {q.text for q in telemetry_strip.places(model_of([scenes.header(), device]))} == {"n/a"}, "and never 0"


@pytest.mark.parametrize(("width", "rows"), [(118, 2), (78, 2), (58, 1), (20, 2), (1, 1)])
def test_the_strip_is_never_wider_than_its_place(width: int, rows: int) -> None:
    model = model_of(scenes.gpu_session())
    lines = telemetry_strip.arranged(telemetry_strip.places(model), width, rows)
    assert len(lines) <= rows
    for row in lines[:-1] if len(lines) > 1 else []:
        cells = sum(quantity.cells(with_history) for quantity, with_history in row) + len(telemetry_strip.gap(row[0][1])) * (
            len(row) - 1
        )
        assert cells <= max(width, row[0][0].cells(row[0][1]))


def test_several_gpus_are_side_by_side_on_the_strip_at_equal_widths() -> None:
    for told in (scenes.several_gpus(8, idler=3), scenes.gpu_session()):
        widths = set()
        for stop in (40, len(told) // 2, len(told)):
            places = telemetry_strip.places(model_of(told[:stop]))
            widths.add(tuple(len("".join(place.parts(True))) for place in places if place.label != "throttle"))
        assert len(widths) == 1, "they do not move when numbers change"
    places = telemetry_strip.places(model_of(scenes.several_gpus(8, idler=3)))
    assert [place.label for place in places] == ["SM activity", "power", "NVLink", "DRAM util", "SM clock", "throttle"]
    now = [
        events.Telemetry(t=90.0, gpu=gpu, gpu_power_watts=watts, throttle=gpu)
        for gpu, watts in ((2, 99.0), (4, None), (5, 1000.0))
    ]
    places = telemetry_strip.places(model_of([scenes.header(), *now]))
    assert [(place.label, place.text) for place in places] == [
        ("GPUs", "2 4 5"),
        ("power", " 99 n/a 1000 W"),
        ("throttle", "GPU 4, 5"),
    ]


def test_a_number_that_does_not_fit_is_not_cut_to_another() -> None:
    assert telemetry_strip.fitting("1000000000 W", 6) == "…" and telemetry_strip.fitting("315 W", 6) == "315 W"
    assert telemetry_strip.fitting("power cap, thermal", 10) == "power cap…"


def test_the_strip_shows_mean_and_max_of_an_ended_run() -> None:
    def reading(t: float, clock: float, occupancy: float) -> events.Telemetry:
        return events.Telemetry(t=t, gpu_clock_mhz=clock, sm_occupancy=occupancy)

    told = scenes.run(1, 1.0, scenes.experiment("naive"), seconds=1.0, passes=4)
    first = next(event for event in told if isinstance(event, events.Sample)).since
    during = [reading(first + 0.1, 1500, 0.1), reading(first + 1, 1600, 0.5), reading(first + 2, 1800, 0.7)]
    model = model_of([scenes.header(), scenes.GPU, *sorted([*told, *during, reading(999, 210, 0.0)], key=lambda event: event.t)])
    shown = {place.label: (place.text, place.peak) for place in telemetry_strip.places(model, model.run)}
    assert shown["run 1"] == ("mean", "↑ peak") and shown["SM clock"] == ("1633 MHz", "↑ 1800 MHz")
    assert shown["SM occ."] == ("60 %", "↑ 70 %"), "the first is an average over what was before the passes, too"
    assert {place.label: place.text for place in telemetry_strip.places(model)}["SM clock"] == "210 MHz"
    on_cpu = scenes.run(2, 20.0, scenes.experiment("tiled-cpu"))
    now = events.Telemetry(t=21.0, gpu_clock_mhz=345, cpu_utilisation=0.9)
    apply_all(model, sorted([*on_cpu, now], key=lambda event: event.t))
    labels = [place.label for place in telemetry_strip.places(model, model.run)]
    assert labels[:2] == ["run 2", "CPU"] and "SM clock" not in labels, "a GPU's clock says nothing of a run on the CPU"
    width = 118
    rows = telemetry_strip.arranged(telemetry_strip.places(model, model.run), width, 2)
    assert all(sum(place.cells(past) + 2 for place, past in row) - 2 <= width for row in rows)
    assert any(past for _, past in rows[0])


async def test_tracks_are_read_with_cursor_and_mouse_zoomed_and_chosen(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app, "5") as pilot:
        text = await shown(pilot)
        runs = row(text, "run 3")
        assert (
            "┣━" in runs
            and runs.split()[2:7] == ["now", "run", "mean", "run", "max"]
            and "1 naive" in text
            and "2 katz-kider" in text
        )
        assert row(text, "SM clock")[:WIDE_GUTTER].count(" MHz") == 3 and "0 to 700 W" in text and "0 to 100 %" in text
        for title in ("SM clock", "temp", "GPU util", "SM occupancy", "DRAM util", "memory used", "throttle"):
            assert row(text, title)
        assert "none" in row(text, "throttle") and "····" in row(text, "throttle")
        assert "  00:10" in text and "whole session" in text and "█" in text
        assert "GPU 0" not in text
        assert "telemetry of one GPU at most" in await shown(pilot, "H")
        before = text
        text = await shown(pilot, "x", "home")
        assert " at 00:00." in text
        assert row(text, "power") != row(before, "power")
        chart = app.screen.query_one(TrackChart)
        for _ in range(30):
            await pilot.press("right")
        text = await shown(pilot)
        assert chart.at is not None
        nearest = min(view_of(app).model.telemetry, key=lambda r: abs(r.t - (chart.at or 0)))
        assert nearest.gpu_power_watts is not None
        watts = float(row(text, "power").split()[1])
        assert watts == pytest.approx(nearest.gpu_power_watts, rel=0.2)
        await press(pilot, "enter")
        assert app.view is not None and app.view.selected == 1
        text = await shown(pilot, "escape")
        assert " at 00:" not in text and app.view.selected == 1
        assert "run 1  Naive" in text
        await press(pilot, "escape")
        assert app.view.selected is None
        text = await shown(pilot)
        column = next(line for line in text.split("\n") if "2 katz-kider" in line and "1 naive" in line).index("2 katz-kider")
        await pilot.click(chart, offset=(column + 3, 3))
        await pilot.pause()
        assert app.view is not None and app.view.selected == 2 and chart.at is not None
        start, end = chart.window.start, chart.window.end
        chart.post_message(MouseScrollUp(chart, column + 3, 3, 0, -1, 0, False, False, False))
        await press(pilot)
        assert chart.window.end - chart.window.start < end - start
        assert chart.window.start <= chart.at <= chart.window.end
        await press(pilot, "escape", *["minus"] * 9, "escape")
        whole = app.screen.query_one(TrackChart).window
        text = await shown(pilot, "plus", "plus")
        assert "5.00 s wide" in text or "10.0 s wide" in text
        narrow = app.screen.query_one(TrackChart).window
        assert narrow.end - narrow.start < whole.end - whole.start and narrow.end == pytest.approx(whole.end, abs=0.5)
        await press(pilot, *["plus"] * 8)
        assert "1.00 s wide" in await shown(pilot) and "1.00 s is the shortest span" in await shown(pilot)
        assert "the whole session is visible" in await shown(pilot, *["minus"] * 9)
        assert app.screen.query_one(TrackChart).window == whole
        text = await shown(pilot, "Q")
        assert isinstance(app.screen, QuantitiesScreen)
        assert all(re.search(rf"{re.escape(one.title)}  +{re.escape(one.meaning)}", text) for one in events.QUANTITIES.values())
        app.screen.query_one(SelectionList).deselect_all()
        app.screen.query_one(SelectionList).select("cpu_utilisation")
        text = await shown(pilot)
        marks = {title: next(line for line in text.split("\n") if title in line)[:-1] for title in ("all cores", "of the board")}
        assert "▐X▌" in marks["all cores"] and "▐ ▌" in marks["of the board"], "without colours too"
        assert "▔" not in text
        text = await shown(pilot, "escape")
        assert row(text, "CPU") and not any(line.startswith(" power ") for line in text.split("\n"))


async def test_throttling_is_a_track_with_words(replay_of: Replay) -> None:
    told = [events.Telemetry(t=t / 10, gpu_power_watts=700.0, throttle=0x4 if t > 20 else 0x1) for t in range(40)]
    app = replay_of([scenes.header(), scenes.GPU, *told])
    async with opened(app) as pilot:
        text = await shown(pilot, "5")
        track = row(text, "throttle")
        assert "power cap" in track and "·████" in track
        assert " none " in row(await shown(pilot, "x", "home"), "throttle")


async def test_a_live_window_follows_and_a_cursor_holds_it() -> None:
    live = FakeLive(scenes.GPU)
    app = dashboard_of(live, Experiment(kernel="katz-kider", n=1024), found=Hardware())
    async with opened(app, "5") as pilot:
        live.emit(*scenes.telemetry(0.1, 100, 0.5))
        app.tick()
        text = await shown(pilot)
        chart = app.screen.query_one(TrackChart)
        assert "1 min" in text or "60.0 s wide · following" in text
        assert chart.window.end == pytest.approx(100, abs=1.5) and chart.window.start == pytest.approx(40, abs=2)
        held = chart.window
        before, painted = chart.window, list[Region]()
        chart.refresh = lambda *regions, **_: painted.extend(regions)  # type: ignore[method-assign, assignment]
        live.emit(*scenes.telemetry(100, 0.2, 0.5))
        app.tick()
        del chart.refresh
        assert chart.window == before and 0 < sum(region.area for region in painted) < 100, "nothing but what changed"
        text = await shown(pilot, "x", "left")  # a cursor set by a key holds the window
        live.emit(*scenes.telemetry(100.2, 20, 0.5))
        app.tick()
        text = await shown(pilot)
        assert "held" in text and chart.window == held and len(live.model.telemetry) == 1202
        text = await shown(pilot, "escape")
        assert "following" in text and chart.at is None and chart.window.end == pytest.approx(120, abs=1.5)


async def test_a_run_too_short_for_a_quantity_is_marked_in_its_lane() -> None:
    app = replay_at_end(resolve("h200-n4096-naive-blocked"), "telemetry")
    async with opened(app) as pilot:
        assert row(await settled(pilot), "power").split()[1:6] == ["n/a", "too", "short", "too", "short"]
