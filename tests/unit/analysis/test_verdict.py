"""The verdict on a run: who is how many times as fast, why, and which rung comes next."""

from __future__ import annotations

from typing import Any

import pytest
from builders import model_of
from test_reason import GPU, told

from fwtui.analysis.compare import ComparedRun
from fwtui.analysis.verdict import Assessment, verdict
from fwtui.commands.support.printing import runs
from fwtui.sessions.library import load_model, resolve
from fwtui.stream import events
from fwtui.stream.events import Machine
from fwtui.stream.model import Model

SLOW = {"integer_instructions_per_relaxation": 35.0, "dram_share": 0.1, "memory_share": 0.95, "compute_share": 0.95}
NAIVE, KATZ = (
    told(1, "naive", 0.08, 16_000, SLOW),
    told(2, "katz-kider", 0.01, 500, {**SLOW, "integer_instructions_per_relaxation": 4.5}),
)
NEXT = told(3, "optimized", 0.004, 500)


def model(*runs_told: list[Any], cores: int = 2, device: events.Device = GPU) -> Model:
    header = events.Header(
        t=0.0, program="p", created="", machine=Machine(system="s", python="p", cpu="c", cores=cores, memory_bytes=1), versions={}
    )
    return model_of([header, device, *(event for one in runs_told for event in one)])


def verdict_of(made: Model, recorded: Model | None = None) -> Assessment:
    base, *others = made.runs.values()
    run = others[0] if others else base
    return verdict(ComparedRun(made, run), ComparedRun(made, base), recorded)


def test_two_runs_of_one_graph_say_who_how_many_times_why_and_what_next() -> None:
    found = verdict_of(model(NAIVE, KATZ, NEXT))
    assert found.headline == "Katz-Kider is 8.00x as fast as Naive" and found.times == "8.00x" and found.same_answer
    assert found.why == (
        "reads each number 32 times less: 17.2 GB -> 537 MB",
        "7.8 times fewer integer instructions: 35.0 -> 4.50 a relaxation",
    )
    assert found.now() == "it is limited by instructions and caches: both 95 % busy"
    assert found.then == "Optimized & blocked: 10.0 ms -> 4.00 ms (run 3)"


def test_units_that_are_busy_far_below_the_limit_are_said_to_do_other_work() -> None:
    model, _ = load_model(resolve("h200-n4096-naive-blocked"))
    found = verdict(ComparedRun(model, model.runs[2]), ComparedRun(model, model.runs[1]))
    assert found.share is not None and found.share < 0.2
    assert found.now() == (
        "instructions and shared memory are both 95 % busy, mainly loads and addresses; "
        "most at k45_katz_kider.py:13, in phase rest (93 % of time)"
    )
    assert found.now(sourced=True).startswith("instructions and shared memory are both 95 % busy (counters), mainly")


def test_the_rung_that_has_not_run_gains_what_the_recorded_ladder_does_with_the_cores_here() -> None:
    recorded = model(told(1, "katz-kider", 0.012, 500), told(2, "optimized", 0.006, 500))
    assert verdict_of(model(NAIVE, KATZ), recorded).then == (
        "Optimized & blocked: 10.0 ms -> 6.00 ms (recorded on this kind of GPU)"
    )
    other = model(NAIVE, KATZ, device=events.Device(t=0.0, present=True, name="H"))
    assert verdict_of(other, recorded).then == "Optimized & blocked: 10.0 ms -> 5.00 ms (predicted from G)"
    slower = model(told(1, "katz-kider", 0.03, 500), told(2, "optimized", 0.03, 500))
    assert "Optimized" not in verdict_of(model(NAIVE, KATZ), slower).then
    assert verdict_of(model(NAIVE, KATZ)).then.startswith("Optimized & blocked: 4.50 integer instructions"), (
        "no number is made up"
    )
    recorded = model(told(1, "serial", 1.6, 12_000, backend="cpu"), told(2, "tiled-cpu", 0.01, 500, backend="cpu"), cores=16)
    alone = verdict_of(model(told(1, "serial", 1.0, 12_000, backend="cpu"), cores=2), recorded)
    assert alone.headline == "Serial takes 1.00 s" and alone.found is None and alone.why == ()
    assert alone.next is not None and alone.next.kernel == "tiled-cpu" and alone.next.seconds == pytest.approx(0.05)


def test_the_fastest_run_of_the_session_comes_after_the_hints_and_one_of_another_type_never() -> None:
    fast = told(3, "look-ahead", 0.001, 500)
    made = model(told(1, "naive", 0.08, 16_000), told(2, "register-tiled", 0.002, 500), fast)
    assert verdict_of(made).then == "Look-ahead: 2.00 ms -> 1.00 ms (run 3)"
    other = told(3, "look-ahead", 0.001, 500, dtype="int16")
    assert verdict_of(model(told(1, "naive", 0.08, 16_000), told(2, "register-tiled", 0.002, 500), other)).then == ""


@pytest.mark.parametrize("change", [{"verdict": "wrong"}, {"verdict": "unverified"}])
def test_what_is_not_right_is_neither_compared_nor_recommended(change: dict[str, Any]) -> None:
    found = verdict_of(model(NAIVE, told(2, "katz-kider", 0.01, 500, **change)))
    assert found.found is None and found.times == "" and "Naive" not in found.headline
    assert "run 3" not in verdict_of(model(NAIVE, KATZ, told(3, "optimized", 0.004, 500, **change))).then


def test_a_printed_table_ends_with_the_verdict_on_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    printed = runs(model(NAIVE, KATZ))
    place = printed.index("KATZ-KIDER IS 8.00x AS FAST AS NAIVE   same answer")
    assert [line.count("#") for line in printed[place + 1 : place + 3]] == [32, 4]
    assert not any(line.startswith("run 2:") for line in printed) and any(line.startswith("run 1:") for line in printed)
    assert not any(" IS " in line for line in runs(model(NAIVE)))
