"""The phase table: roofline times and the bottleneck of each phase."""

import msgspec
import pytest
import scenes
from builders import model_of, occupancy, run_events
from recorded_sessions import SESSION

from fwtui.analysis.data_sheet import shared_bytes_per_second
from fwtui.analysis.phase_table import LAUNCH_SECONDS, UNKNOWN, formula, phase_rows, roofs_of, slowest_line, tiles_per_launch
from fwtui.sessions.library import load_model, recorded_ladder
from fwtui.stream import events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui.tui.explain.roofline import figure
from fwtui.tui.widgets import run_text
from fwtui.tui.widgets.run_text import RunSubject

PEAK = 4.8e12
GPU = msgspec.structs.replace(scenes.GPU, peak_bytes_per_second=PEAK)


def limits(rate: float | None, backend: str = "cuda", copy: float | None = 4e12, clock: float | None = None) -> events.Limits:
    form = events.FormLimit("float32", rate, clock)
    return events.Limits(t=0.02, backend=backend, forms=(form,), copy_bytes_per_second=copy, complete=True)


def modelled(
    parts: tuple[events.Part, ...],
    *told: events.Event,
    kernel: str = "katz-kider",
    backend: str = "cuda",
    n: int = 4096,
    shared: int = 0,
) -> tuple[Model, Run]:
    """Return a model with a run whose instrumented repetition has these parts, and the run."""
    e, about = scenes.experiment(kernel, n), {"backend": backend, "phases": scenes.PHASES}
    run = run_events(e, occupancy(shared_bytes=shared), parts=parts, **about)
    model = model_of([scenes.header(), GPU, *told, *run])
    return model, model.runs[1]


def part(phase: str, seconds: float, launches: int = 1, relaxations: int = 0, moved: int = 0) -> events.Part:
    return events.Part(phase=phase, seconds=seconds, launches=launches, relaxations=relaxations, device_bytes=moved)


def test_expected_time_is_the_slower_of_bytes_and_relaxations() -> None:
    model, run = modelled(
        (part("rest", 0.01, 10, 10**10, 24 * 10**9), part("panels", 0.02, 10, 10**11, 48 * 10**8)), limits(1e13)
    )
    rest, panels, total = phase_rows(model, run)
    assert rest.memory_seconds == pytest.approx(0.005) and rest.compute_seconds == pytest.approx(0.001)
    assert rest.roofline_seconds == pytest.approx(0.005) and rest.share == pytest.approx(0.5)
    assert panels.roofline_seconds == pytest.approx(0.01) and panels.share == pytest.approx(0.5)
    assert (total.launches, total.relaxations, total.device_bytes) == (20, 11 * 10**10, 288 * 10**8)
    assert total.seconds == pytest.approx(0.03) and total.roofline_seconds == pytest.approx(0.011)
    known = roofs_of(model, run)
    assert formula(known, rest) == "max(24.0 GB / 4.80 TB/s, 10.0 Grelax / 10.0 Trelax/s) = max(5.00 ms, 1.00 ms)"


def unknown(memory: int, compute: int) -> str:
    return f"unknown: device memory {memory} % of its bandwidth (model), compute {compute} % of its measured peak rate"


BEYOND = (
    "unknown: it requests 2.00x the bandwidth of device memory (model): caches serve the rest, "
    "compute 1 % of its measured peak rate"
)


@pytest.mark.parametrize(
    ("one", "rate", "shared", "words"),
    [
        (part("rest", 0.01, 100, 10**9, 45 * 10**9), 1e13, 0, unknown(94, 1)),
        (part("rest", 0.01, 100, 8 * 10**10, 10**9), 1e13, 0, "arithmetic pipe: 80 % of the measured peak rate"),
        (part("rest", 0.01, 100, 10**9, 96 * 10**9), 1e13, 0, BEYOND),
        (part("rest", 0.01, 128, 2 * 10**10, 10**9), 1e14, 12288, "shared memory: 81 % of its bandwidth (model, data sheet)"),
        (part("rest", 0.01, 128, 5 * 10**10, 10**9), 1e14, 12288, unknown(2, 5)),
        (
            part("rest", 0.01, 3000, 10**9, 10**9),
            1e13,
            0,
            "launch overhead: 3,000 launches of 3.33 us; an empty one takes up to 3.00 us",
        ),
        (part("pivot", 0.01, 128, 128 * 32**3, 10**6), 1e13, 0, "too few thread blocks: 1 tile, 132 SMs"),
        (part("panels", 0.01, 128, 60 * 128 * 32**3, 10**6), 1e13, 0, "too few thread blocks: 60 tiles, 132 SMs"),
        (part("rest", 0.01, 128, 10**10, 10**9), 1e14, 0, unknown(2, 1)),
        (part("rest", 0.01, 128, 10**10, 10**9), None, 0, "unknown: device memory 2 % of its bandwidth (model)"),
        (part("rest", 0.0, 128, 10**10, 10**9), 1e13, 0, "unknown, too short to measure"),
    ],
)
def test_the_bottleneck_is_a_sentence(one: events.Part, rate: float | None, shared: int, words: str) -> None:
    model, run = modelled((one,), limits(rate), shared=shared)
    (line,) = phase_rows(model, run)
    assert str(line.limiter.sourced) == words and "(" not in str(line.limiter)


@pytest.mark.parametrize(
    ("shares", "shared", "words"),
    [
        ((0.8, 0.8, 0.3), 0, "device memory: 80 % busy (counters)"),
        ((0.1, 0.9, 0.3), 0, "caches: 90 % busy (counters)"),
        ((0.1, 0.9, 0.3), 9e12, "shared memory: 90 % busy (counters)"),
        ((0.1, 0.9, 0.95), 9e12, "instruction issue and shared memory: 95 % and 90 % busy (counters)"),
        ((0.1, 0.3, 0.9), 9e12, "instruction issue: 90 % busy (counters)"),
        ((0.1, 0.3, 0.7), 9e12, "compute throughput: 70 % busy (counters)"),
        ((0.1, 0.6, 0.7), 9e12, "compute throughput and shared memory: 70 % and 60 % busy (counters)"),
        ((0.5, 0.5, 0.4), 0, "latency: compute 40 % busy, memory 50 % busy (counters); achieved occupancy only 12 %"),
    ],
)
def test_counters_say_which_unit_is_busiest(shares: tuple[float, ...], shared: float, words: str) -> None:
    names = ("dram_share", "memory_share", "compute_share")
    told = {**dict(zip(names, shares, strict=True)), "occupancy": 0.12, "global_load_bytes_per_second": 1e12}
    counters = events.Counters(t=3.0, run=1, op="rest", values=told | {"shared_load_bytes_per_second": shared})
    model, run = modelled((part("rest", 0.01, 128, 128 * 200 * 32**3, 45 * 10**9),), limits(1e13))
    model.apply(counters)
    (line,) = phase_rows(model, model.runs[run.id])
    assert str(line.limiter.sourced) == words and "(" not in str(line.limiter)


def test_a_measured_bandwidth_comes_before_that_of_the_data_sheet() -> None:
    told = msgspec.structs.replace(limits(1e14), levels=(events.LevelLimit(1, 3e13),))
    model, run = modelled((part("rest", 0.01, 128, 2 * 10**10, 10**9),), told, shared=12288)
    (line,) = phase_rows(model, run)
    assert str(line.limiter.sourced) == "shared memory: 90 % of its bandwidth (model)"


@pytest.mark.parametrize(("kernel", "phase", "conflicts"), [("katz-kider", "rest", 0.004), ("blocked-vector", "panels", 0.41)])
def test_the_roof_of_shared_memory_counts_bank_conflicts(kernel: str, phase: str, conflicts: float) -> None:
    """Bank conflicts are those of the profiler, also for a run of the same code without counters."""
    ladder = recorded_ladder()
    assert ladder is not None
    counted = next(run for run in ladder.runs.values() if run.experiment.kernel == kernel)
    told = counted.counters[phase]
    assert told["shared_load_conflicts"] / told["shared_load_wavefronts"] == pytest.approx(conflicts, abs=0.005)
    moved = told["seconds"] * (told["shared_load_bytes_per_second"] + told["shared_store_bytes_per_second"])

    def by_shared(run: Run) -> float | None:
        again = ladder.frozen()
        again.runs[run.id] = run
        return next(one for one in phase_rows(again, run) if one.key == phase).shared_seconds

    known = roofs_of(ladder, counted).shared_bytes_per_second or 0.0
    part = next(one for one in counted.phases if one.key == phase)
    assert by_shared(counted) == pytest.approx(moved / known * part.relaxations / told["relaxations"])
    slowest = slowest_line(phase_rows(ladder, counted))
    drawn, _ = figure(ladder, counted)
    (rule,) = (one for one in drawn.rules if one.label.startswith("shared-memory"))
    assert slowest is not None and slowest.shared_seconds and rule.value == slowest.relaxations / slowest.shared_seconds
    uncounted = msgspec.structs.replace(counted, counted=())
    assert by_shared(uncounted) == by_shared(counted)
    other = msgspec.structs.replace(counted.experiment, tile=24)
    assert by_shared(msgspec.structs.replace(uncounted, experiment=other)) is None, "another code"


@pytest.mark.parametrize(
    ("rate", "copy", "moved", "expected", "words"),
    [
        (2e9, 3e10, 3 * 10**10, 1.0, "memory: 100 % of its bandwidth (model)"),
        (1e13, 1e13, 10**9, 1e-4, "unknown: memory 0.0 % of its bandwidth (model), compute 0.0 % of its measured peak rate"),
    ],
)
def test_a_cpu_run_has_the_roofs_of_a_cpu(rate: float, copy: float, moved: int, expected: float, words: str) -> None:
    told = limits(rate, "cpu", copy=copy)
    model, run = modelled((part("rest", 1.0, 1, 10**9, moved),), told, kernel="tiled-cpu", backend="cpu", n=1000)
    known = roofs_of(model, run)
    assert known.bytes_per_second == copy and known.relaxations_per_second == rate and known.shared_bytes_per_second is None
    (line,) = phase_rows(model, run)
    assert line.roofline_seconds == pytest.approx(expected) and str(line.limiter.sourced) == words


def test_without_a_roof_nothing_is_expected_and_nothing_is_zero() -> None:
    model, run = modelled((part("rest", 0.01, 128, 10**10, 10**9),))
    device = msgspec.structs.replace(scenes.GPU, peak_bytes_per_second=None, multiprocessors=None)
    model.devices = {model.watched: device}
    (line,) = phase_rows(model, run)
    assert line.roofline_seconds is None and line.share is None
    assert line.limiter[:2] == (UNKNOWN, "the peak rates of this device are not measured")
    assert formula(roofs_of(model, run), line) == "its peak rate is unknown"


def test_simulated_runs_and_runs_without_phases_have_no_phase_table() -> None:
    model, run = modelled((part("rest", 1.0),), backend="simulator", n=16)
    assert phase_rows(model, run) == () and roofs_of(model, run) == roofs_of(model, run).__class__()
    fresh = model_of(scenes.run(1, 1.0, scenes.experiment("katz-kider"), until="clean"))
    assert phase_rows(fresh, fresh.runs[1]) == ()


def test_a_recorded_run_has_its_known_phase_table() -> None:
    model = load_model(SESSION)[0]
    naive, tiled = model.runs[4], model.runs[8]
    (all_rounds,) = phase_rows(model, naive)
    assert str(all_rounds.limiter.sourced) == "unknown: device memory 46 % busy (GPM)"
    assert all_rounds.share == pytest.approx(0.46, abs=0.005)
    subject = RunSubject(naive, model.evidence(naive), model.gpu_of(naive), None, False)
    effective, dram = (row.plain for row in run_text.meters(subject, 120) if "TB/s" in row.plain)
    assert "92.1 % of" in effective and "46.0 % of" in dram and effective.endswith("peak; caches serve part")
    pivot, panels, rest, total = phase_rows(model, tiled)
    assert tiles_per_launch(tiled, pivot) == 1 and tiles_per_launch(tiled, panels) == 2 * 127
    assert tiles_per_launch(tiled, rest) == 127**2 and tiles_per_launch(naive, all_rounds) is None
    assert total.relaxations == tiled.relaxations and total.device_bytes == tiled.device_bytes
    assert pivot.launches * LAUNCH_SECONDS < pivot.seconds


def test_requests_beyond_device_memory_are_compared_with_the_measured_l2_cache() -> None:
    told = msgspec.structs.replace(limits(1e13), levels=(events.LevelLimit(1, 2e13), events.LevelLimit(2, 6e12)))
    model, run = modelled((part("rest", 0.01, 100, 10**9, 54 * 10**9),), told)
    assert shared_bytes_per_second(scenes.GPU) == pytest.approx(128 * 132 * 1.98e9), "128 bytes per clock"
    (line,) = phase_rows(model, run)
    assert str(line.limiter.sourced) == "L2 cache: 90 % of its measured bandwidth (model)"
    whole = model_of([scenes.header(), GPU, told, *scenes.run(1, 1.0, scenes.experiment("naive"))])
    drawn, _ = figure(whole, whole.runs[1])
    slopes = {one.name: one.ys[0] / one.xs[0] for one in drawn.series if one.limit}  # type: ignore[operator]
    assert slopes == pytest.approx({"L2 cache 6.00 TB/s": 6e12, "memory 4.80 TB/s": 4.8e12})
    assert [rule.value for rule in drawn.rules] == [1e13], "no roof of shared memory before its accesses are counted"
