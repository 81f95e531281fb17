"""PC samples: the sentences about them, and when there are none."""

import msgspec
import pytest
from builders import listed, model_of, run_events

from fwtui.analysis.bottleneck import counters_of, reason_of
from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.explanation import explain
from fwtui.analysis.phase_table import phase_rows, roofs_of
from fwtui.analysis.report import result
from fwtui.analysis.warps import (
    STALLS,
    derived,
    describe_mix,
    issue_rate,
    line_changes,
    loop_facts,
    main_reason,
    mix_changes,
    reason_changes,
    samples_of,
    shares,
    warp_reason,
)
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.folders import shipped_folder
from fwtui.sessions.library import model_of as recorded
from fwtui.sessions.reader import load
from fwtui.stream import events
from fwtui.stream.listing import CodeLine, Instruction, Listing
from fwtui.stream.model import Model

GPU = events.Device(t=0.0, name="G", peak_bytes_per_second=4e12, multiprocessors=132, max_clock_mhz=1980.0)
LINE = CodeLine("k60_optimized.py", 48, "    own[k] = min(own[k], via)", {"mio_throttle": 41, "selected": 3})


def sampled(*samples: events.Event, launches: int = 8, relaxations: int = 2**30) -> Model:
    """Return a model with a run of one phase and these samples."""
    part = events.Part(phase="rest", seconds=0.1, launches=launches, relaxations=relaxations, device_bytes=2**33)
    run = run_events(Experiment(kernel="optimized", n=1024), parts=[part], passes=[0.1] * 12)
    return model_of([GPU, *run, *samples])


def samples(**reasons: int) -> events.WarpSamples:
    return events.WarpSamples(t=4.0, run=1, op="rest", reasons=reasons, hot=LINE, mix={"LDS": 4, "FMNMX": 4}, relaxations=4)


def sentence(model: Model) -> str:
    return explain(ComparedRun(model, model.runs[1]), None).sentence()


def test_the_reason_names_stall_share_and_line() -> None:
    waits = sampled(samples(mio_throttle=41, not_selected=30, selected=19, barrier=10))
    told = (
        "Bottleneck: shared memory pipe: warps stall on MIO throttle (shared memory queue full) in 41 % of PC samples, "
        "most at k60_optimized.py:48."
    )
    assert sentence(waits) == told
    assert result(waits, waits.runs[1])["limited_by"] == "shared memory pipe"
    (line,) = phase_rows(waits, waits.runs[1])
    assert str(line.limiter) == (
        "shared memory pipe: warps stall on MIO throttle (shared memory queue full) in 41 % of PC samples, "
        "most at k60_optimized.py:48"
    )
    first = sampled(msgspec.structs.replace(samples(barrier=60, selected=40), rank=0))
    assert sentence(first) == (
        "Bottleneck: barriers: warps stall on barrier (waits for its block) in 60 % of rank 0's PC samples, "
        "most at k60_optimized.py:48."
    )
    assert result(first, first.runs[1])["samples"]["rest"]["rank"] == 0
    assert sentence(sampled(samples(mio_throttle=5, not_selected=50, math_pipe_throttle=30, selected=15))) == (
        "Bottleneck: arithmetic pipe: of PC samples, issued 15 %, eligible but not selected 50 %, math pipe throttle 30 %, "
        "most at k60_optimized.py:48."
    )


@pytest.mark.parametrize(
    ("throttled", "relaxations", "compute", "what"),
    [
        (13, 10**12, None, "shared memory latency"),  # 60 % of the issue slots: the loop allows 1.67e13 relaxations/s
        (13, 12 * 10**11, None, "instruction issue"),
        (13, 10**12, 0.9, "instruction issue"),
        (13, 12 * 10**11, 0.7, "shared memory latency"),
        (26, 12 * 10**11, None, "arithmetic pipe"),
    ],
)
def test_instruction_issue_is_the_bottleneck_only_if_the_issue_slots_are_nearly_full(
    throttled: int, relaxations: int, compute: float | None, what: str
) -> None:
    taken = samples(not_selected=40, selected=13, short_scoreboard=22, math_pipe_throttle=throttled)
    shares = {"dram_share": 0.1, "memory_share": 0.5, "compute_share": compute or 0.0}
    counters = [events.Counters(t=4.0, run=1, op="rest", values=shares)] * (compute is not None)
    model = sampled(*counters, taken, relaxations=relaxations)
    (line,) = phase_rows(model, model.runs[1])
    assert line.limiter.what == what


@pytest.mark.parametrize(
    ("dram", "what"),
    [(None, "device memory latency"), (0.43, "device memory latency"), (0.6, "device memory"), (0.05, "cache latency")],
)
def test_warps_that_wait_for_device_memory_are_bound_by_its_latency_unless_dram_is_busy(dram: float | None, what: str) -> None:
    shares = {"dram_share": dram or 0.0, "memory_share": dram or 0.0, "compute_share": 0.5}
    counters = [events.Counters(t=4.0, run=1, op="rest", values=shares)] * (dram is not None)
    model = sampled(*counters, samples(long_scoreboard=74, not_selected=5, selected=4))
    (line,) = phase_rows(model, model.runs[1])
    known = f"DRAM throughput {100 * dram:.0f} % of peak; " if dram is not None else ""
    assert str(line.limiter) == (
        f"{what}: {known}warps stall on long scoreboard (global memory load) in 89 % of PC samples, most at k60_optimized.py:48"
    )


def test_samples_come_before_counters_and_launches_before_samples() -> None:
    counters = events.Counters(t=4.0, run=1, op="rest", values={"dram_share": 0.9, "memory_share": 0.9, "compute_share": 0.1})
    assert "device memory: 90 % busy" in sentence(sampled(counters))
    assert sentence(sampled(counters, samples(barrier=60, selected=40))).startswith(
        "Bottleneck: barriers: warps stall on barrier (waits for its block) in 60 % of PC samples"
    )
    full = events.Counters(t=4.0, run=1, op="rest", values={"dram_share": 0.1, "memory_share": 0.95, "compute_share": 0.95})
    assert sentence(sampled(full, samples(not_selected=58, short_scoreboard=22, selected=20))) == (
        "Bottleneck: instruction issue and caches: both 95 % busy, most at k60_optimized.py:48."
    )
    launched = sentence(sampled(samples(barrier=60, selected=40), launches=20_000))
    assert launched == (
        "Bottleneck: launch overhead: 20,000 launches of 5.00 us; an empty one takes up to 3.00 us; within one, warps stall on "
        "barrier (waits for its block) in 60 % of PC samples, most at k60_optimized.py:48."
    )


def test_every_stall_reason_has_a_name_and_no_samples_give_none() -> None:
    empty = sampled(samples(), events.Sampled(t=5.0, run=1, note="no samples of rest"))
    run = empty.runs[1]
    assert samples_of(run, "rest") is None and "unknown" in sentence(empty) and shares({}) == {}
    assert result(empty, run)["not_sampled"] == "no samples of rest"
    assert all(one.name and one.plain and one.meaning and one.resource for one in STALLS.values())
    newer = warp_reason(samples(of_a_newer_gpu=9, selected=1))
    assert newer.state == "warps stall on unlisted reason (unknown to this version) in 90 % of PC samples"
    assert main_reason({"selected": 5, "not_selected": 1}) == "selected" and main_reason({"wait": 5, "selected": 5}) == "wait"


@pytest.mark.parametrize(
    ("told", "computes"),
    [  # an H200, n = 4096, thousandths; beside each what Nsight Compute says of the same launch
        ({"not_selected": 408, "short_scoreboard": 181, "wait": 96, "math_pipe_throttle": 77, "selected": 63}, True),  # 95 % busy
        ({"not_selected": 287, "long_scoreboard": 151, "math_pipe_throttle": 145, "short_scoreboard": 120, "selected": 80}, True),
        ({"selected": 287, "long_scoreboard": 169, "not_selected": 167, "wait": 109, "math_pipe_throttle": 96}, False),  # 54 %
        ({"not_selected": 300, "mio_throttle": 263, "barrier": 95, "short_scoreboard": 93, "selected": 55}, False),  # memory 89 %
    ],
)
def test_a_kernel_is_compute_bound_if_its_schedulers_always_have_an_eligible_warp(told: dict[str, int], computes: bool) -> None:
    others = {"dispatch_stall": 1000 - sum(told.values())}
    assert (main_reason({**told, **others}) == "selected") is computes


def test_an_inner_loop_says_how_many_instructions_a_relaxation_takes_where_it_has_a_minimum() -> None:
    mix = {"VIADDMNMX": 64, "LDS.128": 16, "LDG.E": 2, "STL.64": 1, "IADD3": 13}
    facts = loop_facts(Listing(mix=mix, relaxations=64))
    assert (facts.instructions, facts.shared_loads, facts.global_loads, facts.spills) == (96, 16, 2, 1)
    assert facts.each == 1.5 and facts.per_cycle == 4 * 32 / 1.5
    assert describe_mix(mix) == "64 of 96 instructions are VIADDMNMX, 16 LDS.128, 13 IADD3" and describe_mix({}) == ""
    assert loop_facts(Listing()).each is None and loop_facts(Listing(mix={"BRA": 1})).per_cycle is None
    said = derived(Listing(mix={"HFMA2.MMA": 8, "LDS": 2}, total=10))
    assert said.startswith("no instruction is a minimum, ") and "8 of 10 instructions are HFMA2" in said
    assert derived(Listing()) == ""


@pytest.mark.parametrize("count", [1, 2**60])
def test_a_run_stores_its_listing_packed_and_reports_it_as_data(count: int) -> None:
    line = CodeLine("a.py", 3, "x" * 200, {"wait": count})
    code = Listing(lines=(line,), instructions=(Instruction(16, "BRA 0", 0, {"wait": count}),), total=1)
    told = events.WarpSamples(t=4.0, run=1, op="rest", reasons={"wait": count}, hot=line)
    model = sampled(*listed(code, told))
    run = model.runs[1]
    assert run.listing("rest") == code and run.listing("other") is None
    said = result(model, run)["samples"]["rest"]
    assert said["samples"] == count and sum(said["reasons"].values()) == 1.0
    assert said["lines"] == [{"file": "a.py", "line": 3, "source": "x" * 200, "share": 1.0, "reasons": {"wait": 1.0}}]


def test_two_runs_differ_in_the_shares_of_reasons_lines_and_instructions() -> None:
    changes = reason_changes(samples(barrier=60, wait=40), samples(barrier=10, long_scoreboard=50, wait=40))
    assert [(one.reason, one.baseline, one.run) for one in changes] == [("long_scoreboard", 0.5, 0.0), ("barrier", 0.1, 0.6)]
    before = Listing(lines=(CodeLine("a.py", 3, "  x = y", {"wait": 9}), CodeLine("a.py", 4, "sync()", {"wait": 1})))
    now = Listing(lines=(CodeLine("b.py", 7, "x = y", {"wait": 5}), CodeLine("b.py", 8, "x = z", {"wait": 5})))
    told = [(one.line.file, one.line.line, one.baseline, one.run) for one in line_changes(now, before) if one.line is not None]
    assert told == [("b.py", 8, None, 0.5), ("b.py", 7, 0.9, 0.5), ("a.py", 4, 0.1, None)]

    assert mix_changes({"FADD": 64, "LDS": 2}, {"FADD": 8, "LDS": 2, "SEL": 4}) == [("FADD", 8, 64), ("SEL", 4, 0)]


def test_counted_instructions_and_measured_rates_of_all_recordings_agree_with_the_instructions_of_their_loops() -> None:
    checked, contradictory = set[str](), set[str]()
    for path in sorted(shipped_folder().glob("*.fwt.jsonl.gz")):
        model = recorded(load(path).lines)
        for run in model.runs.values():
            for phase in run.phases:
                one = samples_of(run, phase.key)
                name = f"{path.name.partition('.')[0]} run {run.id} {phase.key}"
                if one is not None and reason_of(run, roofs_of(model, run).issue_slots, one).contradicts:
                    contradictory.add(name)
                each = loop_facts(one).each if one is not None else None
                if one is None or each is None:
                    continue
                ceiling = issue_rate(model, run, one)
                assert each >= counters_of(run, phase.key).get("integer_instructions_per_relaxation", 0.0), name
                assert ceiling is None or phase.relaxations / phase.seconds <= ceiling * run.device_count, name
                checked.add(run.experiment.kernel)
    assert {"naive-vector", "look-ahead", "katz-kider"} <= checked
    assert contradictory == {"h200-champion run 20 rest"}  # 30 % of the issue slots by the samples, at least 57 % by the rate
