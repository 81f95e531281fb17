"""Summary of a run: speedup and its causes, the bottleneck, and the next rung to try."""

from typing import Any

import msgspec
import pytest
from builders import header, model_of, run_events

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.explanation import COUNTERS, LIMITS, explain
from fwtui.analysis.run_summary import Assessment, summarise
from fwtui.commands.support.printing import runs
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.events import Machine
from fwtui.stream.model import Model
from fwtui_kernels.probes.probe_forms import right_for

N = 1024
GPU = events.Device(t=0.0, present=True, name="G", peak_bytes_per_second=4e12, multiprocessors=132, max_clock_mhz=1980.0)


def ran(run: int, kernel: str, seconds: float, moved: int, counters: dict[str, float] | None = None, **given: Any) -> list[Any]:
    """Return a verified run of one phase; `moved` is the model's bytes per relaxation, times 1,000."""
    about = {name: given.pop(name) for name in ("backend", "verdict") if name in given}
    phases, passes = given.pop("phases", seconds), [seconds * (1 + place * 1e-4) for place in range(12)]
    part = events.Part(phase="rest", seconds=phases, launches=8, relaxations=N**3, device_bytes=moved * N**3 // 1000)
    found = run_events(Experiment(kernel=kernel, n=N, **given), run=run, passes=passes, parts=[part], seconds=seconds, **about)
    return [*found, *([events.Counters(t=4.0, run=run, op="rest", values=counters)] if counters else [])]


SLOW = {"integer_instructions_per_relaxation": 35.0, "dram_share": 0.1, "memory_share": 0.95, "compute_share": 0.95}
NAIVE = ran(1, "naive", 0.08, 16_000, SLOW)
KATZ = ran(2, "katz-kider", 0.01, 500, {**SLOW, "integer_instructions_per_relaxation": 4.5})
NEXT = ran(3, "optimized", 0.004, 500)


def model(*runs_told: list[Any], cores: int = 2, device: events.Device = GPU) -> Model:
    return model_of([header(machine=Machine(cpu="c", cores=cores)), device, *(event for one in runs_told for event in one)])


def verdict_of(made: Model, recorded: Model | None = None) -> Assessment:
    base, *others = made.runs.values()
    run = others[0] if others else base
    return summarise(ComparedRun(made, run), ComparedRun(made, base), recorded)


def test_two_runs_of_one_graph_give_speedup_reason_and_next_rung() -> None:
    found = verdict_of(model(NAIVE, KATZ, NEXT))
    assert found.headline == "Katz-Kider: 8.00x speedup over Naive" and found.times == "8.00x" and found.same_answer
    bytes_requested, instructions = found.why
    assert bytes_requested == "32x fewer bytes requested: 17.2 GB -> 537 MB"
    assert instructions == "7.8x fewer integer instructions: 35.0 -> 4.50 per relaxation"
    assert found.now() == "instruction issue and caches: both 95 % busy"
    assert found.then == "Optimized & blocked: 10.0 ms -> 4.00 ms (run 3)"


def test_units_that_are_busy_far_below_the_peak_rate_do_other_work() -> None:
    model, _ = load_model(resolve("h200-n4096-naive-blocked"))
    found = summarise(ComparedRun(model, model.runs[2]), ComparedRun(model, model.runs[1]))
    assert found.share is not None and found.share < 0.2
    assert found.now() == (
        "instruction issue and shared memory in the remainder phase (93 % of the time): both 95 % busy, "
        "most at k45_katz_kider.py:13, mainly loads and addresses"
    )
    assert found.now(sourced=True).startswith(
        "instruction issue and shared memory in the remainder phase (93 % of the time): both 95 % busy (c"
    )


def test_the_rung_that_has_not_run_gains_what_the_recorded_ladder_does_with_the_cores_here() -> None:
    recorded = model(ran(1, "katz-kider", 0.012, 500), ran(2, "optimized", 0.006, 500))
    assert verdict_of(model(NAIVE, KATZ), recorded).then == (
        "Optimized & blocked: 10.0 ms -> 6.00 ms (recorded on this kind of GPU)"
    )
    other = model(NAIVE, KATZ, device=events.Device(t=0.0, present=True, name="H"))
    assert verdict_of(other, recorded).then == "Optimized & blocked: 10.0 ms -> 5.00 ms (predicted from G)"
    slower = model(ran(1, "katz-kider", 0.03, 500), ran(2, "optimized", 0.03, 500))
    assert "Optimized" not in verdict_of(model(NAIVE, KATZ), slower).then
    assert verdict_of(model(NAIVE, KATZ)).then.startswith("Optimized & blocked: 4.50 integer instructions"), "made up is none"
    recorded = model(ran(1, "serial", 1.6, 12_000, backend="cpu"), ran(2, "tiled-cpu", 0.01, 500, backend="cpu"), cores=16)
    alone = verdict_of(model(ran(1, "serial", 1.0, 12_000, backend="cpu"), cores=2), recorded)
    assert alone.headline == "Serial takes 1.00 s" and alone.comparison is None and alone.why == ()
    assert alone.next is not None and alone.next.kernel == "tiled-cpu" and alone.next.seconds == pytest.approx(0.05)


def test_the_fastest_run_of_the_session_comes_after_the_hints_and_one_of_another_type_never() -> None:
    fast = ran(3, "look-ahead", 0.001, 500)
    made = model(ran(1, "naive", 0.08, 16_000), ran(2, "register-tiled", 0.002, 500), fast)
    assert verdict_of(made).then == "Look-ahead: 2.00 ms -> 1.00 ms (run 3)"
    other = ran(3, "look-ahead", 0.001, 500, dtype="int16")
    assert verdict_of(model(ran(1, "naive", 0.08, 16_000), ran(2, "register-tiled", 0.002, 500), other)).then == ""


@pytest.mark.parametrize("change", [{"verdict": "wrong"}, {"verdict": "unverified"}])
def test_incorrect_runs_are_neither_compared_nor_recommended(change: dict[str, Any]) -> None:
    found = verdict_of(model(NAIVE, ran(2, "katz-kider", 0.01, 500, **change)))
    assert found.comparison is None and found.times == "" and "Naive" not in found.headline
    assert "run 3" not in verdict_of(model(NAIVE, KATZ, ran(3, "optimized", 0.004, 500, **change))).then


def test_a_printed_table_ends_with_the_verdict_on_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    printed = runs(model(NAIVE, KATZ))
    place = printed.index("KATZ-KIDER: 8.00x SPEEDUP OVER NAIVE   identical distances")
    assert [line.count("#") for line in printed[place + 1 : place + 3]] == [32, 4]
    assert not any(line.startswith("run 2:") for line in printed) and any(line.startswith("run 1:") for line in printed)
    assert not any(" IS " in line for line in runs(model(NAIVE)))


def why(first: list[Any], second: list[Any]) -> str:
    model = model_of([GPU, *first, *second])
    base, run = model.runs.values()
    return explain(ComparedRun(model, run), ComparedRun(model, base)).sentence()


@pytest.mark.parametrize(("share", "said"), [(0.13, True), (0.8, False)])
def test_other_work_is_named_only_far_below_the_peak_rate(share: float, said: bool) -> None:
    counters = {"dram_share": 0.1, "memory_share": 0.95, "compute_share": 0.95}
    model = model_of([GPU, *ran(1, "katz-kider", 0.01, 500, counters)])
    found = explain(ComparedRun(model, model.runs[1]), None)
    assert found.limiter is not None and "95 % busy" in found.limiter.because and not found.busy_with, "nobody measured the limit"
    form = right_for("cuda", model.runs[1].experiment.dtype, True)[0].key
    most = events.FormLimit(form=form, relaxations_per_second=(model.runs[1].rate or 0.0) / share)
    model.apply(events.Limits(t=5.0, backend="cuda", forms=(most,), complete=True))
    assert bool(explain(ComparedRun(model, model.runs[1]), None).busy_with) == said


@pytest.mark.parametrize(
    ("l2", "why_idle"), [(60_000_000, "matrix of 4.00 MiB fits in the L2 cache of 57.2 MiB"), (4_000_000, "")]
)
def test_idle_memory_is_explained_where_the_matrix_fits_in_the_cache(l2: int, why_idle: str) -> None:
    readings = [events.Telemetry(t=1.5 + part, dram_utilisation=0.001) for part in (0.4, 0.6, 0.8)]
    first = ran(1, "naive", 0.08, 16_000)
    done = next(place for place, event in enumerate(first) if isinstance(event, events.Phases))
    window = [events.Sample(t=1.5 + part, run=1, seconds=0.08, since=1.5) for part in (0.2, 0.9)]
    model = model_of([msgspec.structs.replace(GPU, l2_bytes=l2), *first[:done], *window, *readings, *first[done:]])
    found = explain(ComparedRun(model, model.runs[1]), None).limiter
    assert found is not None and found.because == "device memory 0.1 % busy" and found.source == "GPM"
    assert ("because the " + why_idle in found.more) if why_idle else not found.more


def test_the_reason_is_a_change_that_favours_the_faster_run() -> None:
    few, many = {"integer_instructions_per_relaxation": 2.0}, {"integer_instructions_per_relaxation": 9.0}
    faster = why(ran(1, "naive", 0.04, 500, many), ran(2, "katz-kider", 0.01, 500, few))
    assert "4.00x speedup over Naive: 4.5x fewer integer instructions: 9.00 -> 2.00 per relaxation." in faster
    slower = why(ran(1, "naive", 0.01, 500, few), ran(2, "katz-kider", 0.04, 250, many))
    assert "4.00x slower than Naive: 4.5x more integer instructions: 2.00 -> 9.00 per relaxation." in slower
    neither = why(ran(1, "naive", 0.01, 500, many), ran(2, "katz-kider", 0.04, 500, few))
    assert "4.00x slower than Naive; the measurements do not explain the difference." in neither
    said = why(ran(1, "register-tiled", 0.010, 500, phases=0.010), ran(2, "look-ahead", 0.008, 500, phases=0.011))
    assert "1.25x speedup over Register-Tiled: its phases overlap: 11.0 ms of work in 8.00 ms." in said
    for work, possible in ((0.009, True), (0.013, False)):  # on two cores
        made = model(ran(1, "serial", 0.01, 500, backend="cpu"), ran(2, "tiled-cpu", 0.005, 500, phases=work, backend="cpu"))
        base, run = (ComparedRun(made, one) for one in made.runs.values())
        assert ("its phases overlap" in explain(run, base).change) is possible
    said = why(ran(1, "katz-kider", 0.02, 500, tile=16), ran(2, "katz-kider", 0.01, 500, tile=32))
    assert "2.00x speedup over run 1: tile 32 against 16" in said
    repeated = why(ran(1, "naive", 0.02, 500), ran(2, "naive", 0.01, 500))
    assert repeated.startswith("2.00x speedup over run 1, but the difference is unclear: the same experiment")
    types = why(ran(1, "katz-kider", 0.02, 500), ran(2, "katz-kider", 0.01, 250, dtype="int16"))
    assert "values of 2 bytes instead of 4" in types and "bytes requested" not in types


def test_the_missing_measurement_is_named() -> None:
    model = model_of([GPU, *ran(1, "naive", 0.08, 16_000), *ran(2, "serial", 0.5, 16_000, backend="cpu")])
    gpu, cpu = model.runs.values()
    assert explain(ComparedRun(model, gpu), None).missing == COUNTERS and explain(ComparedRun(model, cpu), None).missing == LIMITS
    model.apply(events.Limits(t=5.0, backend="cpu", forms=(), copy_bytes_per_second=1e12, complete=True))
    assert explain(ComparedRun(model, cpu), None).missing == ""
    running = msgspec.structs.replace(gpu, state="running")
    assert explain(ComparedRun(model, running), None).sentence() == ""


@pytest.mark.parametrize("odd", [0.0, float("inf"), 5e-324])
def test_impossible_counters_are_not_a_reason(odd: float) -> None:
    counters = {"integer_instructions_per_relaxation": 9.0, "shared_load_bytes": odd, "relaxations": 1.0}
    few = {"integer_instructions_per_relaxation": odd, "shared_load_bytes": 4.0, "relaxations": 1.0}
    for one, other in ((0.04, 0.01), (0.01, 0.04)):
        said = why(ran(1, "naive", one, 500, counters), ran(2, "katz-kider", other, 500, few))
        assert "inf" not in said and "nan" not in said
