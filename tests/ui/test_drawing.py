"""Drawing without a screen: bars, the timeline, and the texts of a run."""

import math
import re
from pathlib import Path

import msgspec
import pytest
import scenes
from builders import model_of
from msgspec.structs import replace

from fwtui import measure
from fwtui.analysis import columns
from fwtui.analysis.limits import limit_of
from fwtui.common import units
from fwtui.common.text import truncate
from fwtui.engine import kernel_instance
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.model import Evidence
from fwtui.stream.stages import STAGES
from fwtui.tui import charts
from fwtui.tui.frame import notices
from fwtui.tui.frame.loaded_recording import Band
from fwtui.tui.frame.playback import timeline
from fwtui.tui.run.run_panel import figure, in_lines
from fwtui.tui.widgets import run_labels, run_text
from fwtui.tui.widgets.run_table import distinctions, history_cells, history_columns
from fwtui.tui.widgets.run_text import RunSubject
from fwtui.tui.widgets.text_panel import hanging_indent, justify, line, whole_clauses


def subject(told: list[events.Event]) -> RunSubject:
    model = model_of(told)
    assert model.run is not None
    return RunSubject(model.run, model.evidence(model.run), model.gpu, None, True)


@pytest.mark.parametrize("width", [2, 3, 17, 80, 200])
def test_bars_are_as_long_as_their_values(width: int) -> None:
    values = (0.9, 1.6, 35.6, 0.0, 18.0)
    for value, row in zip(values, charts.bars(values, width), strict=True):
        assert len(row) == width
        assert row.count(charts.BLOCK) == round(value / 35.6 * width)
        assert row.strip() == row.rstrip() and bool(row.strip()) == bool(value)


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


def test_numbers_are_formatted_with_their_units() -> None:
    assert (units.duration(0.0), units.duration(2e-9), units.duration(0.0384)) == ("0 s", "0.00 us", "38.4 ms")
    assert [units.gain(ratio) for ratio in (0.513, 1.24, 22.94, 999.4, 999.6, 11023)] == [
        *("0.51x", "1.24x", "22.9x", "999x", "1,000x", "11,023x")
    ]


def test_timeline_shows_runs_markers_faults_and_the_position() -> None:
    cells = timeline([Band(2, 4, "run"), Band(6, 6, "marker"), Band(8, 8, "fault")], 5.0, 10.0, 20)
    text = "".join(character for character, _ in cells)
    assert text == "────━━━━━─┃─◆───✗───"
    assert timeline([], 0.0, 0.0, 3)[0] == ("┃", "position")
    assert timeline([], 5.0, 1.0, 0) == []


def test_long_lines_keep_their_right_end_and_parts_their_indent() -> None:
    whole = justify(line("a" * 50), line("✓ verified"), 40)
    assert whole.cell_length == 40 and whole.plain.endswith("✓ verified") and "…" in whole.plain
    lines = hanging_indent("check", 8, ["one two three four", "five", "six"], 20)
    assert lines[0].plain.startswith("check   one") and all(part.plain.startswith(" " * 8) for part in lines[1:])
    assert lines[-1].plain.endswith("five · six")
    parts = ["eleven cells", "twelve cells", "and this one is two lines"]
    assert [said.plain for said in hanging_indent("x", 2, parts, 20, most=2)] == [
        "x eleven cells",
        "  twelve cells · and this one is two lines",
    ]


def test_checksum_and_seed_are_details() -> None:
    s = subject(scenes.gpu_session()[:2] + scenes.run(1, 1.0, scenes.experiment("katz-kider"), title="Katz-Kider"))
    for details, words in ((False, []), (True, ["checksum", "seed"])):
        s = s._replace(details=details)
        shown = [run_text.title(s, 300), *run_text.checked(s, 300)]
        assert [word for word in ("checksum", "seed") if any(word in one.plain for one in shown)] == words
    assert "weights" in run_text.title(s, 300).plain


@pytest.mark.parametrize(
    ("cells", "words"), [(16 * 4096, " · 16 rows"), (4096, " · 1 row"), (5, " · 5 cells"), (4096**2, ""), (0, "")]
)
def test_a_sampled_verification_shows_its_number_of_rows_or_cells(cells: int, words: str) -> None:
    verdict = events.Verdict(t=0, run=0, verdict="verified", how="compared", cells=cells, checksum="9f3c2a77b18d40e1")
    s = subject([scenes.header(), *scenes.run(1, 1.0, scenes.experiment("naive"), verdict=verdict)])
    assert run_labels.outcome(s.run) == f"✓ verified{words}"
    assert run_text.title(s, 57).plain.endswith(f"  ✓ verified{words}")
    assert "rows" not in run_labels.outcome(replace(s.run, verdict=scenes.verdict("wrong", "wrong at (0, 1)")))


@pytest.mark.parametrize(
    ("kernel", "extra", "words"),
    [
        *(("naive", extra, "timer overhead: not measurable") for extra in (0.0001, -0.0001)),
        ("naive", 0.000768, "timer overhead +768 us (+2.0 %)"),
        ("naive", -0.000768, "timer overhead -768 us (-2.0 %)"),  # of a GPU: the gaps between launches are skipped
        ("tiled-cpu", -0.000768, "timer overhead: not measurable"),
        ("naive", 0.01536, "timer overhead +15.4 ms (+40.0 %) · the per-phase times are approximate"),
    ],
)
def test_timer_overhead_is_a_number_only_beyond_the_spread(kernel: str, extra: float, words: str) -> None:
    s = subject([scenes.header(), *scenes.run(1, 1.0, scenes.experiment(kernel))])
    assert s.run.done is not None and s.run.instrumented_repetition is not None
    several = msgspec.structs.replace(s.run.instrumented_repetition, passes=5)
    s = s._replace(run=replace(s.run, done=msgspec.structs.replace(s.run.done, instrumentation=extra)))
    graph = " in a CUDA graph" * (kernel == "naive")
    assert run_text.outside(s, 120)[0].plain.endswith(f" ms{graph} · {words}")
    s = s._replace(run=replace(s.run, instrumented_repetition=several))
    assert f" ms{graph} · median of 5 · {words}" in run_text.outside(s, 140)[0].plain


def test_the_occupancy_limiter_is_shown_only_if_there_is_one() -> None:
    s = subject([scenes.header(), *scenes.run(1, 1.0, scenes.experiment("naive"))])
    theory = s.run.main_occupancy
    assert theory is not None and run_text.limits(theory)[0] == "limited by registers (40/thread)"
    full = msgspec.structs.replace(theory, warps=theory.max_warps, limiters=("warps",))
    assert run_text.limits(full) == ["not limited"]
    assert run_text.limits(None) == []


@pytest.mark.parametrize("width", [40, 50, 57, 58, 65, 77, 83, 100, 160])
def test_every_number_keeps_its_label_in_narrow_panels(width: int) -> None:
    model = model_of(scenes.gpu_session())
    run = model.runs[2]
    s = RunSubject(run, model.evidence(run), model.gpu, model.runs[1], False)
    (head,) = in_lines(s, width)
    assert head.cell_length <= width
    assert ("%" in head.plain.replace("± 0.3 %", "")) == ("of peak" in head.plain)
    if width >= 50:
        *bars, unknown = [m for m in run_text.meters(s, width) if m.plain.strip()]
        assert unknown.plain.startswith("not available") and unknown.plain.endswith(" % of peak"), "no measured peak rate"
        for part in bars:
            assert part.cell_length <= width
            said = part.plain[part.plain.rindex("%") + 1 :].strip().removeprefix("remaining tiles: ")
            assert (
                said in ("", "registers", "limited by registers", "limited by registers (40/thread)")
                or (said in ("whole run", "whole run, measured") and part.plain.startswith("achieved"))
                or (said.startswith("of ") and said.endswith(("peak", "peak; caches serve part")))
            )
    assert all(row.plain[run_text.label_cells(width) - 1] == " " for row in run_text.outside(s, width)), "labels end"
    throttled = Evidence(9, 512.0, 1710.0, None, None, 0x4)
    few = replace(run, done=events.RunDone(t=1.0, run=2, outcome="done", median=0.01, spread=0.001, count=3, indicative=True))
    told = [part.plain for part in run_text.remarks(s._replace(run=few, evidence=throttled), width)]
    assert all(len(part) <= width for part in told)
    assert any("average power 512 W, SM clock 1710 MHz" in part for part in told)


LIMITS = events.Limits(
    t=0.5,
    backend="cuda",
    forms=(events.FormLimit("float32", 13.96e12, 1980.0), events.FormLimit("int32", 16.36e12, 1980.0)),
    complete=True,
)


@pytest.mark.parametrize("width", [50, 58, 65, 77, 83, 100, 120, 160])
def test_percent_of_peak_comes_before_percent_of_peak_bandwidth(width: int) -> None:
    model = model_of([*scenes.gpu_session(), LIMITS])
    run = model.runs[2]
    limit = limit_of(model, run)
    assert limit is not None and run.rate is not None and limit.share == run.rate / limit.relaxations_per_second
    s = RunSubject(run, model.evidence(run), model.gpu, model.runs[1], False, limit)
    (head,) = in_lines(s, width)
    assert head.cell_length <= width
    assert ("of peak" in head.plain) or "%" not in head.plain.replace("± 0.3 %", "")
    if width >= 100:
        assert f"{units.percent(limit.share)} of peak" in head.plain
    meter = run_text.meters(s, width)[0]
    assert meter.cell_length <= width and units.percent(limit.share) in meter.plain
    assert ("FADD + FMNMX" in meter.plain) == (width >= 160) and (" MHz: float32" in meter.plain) == (width >= 120)
    assert not run_text.meters(s._replace(limit=None), width)[0].plain.startswith("% of peak")


def test_the_table_of_runs_shows_percent_of_peak_only_if_the_peak_is_measured() -> None:
    model = model_of(scenes.gpu_session())
    run = model.runs[2]
    assert history_cells(run, model, None)["of limit"].plain == ""
    model.apply(LIMITS)
    limit = limit_of(model, run)
    assert limit is not None
    assert history_cells(run, model, None)["of limit"].plain == units.percent(limit.share)
    narrower, wider = ({column.key for column, _ in history_columns(width)} for width in (120, 150))
    assert "of limit" in narrower and "of peak" not in narrower and {"of limit", "of peak"} <= wider


def test_a_run_too_short_for_counters_has_none() -> None:
    run = scenes.run(1, 1.0, scenes.experiment("naive"))
    s = subject([scenes.header(), scenes.GPU, *run])._replace(evidence=Evidence(3, None, 1710.0, None, None, 0))
    (unknown,) = [part.plain for part in run_text.meters(s, 100) if "DRAM throughput" in part.plain]
    assert unknown.startswith("not available")
    assert not any("average power" in part.plain or " W" in part.plain for part in run_text.remarks(s, 100))


def test_every_measured_stage_has_a_title() -> None:
    files = [*Path(measure.__path__[0]).glob("*.py"), Path(kernel_instance.__file__)]
    source = "".join(path.read_text() for path in files)
    names = set(re.findall(r'\bstage\("([^"]+)"', source))
    assert {"read", "graph", "clean", "phases"} <= names == set(STAGES)


@pytest.mark.parametrize(
    ("passes", "seconds", "words"),
    [
        (3, 0.2, "only 3 repetitions; 10 needed"),
        (1, 0.2, "only 1 repetition in 200 ms; 10 and 500 ms needed"),
        (12, 0.01, "only 120 ms of repetitions; 500 ms needed"),
        (300, 0.001, "only 300 ms of repetitions; 500 ms needed"),
    ],
)
def test_low_confidence_names_the_missing_repetitions_or_time(passes: int, seconds: float, words: str) -> None:
    told = scenes.run(1, 1.0, scenes.experiment("naive"), passes=passes, seconds=seconds)
    session = [scenes.header(), *told[:-1], replace(told[-1], indicative=True)]
    s = subject(session)
    assert run_text.progress(s, 100)[0].plain.startswith(f"low confidence: {words}")
    assert columns.outcome(model_of(session), s.run) == f"verified, low confidence: {words}"


def test_a_simulated_run_is_correct_only_after_its_verdict() -> None:
    told = scenes.run(1, 1.0, scenes.experiment("katz-kider", 16, simulated=True), backend="simulator")
    stopped = events.RunDone(t=9.0, run=1, outcome="cancelled")
    wrong = scenes.verdict("wrong", "wrong at (3, 4)")
    broken = [replace(wrong, run=1) if isinstance(e, events.Verdict) else e for e in told]
    for story, correct in ((told[:1], False), ([*told[:9], stopped], False), (broken, False), (told, True)):
        s = subject([scenes.header(), *story])
        (words,) = (row.plain for row in in_lines(s, 100))
        assert words == figure(s).label and words.startswith("simulated") and "not timed" in words
        assert ("correct" in words) == correct


@pytest.mark.parametrize(("again", "words"), [("a", "; a reruns it"), ("", "")])
def test_a_noisy_run_is_marked_and_names_the_key_that_reruns_it(again: str, words: str) -> None:
    told = scenes.run(1, 1.0, scenes.experiment("tiled-cpu", 512), seconds=0.3)
    busy = events.Telemetry(t=told[-1].t - 3.0, other_cpu_utilisation=0.6)
    session = [scenes.header(), *scenes.merged(told, [busy])]
    s = subject(session)._replace(again=again)
    assert run_text.progress(s, 100)[0].plain == f"noisy: other processes used 60 % of the CPU{words}"
    assert run_labels.outcome(s.run, model_of(session)) == "✓ verified · 16 rows · noisy"


@pytest.mark.parametrize(
    ("vertices", "words"),
    [((), ""), ((3,), "3 → 3"), ((3, 7), "3 → 7 → 3"), ((3, 7, 3), "3 → 7 → 3"), (tuple(range(9)), "0 → 1 → 2 → 3 → 4 → … → 0")],
)
def test_cycles_end_at_their_first_vertex(vertices: tuple[int, ...], words: str) -> None:
    assert run_labels.cycle(vertices) == words


def test_a_phase_names_its_bottleneck() -> None:
    s = subject(scenes.gpu_session())
    first, second, third = (phase.key for phase in s.run.phases)
    limiters = {first: "too few thread blocks", second: "not vectorised", third: "instruction issue and shared memory"}
    head, *rows = (row.plain for row in run_text.phases(s._replace(limiters=limiters), 118))
    assert [row[head.index("bottleneck") :].split("  ")[0] for row in rows] == [*limiters.values()]
    assert "instruction issue … ▆" in run_text.phases(s._replace(limiters=limiters), 80)[3].plain
    assert not any("memory" in row.plain for row in run_text.phases(s._replace(limiters=limiters), 60)), "no room"


def test_a_truncated_name_ends_with_an_ellipsis() -> None:
    assert [truncate("base cases", cells) for cells in (10, 9, 1)] == ["base cases", "base cas…", "…"]
    long = tuple(events.PhaseName(p.key, f"{p.title} of Floyd and Warshall") for p in scenes.PHASES)
    run = scenes.run(1, 1.0, scenes.experiment("katz-kider"))
    told = [msgspec.structs.replace(e, phases=long) if isinstance(e, events.RunStarted) else e for e in run]
    _, *rows = [row.plain for row in run_text.phases(subject([scenes.header(), scenes.GPU, *told]), 60)]
    assert rows and all(row[run_text.NARROW_LABEL - 1 : run_text.NARROW_LABEL + 1] == "… " for row in rows)


def test_long_lines_end_with_a_whole_clause() -> None:
    entry = notices.LogEntry(23.0, "run 2 finished: verified · fletcher c880, 16 rows equal Dijkstra's; same checksum as naive")
    assert (
        notices.LogLine(None).draw((entry, "l"), 90)[0].plain.endswith(" · fletcher c880, 16 rows equal Dijkstra's  l: all of it")
    )
    assert notices.LogLine(None).draw((entry, "l"), 66)[0].plain.endswith("verified · fletcher c880  l: all of it")
    assert notices.LogLine(None).draw((entry, "l"), 120)[0].plain.endswith("same checksum as naive")
    assert whole_clauses("onelongwordwithoutanend", 10) == "onelongwo…" and whole_clauses("short", 10) == "short"


def test_a_setting_without_a_column_distinguishes_runs_with_equal_columns() -> None:
    model, _ = load_model(resolve("h200-champion"))
    assert distinctions(model.runs.values()) == {17: "", 19: "negative 0.2"}
    assert "negative 0.2" in history_cells(model.runs[19], model, None, "negative 0.2")["result"].plain
