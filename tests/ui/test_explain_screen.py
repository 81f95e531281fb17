"""The Explain screen: roofline, phase table, and occupancy with its curves."""

import re

import msgspec
import pytest
import scenes
from apps import Replay, dashboard_of, replay_at_end, view_of
from builders import listed, model_of
from fake_live import FakeLive
from msgspec.structs import replace
from pressing import NARROW, WIDE, opened, press, proceed, settled
from pressing import keyed as shown
from recorded_sessions import LECTURE, SESSION

from fwtui.analysis.bottleneck import IssueSlots, reason_of
from fwtui.analysis.phase_table import roofs_of
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.event import Cache
from fwtui.stream.listing import CodeLine, Listing
from fwtui.stream.requests import Hardware
from fwtui.tui.app.app import FwtuiApp
from fwtui.tui.charts.chart import Chart
from fwtui.tui.charts.drawing import column_of, draw
from fwtui.tui.explain import roofline
from fwtui.tui.explain.occupancy_panel import OccupancyPanel, OccupancySubject
from fwtui.tui.explain.panels import TITLES
from fwtui.tui.explain.roofline import figure
from fwtui.tui.explain.warp_panel import WarpHead, warp_subject
from fwtui.tui.textual_internals import strips

LIMITS = events.Limits(
    t=0.02,
    backend="cuda",
    forms=(events.FormLimit("float32", 1.39e13, None), events.FormLimit("float32-two", 1.68e13, None)),
    copy_bytes_per_second=4.2e12,
    complete=True,
)


def test_missing_compiler_facts_are_not_available() -> None:
    rows = [row.plain for row in OccupancyPanel(None).draw(OccupancySubject(True, capability=(9, 0)), 60)]
    assert [row.split()[-1] for row in rows if row.startswith(("theoretical", "achieved"))] == ["n/a", "n/a"]


def test_the_roof_of_memory_begins_at_the_axis() -> None:
    model = load_model(SESSION)[0]
    drawn, _ = figure(model, model.run)
    assert drawn.rules and all(rule.short and len(rule.short) < len(rule.label) for rule in drawn.rules)
    (roof,) = [series for series in drawn.series if series.limit]
    low = drawn.x.low
    assert low is not None and low == roof.xs[0]
    assert all(x > low for series in drawn.series if not series.limit for x in series.xs if x is not None)


async def test_v_shows_one_panel_after_the_other_and_the_cursor_reads_curves(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        every = await shown(pilot, "4")
        assert "50.0 % 32/64 warps" in every and "256 threads · 40 registers/thread" in every
        words_of = {"roofline": "ROOFLINE", "ledger": "SPEED OF LIGHT", "occupancy": "OCCUPANCY  ", "warps": "WARP STALL REASONS"}
        for panel, words in words_of.items():
            text = await shown(pilot, "v")
            assert words in text and f" {TITLES[panel]} " in text
            assert sum(other in text for other in ("ROOFLINE", "SPEED OF LIGHT  ", "OCCUPANCY  ", "WARP STALL REASONS")) == 1
        assert await shown(pilot, "v") == every
        await pilot.resize_terminal(*NARROW)
        seen = [await shown(pilot), await shown(pilot, "v"), await shown(pilot, "v")]
        assert ["ROOFLINE" in seen[0], "unknown" in seen[1], "registers/thread" in seen[2]] == [True] * 3
        assert "roofline time" in seen[1] and "< 0.1 %" not in seen[0]
        assert "no PC samples of this run" in await shown(pilot, "v")
        assert await shown(pilot, "v") == seen[0]


def test_the_panel_names_the_line_with_most_samples_of_the_main_reason() -> None:
    hot, other = CodeLine("a.py", 8, "via", {"wait": 9}), CodeLine("a.py", 9, "best", {"barrier": 30})
    told = events.WarpSamples(t=99.0, run=1, op="rest", reasons={"barrier": 30, "wait": 10}, hot=hot)
    model = model_of([*scenes.gpu_session(), *listed(Listing(lines=(hot, other)), told)])
    subject = warp_subject(model, model.runs[1], "rest", 0)
    assert subject.hotspots == [1, 0]
    assert subject.stall_text == "Warps stall on barrier (waits for its block) in 75 % of PC samples, most at a.py:9."


def test_issued_samples_issue_slots_and_equal_bounds_are_one_sentence_each() -> None:
    model = load_model(shipped_folder() / "h200-n4096-naive-blocked.fwt.jsonl.gz")[0]
    text = " ".join(row.plain for row in WarpHead(None).draw(warp_subject(model, model.runs[2], "rest", 0), 160))
    assert (
        "A warp issued in 6.3 % of its samples; with 15.4 warps per scheduler that fills 96.7 % of the issue slots, 74.6 %"
        in text
    )
    assert text.count("at most") == 1 and "these stalls: at most 1.05x, as compute is 94.8 % busy." in " ".join(text.split())
    uncounted, slots = replace(model.runs[1], counted=()), roofs_of(model, model.runs[1]).issue_slots
    (samples,) = uncounted.warps
    achieved, theory = (reason_of(uncounted, one, samples).slots for one in (slots, IssueSlots(slots.per_second)))
    assert "with 11.0 warps per scheduler that fills 43.8 % of the issue slots; the measured rate needs 52.0 %" in achieved
    assert theory.endswith("with at most 16.0 warps per scheduler that fills at most 63.7 % of the issue slots")


def test_a_run_without_a_time_is_named_and_lacks_no_cost_model_before_its_plan() -> None:
    model = model_of(scenes.gpu_session())
    run = replace(model.runs[2], done=None, samples=(), relaxations=0, device_bytes=0)
    assert figure(model, run)[0].empty == "run 2 has no time yet" and "cost model" not in roofline.missing(model, run, "")


async def test_a_sampled_run_shows_its_hotspot_and_the_changes_from_its_baseline(replay_of: Replay) -> None:
    both = scenes.sampled_session(1, barrier=50, selected=50), scenes.sampled_session(short_scoreboard=60, selected=40)
    app = replay_of([*both[0], *both[1][-3:]])
    async with opened(app, size=NARROW) as pilot:
        text = await shown(pilot, "4")
        assert "Warps stall on short scoreboard (shared memory) in 60 % of PC samples" in text
        assert " 100 % ██████████ S    9  best = min(best, via)" in text and "3 of 4 instructions are LDS, 1 FMNMX" in text
        text = await shown(pilot, "down", "enter")
        assert "LDS R1, [R2]" in text and "address ▾" in text and "samples ▾" in await shown(pilot, "s")
        assert "LDS R1" not in await shown(pilot, "enter")
        await pilot.resize_terminal(*WIDE)
        text = await shown(pilot)
        assert all(words in text for words in ("ROOFLINE", "WARP STALL REASONS  run 3", "OCCUPANCY", "SPEED OF LIGHT  run 3"))
        assert "WARP STALL REASONS" not in await shown(pilot, "j"), "only where they were sampled"
        text = await shown(pilot, "J", "3", "pagedown")
        assert "run 3  remaining tiles  against run 1" in text
        assert "run 1   Warps stall on barrier (waits for its block) in 50 % of PC samples" in text
        assert re.search(r"reasons +0 % +60 %  S short scoreboard .*\n +50 % +0 %  B barrier .*\n +50 % +40 %  I selected", text)
        assert "1 of 4 instructions" not in text


async def test_other_runs_are_explained(replay_of: Replay) -> None:
    app = replay_of(scenes.gpu_session())
    async with opened(app) as pilot:
        assert "run 3  Katz-Kider" in await shown(pilot, "4")
        text = await shown(pilot, "j", "j")
        assert "SPEED OF LIGHT  run 1  Naive" in text and app.view is not None and app.view.selected == 1
        assert "run 1  Naive" in await shown(pilot, "j")  # there is none before it
        assert "run 2  Katz-Kider" in await shown(pilot, "J")
        await press(pilot, "x")
        chart = app.screen.query_one("#roof", Chart)
        assert chart.has_focus
        text = await shown(pilot, "home")
        assert " ▲ 302 G · relax/byte of DRAM 0.591 · run 1 Naive" in text
        assert "SPEED OF LIGHT  run 1 " in await shown(pilot, "enter")
        stop = chart.drawing.stops[-1]
        place = (chart.drawing.left + column_of(stop.share, chart.drawing.width), chart.drawing.top + stop.row)
        await pilot.click(chart, offset=place)
        assert "SPEED OF LIGHT  run 2 " in await shown(pilot) or "SPEED OF LIGHT  run 3 " in await shown(pilot)


async def test_an_occupancy_names_its_part_and_a_full_one_is_not_limited_on_both_screens() -> None:
    async with opened(replay_at_end(shipped_folder() / "h200-n4096-naive-blocked.fwt.jsonl.gz"), size=(120, 50)) as pilot:
        text = await settled(pilot)
        assert "remainder: not limited" in text and re.search(r"achieved occupancy .*89.9 % whole run, measured", text)
        head = next(row for row in text.splitlines() if row.startswith(" PER-PHASE TIMES"))
        assert re.fullmatch(r" PER-PHASE TIMES bottleneck {9,}sum 32.5 ms, timers included +time +share *", head)
        text = await shown(pilot, "4")
        assert re.search(r"limiter +not limited", text) and re.search(r"achieved .*96.0 % this function", text)


async def test_the_sentence_of_the_longest_phase_is_whole_next_to_other_panels_and_all_are_in_its_own() -> None:
    async with opened(replay_at_end(LECTURE, "explain"), size=(120, 40)) as pilot:
        text = re.sub(r"\s+", " ", await settled(pilot))
        longest = "remainder instruction issue and shared memory: both 95 % busy, most at k45_katz_kider.py:13"
        assert longest in text and "panels instruction latency: " not in text and "roofline time =" not in text
        assert "issue-rate ceiling 3.01 Trelax/s of the loop alone" in text
        text = re.sub(r"\s+", " ", await settled(pilot, "v", "v", "v"))
        assert longest in text and "panels instruction latency: " in text and "roofline time = max(" in text


def test_the_row_of_the_run_has_its_rate_not_that_of_a_tick() -> None:
    model, _ = load_model(resolve("h200-density"))
    (row,) = (row for row in draw(figure(model, model.runs[1])[0], 68, 11).rows if any("-strong" in kind for _, kind in row))
    assert "".join(text for text, _ in row).startswith("15.1 T┤"), "10 T before"


def test_the_roofline_of_one_gpu_has_no_runs_of_another() -> None:
    told = [event for run in (1, 2) for event in scenes.run(run, run, scenes.experiment("naive"))]
    model = model_of(replace(event, gpu=event.run - 1) if isinstance(event, events.RunStarted) else event for event in told)
    for number in (1, 2):
        assert figure(model, model.runs[number])[1] == ((number,),)


async def test_ops_are_cycled_and_unreliable_runs_struck_through(replay_of: Replay) -> None:
    told = scenes.sampled_session(wait=0)
    first = next(e for e in told if isinstance(e, events.Occupancy) and e.run == 3)
    told.insert(told.index(first), msgspec.structs.replace(first, op="pivot", registers=90, warps=16))
    app = replay_of([msgspec.structs.replace(e, verdict="wrong") if isinstance(e, events.Verdict) else e for e in told])
    async with opened(app) as pilot:
        text = await shown(pilot, "4")
        assert "OCCUPANCY  remaining tiles" in text and "✖" in text and "unreliable" in text and "✗ INCORRECT" in text
        segments = [segment for strip in strips(app.screen) for segment in strip if "62.4 ms" in segment.text]
        assert segments and all(segment.style is not None and segment.style.strike for segment in segments)
        text = await shown(pilot, "O")
        assert "OCCUPANCY  pivot" in text and "25.0 % 16/64 warps" in text and "90 registers/thread" in text
        assert "OCCUPANCY  remaining tiles" in await shown(pilot, "O")
        await pilot.resize_terminal(*NARROW)
        text = await shown(pilot, *["v"] * 4)
        assert "no PC samples of this run" in text and "omputes" not in text, "samples of nothing are none"


def on_cpu(kernel: str, moved: int) -> list[events.Event]:
    """Return a session of one CPU run with limits, loop and CPU use."""
    header = scenes.header()
    caches = (Cache(level=2, bytes=1 << 20), Cache(level=3, bytes=32 << 20, cores=16))
    header = replace(header, machine=replace(header.machine, caches=caches))
    levels = (events.LevelLimit(2, 4e11, 2e11), events.LevelLimit(3, 1e11, 5e10, noisy=True), events.LevelLimit(0, 2e10, 1e10))
    limits = events.Limits(t=0.1, backend="cpu", forms=(events.FormLimit("float32", 1e12),), levels=levels, complete=True)
    made = scenes.run(1, 1.0, scenes.experiment(kernel, 1024), title=kernel, backend="cpu", seconds=0.5, passes=3)
    made = [replace(one, device_bytes=moved) if isinstance(one, events.Planned) else one for one in made]
    loop = events.CpuLoop(t=1.1, run=1, op="rest", lanes=16, item_bits=32, relaxations=512, mix={"vaddps": 32, "vminps": 32})
    use = events.CpuUse(t=2.0, run=1, busy=4.0, usable=16, clock_mhz=2500.0)
    return [header, limits, *made[:1], loop, *made[1:-1], use, made[-1]]


@pytest.mark.parametrize(("kernel", "moved"), [("tiled-cpu", 10**9), pytest.param("scipy", 0, marks=pytest.mark.slow)])
async def test_a_cpu_run_has_its_cores_and_caches_and_nothing_of_a_gpu(replay_of: Replay, kernel: str, moved: int) -> None:
    app = replay_of(on_cpu(kernel, moved))
    async with opened(app, "4") as pilot:
        for size in (WIDE, NARROW):
            await pilot.resize_terminal(*size)
            text = await shown(pilot)
            busy = f"{1.0 if kernel == 'scipy' else 4.0} of 16 busy"
            for words in ("CORES AND CACHES", busy, "16 relaxations per instruction (512 bits)", "(noisy)  ◀ matrix"):
                assert words in text, words
            assert not app.screen.query_one(OccupancyPanel).region
            assert ("ROOFLINE" in text) == (moved > 0 and size == WIDE), "a roofline without a place for the run would be blank"
            titles = [await shown(pilot, "v") for _ in range(3 + (moved > 0))]
            assert not any("OCCUPANCY" in text or "WARPS" in text for text in titles)


async def test_simulated_and_cpu_runs_name_panels_that_do_not_apply(replay_of: Replay) -> None:
    app = replay_of(scenes.cpu_session())
    async with opened(app) as pilot:
        text = await shown(pilot, "4")
        assert text.count("simulated: correct, not timed") >= 2 and "occupancy needs a GPU" in text
        text = await shown(pilot, "j")
        assert "run 1  Tiled CPU" in text and "peaks not measured in this recording" in text
        assert "n/a" not in text and "roofline time" not in text and "measured" in text, (
            "what is known of nothing takes no column"
        )


async def test_explain_follows_a_live_run() -> None:
    live = FakeLive(scenes.GPU, pace=12)
    app = dashboard_of(live, Experiment(kernel="katz-kider", n=1024), found=Hardware())
    async with opened(app) as pilot:
        before = await shown(pilot, "4")
        assert "SPEED OF LIGHT" in before and "no run yet" in before and "ROOFLINE" not in before
        await press(pilot, "1", "r")
        app.tick()
        await shown(pilot, "4")
        assert "no per-phase times yet" in await shown(pilot), "once the place has heard of the run"
        for _ in range(8):
            app.tick()
        text = await shown(pilot)
        assert "SPEED OF LIGHT  run 1" in text and "remaining tiles" in text and re.search(r"run 1 katz-kider \S+ [GT] ▥", text)


async def test_a_key_measures_peak_rates(live: FakeLive) -> None:
    app = dashboard_of(live)
    async with opened(app) as pilot:
        await press(pilot, "r")
        app.tick()
        text = await shown(pilot, "4")
        assert "not measured yet; press D" in text
        live.pace = 1
        app.tick()  # nothing is left of the run
        assert "measuring the peak rates of this CPU" in await shown(pilot, "D")
        app.tick()
        assert "measuring the peak rates of this CPU: 1 of " in await shown(pilot)
        assert "run 2 starts after the measurement; c cancels both" in await shown(pilot, "1", "r")
        live.pace = 3
        app.tick()
        assert live.busy and view_of(app).limits_device is None and "peak rates of this CPU: float32 1.00 T" in await shown(pilot)
        live.pace = 1000
        app.tick()
        await press(pilot, "4")
        text = await shown(pilot)
        assert "not measured" not in text and "measuring what" not in text and not live.busy


def test_a_kernel_without_a_cost_model_is_not_in_the_roofline() -> None:
    told = scenes.run(1, 1.0, scenes.experiment("naive"), title="SciPy")
    model = model_of(replace(event, device_bytes=0) if isinstance(event, events.Planned) else event for event in told)
    drawn, points = roofline.figure(model, model.runs[1])
    assert not points and drawn.empty.startswith("SciPy has no cost model of its bytes")


async def test_counters_are_requested_and_shown(dashboard: FwtuiApp, live: FakeLive) -> None:
    async with opened(dashboard, "4", "h") as pilot:
        assert not live.counted
        live.start(live.settled(Experiment(kernel="serial", n=12)))
        await proceed(pilot)
        await pilot.press("h")
        assert live.counted == [1]
        live.emit(events.Counters(t=live.now, run=1, op="rest", values={"occupancy": 0.51, "l2_hit_rate": 0.75}))
        await proceed(pilot)
        text = await shown(pilot, "h")
    rows = {line.strip(" │")[:18]: line for line in text.split("\n")}
    assert "profiled: not timings" in text and "51.0 %" in rows["achieved occupancy"] and "75.0 %" in text
    assert "bank conflicts" not in text, "what was not measured is not listed"


async def test_a_replay_shows_its_counters(replay_of: Replay) -> None:
    told = scenes.cpu_session()
    run = max(e.run for e in told if isinstance(e, events.RunDone))
    told.append(events.Counters(t=told[-1].t, run=run, op="all", values={"occupancy": 0.25}))
    async with opened(replay_of(told)) as pilot:
        assert "25.0 %" in await shown(pilot, "4", "h")
        assert "25.0 %" not in await shown(pilot, "h"), "again: as before"
