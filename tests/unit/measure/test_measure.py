"""Measuring: statistics, stretches and phases, memory, host passes, occupancy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fwtui.common.errors import Refused
from fwtui.engine import memory
from fwtui.engine.engine import Cancelled, HostEngine, Stretch, one_of_each_op, stretches
from fwtui.engine.memory import check_memory
from fwtui.measure import statistics
from fwtui.measure.passes import occupancies
from fwtui.measure.phases import MOST_ROUNDS, parts_of, rounds_of
from fwtui.stream import events
from kernels import registry
from kernels.parts import blocked
from kernels.plan import Cost, Rect, Resources, Shape, Step, Target

PHASES = ("pivot", "panels", "rest")


def test_the_spread_is_half_the_interval_of_the_median() -> None:
    assert statistics.spread([]) is None and statistics.spread([1.0]) is None
    assert statistics.spread([1.0, 3.0]) == pytest.approx(0.5)  # the whole range
    assert statistics.spread([5.0, 1.0, 3.0]) == pytest.approx(2 / 3)
    assert statistics.spread([2.0] * 7) == 0
    assert statistics.spread([0.0, 0.0]) is None
    hundred = [100.0 + i for i in range(100)]  # order statistics 41 and 60 of 100
    assert statistics.spread(hundred) == pytest.approx((159 - 140) / 2 / 149.5)
    outlier = [1.0] * 30 + [100.0]
    assert statistics.spread(outlier) == 0, "one outlier does not widen the median's interval"


@given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=60))
def test_the_spread_does_not_depend_on_order_or_unit(samples: list[float]) -> None:
    width = statistics.spread(samples)
    assert width is not None and width >= 0
    assert statistics.spread(samples[::-1]) == width
    assert statistics.spread([8 * s for s in samples]) == pytest.approx(width)


def taken(*seconds: float) -> statistics.Samples:
    samples = statistics.Samples()
    for one in seconds:
        samples.take(one)
    return samples


def test_few_or_short_runs_are_indicative() -> None:
    assert statistics.indicative(taken(*[1.0] * 9)) and statistics.indicative(taken(*[0.01] * 49))
    assert not statistics.indicative(taken(*[1.0] * 10)) and not statistics.indicative(taken(*[0.01] * 51))


def test_samples_know_their_sum_and_look_at_their_median_now_and_then() -> None:
    samples = taken(3.0, 1.0, 2.0)
    assert samples.total == 6.0 and samples.middle == 2.0 and samples.width == 0.5
    samples = taken(*[1.0] * 100)
    assert samples.middle == 1.0
    for _ in range(9):
        samples.take(9.0)
    assert samples.middle == 1.0, "sorted again only when a tenth is new"
    for _ in range(200):
        samples.take(9.0)
    assert samples.middle == 9.0


def test_when_it_is_enough() -> None:
    def enough(samples: list[float], repeats: int, budget: float, wall: float = 0.0) -> bool:
        return statistics.enough(taken(*samples), repeats, budget, wall)

    assert not enough([], 0, 5.0)
    assert not enough([1.0] * 2, 3, 0.1) and enough([1.0] * 3, 3, 0.1), "a count that was asked for is kept to"
    assert enough([0.1] * 10, 0, 5.0)
    assert not enough([0.1] * 9, 0, 5.0), "never fewer than ten of them"
    assert not enough([0.01] * 20, 0, 5.0), "never less than half a second"
    assert not enough([0.1, 0.2] * 8, 0, 5.0), "not stable"
    assert enough([0.1, 0.2] * 17, 0, 5.0), "the budget ends what is never stable"
    assert enough([6.0], 0, 5.0) and enough([3.0], 0, 5.0), "the next one would not fit"
    assert not enough([2.0], 0, 5.0)
    assert enough([1e-6] * 5, 0, 5.0, wall=10.1), "what lies between the passes is counted too"
    assert enough([1e-6] * statistics.MOST_RUNS, 0, 5.0) and not enough([1e-6] * 999, 0, 5.0)


def test_the_expected_time_ends_at_zero() -> None:
    expected = statistics.expected_seconds
    assert expected(taken(1.0), 1.0, 3, 5.0) == 2.0
    assert expected(taken(), 0.2, 0, 5.0) == 2.0 and expected(taken(), 0.001, 0, 5.0) == 0.5
    assert expected(taken(), 10.0, 0, 5.0) == 5.0
    assert expected(taken(4.0, 4.0), 4.0, 0, 5.0) == 0.0
    assert expected(taken(*[0.1] * 20), 0.1, 0, 5.0) == pytest.approx(3.0), "not stable yet: the budget's rest"
    assert expected(taken(), 1e-6, 0, 5.0) == pytest.approx(0.01), "very short passes end by their number"


def step(phase: str, relaxations: int, device: int = 0, op: str = "") -> Step:
    cell = (Rect(0, 0, 1, 1),)
    return Step(op or phase, phase, (), Cost(relaxations, device, 2 * device), cell, cell)


def test_stretches_are_cut_where_the_phase_changes() -> None:
    plan = [step("a", 1), step("a", 2), step("b", 4), step("a", 8)]
    found = stretches(plan)
    assert [(s.phase, len(s.steps), s.cost.relaxations) for s in found] == [("a", 2, 3), ("b", 1, 4), ("a", 1, 8)]
    assert [s for stretch in found for s in stretch.steps] == plan
    assert stretches([]) == []


@pytest.mark.parametrize("rounds", [1, 2, 64, 65, 200])
def test_parts_and_rounds_add_up(rounds: int) -> None:
    plan = list(blocked.plan(Shape(4 * rounds, 4), False))
    parts = stretches(plan)
    random = np.random.default_rng(rounds)
    seconds = [float(s) for s in random.random(len(parts))]
    told = parts_of(parts, seconds, PHASES)
    assert [p.phase for p in told] == (["pivot"] if rounds == 1 else list(PHASES))
    assert sum(p.seconds for p in told) == pytest.approx(sum(seconds))
    assert sum(p.launches for p in told) == len(plan)
    assert sum(p.relaxations for p in told) == (4 * rounds) ** 3
    assert sum(p.device_bytes for p in told) == sum(s.cost.device_bytes for s in plan)
    assert sum(p.link_bytes for p in told) == 0
    assert told[0].seconds == pytest.approx(sum(s for s, p in zip(seconds, parts, strict=True) if p.phase == "pivot"))

    sampled = rounds_of(parts, seconds, PHASES)
    assert len(sampled) <= MOST_ROUNDS
    every = math.ceil(rounds / MOST_ROUNDS)
    assert [r[0] for r in sampled] == ([] if rounds == 1 else list(range(0, rounds, every)))
    before = [0, *accumulate(sum(s.cost.relaxations for s in plan if s.args == (p,)) for p in range(rounds))]
    for index, first, row in sampled:
        assert first == before[index]
        assert row == pytest.approx(tuple(seconds[3 * index : 3 * index + 3]))
    if every == 1 and rounds > 1:
        assert sum(sum(row) for _, _, row in sampled) == pytest.approx(sum(seconds))


def test_link_bytes_are_kept_apart() -> None:
    parts = [Stretch("pivot", (step("pivot", 1, 10), step("pivot", 1, 20)))]
    (told,) = parts_of(parts, [0.5], PHASES)
    assert (told.device_bytes, told.link_bytes, told.launches) == (30, 60, 2)


def test_one_of_each_op_compiles_everything() -> None:
    plan = [step("a", 1, op="x"), step("a", 1, op="y"), step("b", 1, op="x"), step("b", 1, op="z")]
    assert [(s.op, s.phase) for s in one_of_each_op(plan)] == [("x", "a"), ("y", "a"), ("z", "b")]


PLAIN = registry()["katz-kider"]


def engine_with(free_device: int | None) -> Any:
    return SimpleNamespace(free_bytes=lambda: free_device)


def have(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=free))


def test_what_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, 2**30)
    shape = Shape(8192, 64, "float32")
    sentence = r"^n = 8192 float32 needs 1\.50 GiB of host memory and 1\.00 GiB are free; choose n up to \d+$"
    with pytest.raises(Refused, match=sentence) as caught:
        check_memory(PLAIN, shape, engine_with(None))
    fits = int(str(caught.value).rpartition(" ")[2])
    assert fits % 64 == 0
    check_memory(PLAIN, replace(shape, n=fits), engine_with(None))
    with pytest.raises(Refused):
        check_memory(PLAIN, replace(shape, n=fits + 1), engine_with(None))


def test_device_memory_is_checked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, 2**40)
    check_memory(PLAIN, Shape(8192), engine_with(2**30))
    with pytest.raises(Refused, match=r"device memory and 512 MiB are free; choose n up to 5792$"):
        check_memory(PLAIN, Shape(8192), engine_with(2**29))
    have(monkeypatch, 0)
    with pytest.raises(Refused, match=r"host memory and 0 B are free; choose n up to 0$"):
        check_memory(PLAIN, Shape(10), engine_with(2**40))


class Notes:
    """A program that only notes what it is told to do."""

    def __init__(self) -> None:
        self.launched: list[Step] = []

    def launch(self, step: Step, buffers: Any, stream: Any) -> None:
        self.launched.append(step)


def never() -> None:
    pass


def after(count: int) -> Callable[[], None]:
    """A check that raises Cancelled at its count-th call."""
    calls = iter(range(1, 10**9))

    def check() -> None:
        if next(calls) >= count:
            raise Cancelled

    return check


def test_host_passes_launch_every_step_in_order() -> None:
    engine = HostEngine(Target("cpu"))
    plan = list(blocked.plan(Shape(16, 4), False))
    parts = stretches(plan)
    program: Any = Notes()
    told: list[int] = []
    engine.warm_up(program, plan, [], never, told.append)
    assert program.launched == plan and told == list(range(1, len(plan) + 1))

    program = Notes()
    clean = engine.clean_pass(program, plan, [], "eager")
    assert program.launched == []
    assert clean(never) > 0 and clean(never) > 0
    assert program.launched == plan * 2

    program = Notes()
    seconds = engine.phase_pass(program, parts, [], "eager")(never)
    assert program.launched == plan
    assert len(seconds) == len(parts) and all(s >= 0 for s in seconds)
    for run in (clean, engine.phase_pass(program, parts, [], "eager")):
        with pytest.raises(Cancelled):
            run(after(4))


def test_a_cancelled_pass_stops_before_its_next_step() -> None:
    engine = HostEngine(Target("cpu"))
    plan = list(blocked.plan(Shape(16, 4), False))
    for pass_ in (
        lambda p: engine.warm_up(p, plan, [], after(4), lambda done: None),
        lambda p: engine.clean_pass(p, plan, [], "eager")(after(4)),
        lambda p: engine.phase_pass(p, stretches(plan), [], "eager")(after(4)),
    ):
        program = Notes()
        with pytest.raises(Cancelled):
            pass_(program)
        assert program.launched == plan[:3]


def test_only_the_cpu_is_timed_by_the_hosts_clock() -> None:
    assert HostEngine(Target("cpu")).timed and not HostEngine(Target("simulator")).timed
    assert HostEngine(Target("cpu")).free_bytes() is None


@pytest.mark.parametrize(
    ("got", "cc", "expected"),
    [
        (Resources(256, 32, 0), (9, 0), ("table", 8, 64, 64)),
        (Resources(256, 32, 0, blocks_per_multiprocessor=8), (9, 0), ("driver", 8, 64, 64)),
        (Resources(256, 32, 0, blocks_per_multiprocessor=5), (9, 0), ("driver", 5, 40, 64)),
    ],
)
def test_occupancy_is_the_drivers_where_there_is_one(got: Resources, cc: Any, expected: tuple[Any, ...]) -> None:
    program: Any = SimpleNamespace(resources=lambda: {"rest": got})
    (told,) = occupancies(program, Target("cuda", cc))
    assert (told["source"], told["blocks"], told["warps"], told["max_warps"]) == expected
    assert bool(told["limiters"]) == (got.blocks_per_multiprocessor in (None, 8)), "a limiter that disagrees is not shown"
    events.Occupancy(t=0, run=1, **told)


def test_an_unknown_gpu_without_a_driver_says_nothing() -> None:
    program: Any = SimpleNamespace(resources=lambda: {"rest": Resources(256, 32, 0)})
    assert list(occupancies(program, Target("cuda", (99, 0)))) == []
