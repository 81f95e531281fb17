"""What is drawn, without a screen: charts, the telemetry strip, the timeline, words."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import scenes

from fwtui import events
from fwtui.model import Model
from fwtui.tui import charts, notices, readout, strip, wording
from fwtui.tui.drawn import apart, hanging, line
from fwtui.tui.readout import Subject
from fwtui.tui.transport import Band, timeline


def model_of(told: list[events.Event]) -> Model:
    model = Model()
    for event in told:
        model.apply(event)
    return model


def subject(told: list[events.Event]) -> Subject:
    model = model_of(told)
    assert model.run is not None
    return Subject(model.run, model.evidence(model.run), model.gpu, None, True)


@pytest.mark.parametrize("width", [2, 3, 17, 80, 200])
def test_bars_are_as_long_as_their_values(width: int) -> None:
    values = (0.9, 1.6, 35.6, 0.0, 18.0)
    for value, row in zip(values, charts.bars(values, width), strict=True):
        assert len(row) == width
        assert row.count(charts.BLOCK) == (max(1, round(value / 35.6 * width)) if value else 0)
        assert row.strip() == row.rstrip()


@pytest.mark.parametrize(
    "values",
    [(), (math.nan,), (math.inf, 1.0), (-math.inf,), (None, None), (0.0,), (1e308, 1.0), (-1.0, 2.0), (5e-324,), (1e-300, 1e15)],
)
@pytest.mark.parametrize("width", [-1, 0, 1, 2, 60])
def test_no_number_can_break_a_chart(values: tuple[float | None, ...], width: int) -> None:
    rows = charts.bars(values, width)
    assert len(rows) == len(values)
    assert all(len(row) == max(width, 0) for row in rows)
    for value, row in zip(charts.finite(values), rows, strict=True):
        assert value or not row.strip()


def test_a_gap_is_not_a_zero() -> None:
    assert charts.finite([1, math.nan, math.inf, None, 1e16]) == (1.0, None, None, None, None)


def test_sparks_leave_gaps_and_stay_inside_their_scale() -> None:
    assert strip.spark([0.0, 0.5, 1.0, 2.0, -1.0, None, math.nan], 0, 1) == "▁▅██▁  "
    assert strip.spark([1.0], 1, 1) == " "


def test_history_is_means_of_half_seconds() -> None:
    readings = [events.Telemetry(t=t / 10, gpu_utilisation=1.0 if t >= 95 else 0.0) for t in range(0, 100)]
    assert strip.history(readings, lambda r: r.gpu_utilisation)[-2:] == (0.0, 1.0)
    assert strip.history(readings, lambda r: r.gpu_power_watts) == (None,) * strip.BINS
    assert strip.history([], lambda r: r.t) == (None,) * strip.BINS


def test_what_was_not_read_is_na_and_never_0() -> None:
    empty = model_of([scenes.header(), scenes.GPU])
    for quantity in strip.quantities(empty):
        assert quantity.text == "n/a"
    assert {q.text for q in strip.quantities(model_of([scenes.header(), scenes.NO_GPU]))} == {"n/a"}


@pytest.mark.parametrize(("width", "rows"), [(118, 2), (78, 2), (58, 1), (20, 2), (1, 1)])
def test_the_strip_is_never_wider_than_its_place(width: int, rows: int) -> None:
    model = model_of(scenes.gpu_session())
    lines = strip.arranged(strip.quantities(model), width, rows)
    assert len(lines) <= rows
    for row in lines[:-1] if len(lines) > 1 else []:
        cells = sum(quantity.cells(with_history) for quantity, with_history in row) + len(strip.GAP) * (len(row) - 1)
        assert cells <= max(width, row[0][0].cells(row[0][1]))


def test_places_on_the_strip_do_not_move_when_numbers_change() -> None:
    told = scenes.gpu_session()
    widths = set()
    for stop in (40, len(told) // 2, len(told)):
        model = model_of(told[:stop])
        widths.add(tuple("".join(q.parts(True)).__len__() for q in strip.quantities(model) if q.label != "throttle"))
    assert len(widths) == 1


def test_timeline_shows_runs_markers_faults_and_the_position() -> None:
    cells = timeline([Band(2, 4, "run"), Band(6, 6, "marker"), Band(8, 8, "fault")], 5.0, 10.0, 20)
    text = "".join(character for character, _ in cells)
    assert text == "────━━━━━─┃─◆───✗───"
    assert timeline([], 0.0, 0.0, 3)[0] == ("┃", "position")
    assert timeline([], 5.0, 1.0, 0) == []


def test_long_lines_keep_their_right_end() -> None:
    whole = apart(line("a" * 50), line("✓ verified"), 40)
    assert whole.cell_length == 40 and whole.plain.endswith("✓ verified") and "…" in whole.plain


def test_hanging_text_keeps_its_indent() -> None:
    lines = hanging("check", 8, ["one two three four", "five", "six"], 20)
    assert lines[0].plain.startswith("check   one")
    assert all(part.plain.startswith(" " * 8) for part in lines[1:])
    assert lines[-1].plain.endswith("five · six")


def test_a_small_share_is_not_drawn_as_nothing() -> None:
    drawn = {share: line(*readout.meter(share, 4)).plain for share in (None, 0.0, 0.001, 0.5, 0.7, 1.4)}
    assert drawn == {None: "────", 0.0: "────", 0.001: "╸───", 0.5: "━━──", 0.7: "━━━─", 1.4: "━━━━"}


def test_headline_of_a_gpu_run_names_every_number() -> None:
    s = subject(scenes.gpu_session()[:2] + scenes.run(1, 1.0, scenes.experiment("katz-kider"), title="Katz-Kider"))
    text = readout.headline(s, 100).plain
    assert "total  38.4 ms ± 0.3 %" in text and "1.79 Trelax/s" in text and "of peak bandwidth" in text
    plain = "\n".join(part.plain for part in (*readout.meters(s, 100), *readout.outside(s, 100)))
    assert "limited by registers (40/thread)" in plain and "50.0 %" in plain
    assert "H2D 2.10 ms · D2H 2.00 ms · compile 800 ms once" in plain
    assert "instrumentation +768 us (+2.0 %)" in plain
    assert plain.count("n/a") == 2  # no counters were read


def test_phases_keep_their_places_before_they_are_known() -> None:
    told = scenes.run(1, 1.0, scenes.experiment("katz-kider"), title="Katz-Kider")
    before = readout.phases(subject([scenes.header(), *told[:3]]), 80)
    after = readout.phases(subject([scenes.header(), *told]), 80)
    assert [row.plain[: readout.LABEL] for row in before] == [row.plain[: readout.LABEL] for row in after]
    assert all(row.plain.split()[-2:] == ["n/a", "n/a"] and charts.BLOCK not in row.plain for row in before)
    assert [row.cell_length for row in before] == [row.cell_length for row in after]


def test_a_cpu_run_is_not_held_against_the_gpus_memory() -> None:
    told = scenes.run(1, 1.0, scenes.experiment("tiled-cpu", 512), title="Tiled CPU", backend="cpu")
    s = subject([scenes.header(), scenes.GPU, *told])
    assert readout.peak_share(s) is None
    assert "of peak" not in readout.headline(s, 120).plain


def test_a_throttled_run_says_so() -> None:
    told = scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive", seconds=0.3)
    middle = told[-1].t - 3.0
    s = subject(
        [scenes.header(), scenes.GPU, *scenes.merged(told, [events.Telemetry(t=middle, throttle=0x4, gpu_power_watts=700.0)])]
    )
    assert "throttled: power cap" in readout.progress(s, 100)[0].plain
    assert wording.outcome(s.run, s.evidence.throttled if s.evidence else ()) == "✓ verified · throttled"


def test_few_passes_are_indicative() -> None:
    s = subject([scenes.header(), *scenes.run(1, 1.0, scenes.experiment("naive"), title="Naive", passes=3)])
    assert readout.progress(s, 100)[0].plain.startswith("indicative")


def test_speedups_need_two_trustworthy_runs_of_one_size() -> None:
    fast = model_of(scenes.run(1, 1.0, scenes.experiment("katz-kider"), title="a", seconds=0.01)).runs[1]
    slow = model_of(scenes.run(2, 1.0, scenes.experiment("naive"), title="b", seconds=0.05)).runs[2]
    assert wording.speedup(fast, slow) == "5.00x"
    assert wording.speedup(slow, slow) == "baseline"
    assert wording.speedup(fast, None) == ""
    assert wording.speedup(replace(fast, n=5), slow) == ""
    assert wording.speedup(replace(fast, verdict=None), slow) == ""


@pytest.mark.parametrize(
    ("vertices", "words"),
    [((), ""), ((3,), "3 → 3"), ((3, 7), "3 → 7 → 3"), ((3, 7, 3), "3 → 7 → 3"), (tuple(range(9)), "0 → 1 → 2 → 3 → 4 → … → 0")],
)
def test_cycles_come_back_to_their_first_vertex(vertices: tuple[int, ...], words: str) -> None:
    assert wording.cycle(vertices) == words


def test_the_log_is_in_order_and_its_last_line_is_the_latest() -> None:
    model = model_of(scenes.gpu_session())
    entries = notices.entries(model)
    assert [e.t for e in entries] == sorted(e.t for e in entries)
    assert len(entries) == 7 and entries[-1] == notices.latest(model)
    for stop, event in pairwise(range(0, len(scenes.gpu_session()), 50)):
        assert stop < event
        part = model_of(scenes.gpu_session()[:stop])
        assert (notices.latest(part) is None) == (not notices.entries(part))
