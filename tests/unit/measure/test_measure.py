"""Measurements: statistics, batches and phases, memory, repetitions on the host, occupancy."""

import math
from dataclasses import replace
from itertools import accumulate, cycle, pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from builders import never

from fwtui.common.errors import Refused
from fwtui.engine.engine import PhaseStretch, one_of_each_op, stretches
from fwtui.engine.kernel_instance import LoadedKernel
from fwtui.engine.memory_check import check_memory
from fwtui.experiment.experiment import Experiment
from fwtui.measure import statistics
from fwtui.measure.repetitions import MAX_ROUNDS, Repetitions, occupancies, phase_parts, sample_rounds
from fwtui.measure.run_context import RunContext
from fwtui.measure.worker import diagnose
from fwtui.stream import events
from fwtui_kernels import registry
from fwtui_kernels.parts import blocked
from fwtui_kernels.plan import Cost, Rect, Resources, Shape, Step, Target

PHASES = ("pivot", "panels", "rest")


def test_the_spread_is_half_the_interval_of_the_median() -> None:
    evenly = statistics.spread_evenly([float(place) for place in range(250)], 100)
    assert (len(evenly), evenly[0], evenly[50], evenly[-1]) == (100, 0.0, 125.0, 247.0)
    long_after_boot = [1000123.000023514, 1000123.0]  # the difference of two such times has noise below a nanosecond
    assert statistics.spread_evenly([long_after_boot[0] - long_after_boot[1], 1.23456789], 2) == (0.000023514, 1.234568)
    assert statistics.spread([]) is None and statistics.spread([1.0]) is None
    assert statistics.spread([1.0, 3.0]) == pytest.approx(0.5)  # the whole range
    assert statistics.spread([5.0, 1.0, 3.0]) == pytest.approx(2 / 3)
    assert statistics.spread([2.0] * 7) == 0
    assert statistics.spread([0.0, 0.0]) is None
    hundred = [100.0 + i for i in range(100)]  # order statistics 41 and 60 of 100
    assert statistics.spread(hundred) == pytest.approx((159 - 140) / 2 / 149.5)
    assert statistics.spread([8 * one for one in hundred[::-1]]) == pytest.approx(statistics.spread(hundred))
    outlier = [1.0] * 30 + [100.0]
    assert statistics.spread(outlier) == 0, "one outlier does not widen the median's interval"


def taken(*seconds: float) -> statistics.Samples:
    samples = statistics.Samples()
    for one in seconds:
        samples.take(one)
    return samples


def test_samples_know_their_sum_and_few_or_short_ones_are_indicative() -> None:
    assert statistics.has_low_confidence(taken(*[1.0] * 9)) and statistics.has_low_confidence(taken(*[0.01] * 49))
    assert not statistics.has_low_confidence(taken(*[1.0] * 10)) and not statistics.has_low_confidence(taken(*[0.01] * 51))
    samples = taken(3.0, 1.0, 2.0)
    assert samples.total == 6.0 and samples.middle == 2.0 and samples.width == 0.5
    samples.take(9.0)
    assert samples.middle == 2.5 and list(samples) == [3.0, 1.0, 2.0, 9.0]


def test_repetitions_stop_when_they_are_enough() -> None:
    def enough(samples: list[float], repeats: int, budget: float, wall: float = 0.0) -> bool:
        return statistics.is_converged(taken(*samples), repeats, budget, wall)

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
    assert enough([1e-6] * statistics.MAX_RUNS, 0, 5.0) and not enough([1e-6] * 999, 0, 5.0)


def test_the_expected_time_ends_at_zero() -> None:
    expected = statistics.expected_seconds
    assert expected(taken(1.0), 1.0, 3, 5.0) == 2.0
    assert expected(taken(), 0.2, 0, 5.0) == 2.0 and expected(taken(), 0.001, 0, 5.0) == 0.5
    assert expected(taken(), 10.0, 0, 5.0) == 5.0
    assert expected(taken(4.0, 4.0), 4.0, 0, 5.0) == 0.0
    assert expected(taken(*[0.1, 0.2] * 4), 0.15, 0, 5.0) == pytest.approx(3.8), "far from stable: the budget's rest"
    near = taken(*[0.1, 0.102] * 5)
    assert near.width == pytest.approx(0.0099, rel=0.01)
    assert expected(near, 0.101, 0, 20.0) == pytest.approx(1.01 * 2.92, rel=0.01), "half the width takes four times as many"
    assert expected(taken(0.01), 0.01, 0, 5.0, wall=0.2) == pytest.approx(9.8), "twice the budget ends them in any case"
    assert expected(taken(0.1), 0.1, 10, 5.0, wall=0.2) == pytest.approx(1.8)
    assert expected(taken(), 1e-6, 0, 5.0) == pytest.approx(0.01), "very short passes end by their number"


@pytest.mark.parametrize(
    ("seconds", "between", "asked"),
    [
        ((0.1, 0.2), 0.001, {}),  # never stable: the budget ends it
        ((0.1, 0.1005), 0.001, {}),
        ((0.001,), 0.02, {}),  # what lies between the passes takes twenty times as long as they do
        ((0.5, 0.1, 0.1, 0.1), 0.3, {"repeats": 30}),
        ((7.0,), 0.1, {}),  # longer than the budget
    ],
)
def test_progress_rises_and_a_budget_bounds_the_rest(seconds: tuple[float, ...], between: float, asked: dict[str, Any]) -> None:
    clock, coming, told = 10.0, cycle(seconds), []

    def spend(some: float) -> float:
        nonlocal clock
        clock += some
        return some

    engine: Any = SimpleNamespace(stream=None, synchronize=never, target=Target("simulator"))
    engine.timed_repetition = lambda *_: lambda check: spend(next(coming))
    program: Any = SimpleNamespace(restore=lambda *_: spend(between))
    experiment = Experiment(kernel="serial", budget=5.0, **asked)
    job = RunContext(1, experiment, registry()["serial"], engine, never, told.append, lambda: clock)
    Repetitions(job, LoadedKernel(job.kernel, engine, program, [], [])).run_timed(statistics.Samples(), guess=seconds[0])
    progress = [event for event in told if isinstance(event, events.Progress)]
    assert progress[0].done == 0.0
    assert all(before.done <= after.done < 1.0 for before, after in pairwise(progress))
    for event in progress:
        most = 2 * experiment.budget - (event.t - 10.0) if not asked else 30 * 0.8
        assert event.left is not None and event.left <= max(most, 0.0) + 2 * max(seconds)


@pytest.mark.parametrize(("timed", "more"), [(False, 0.0), (True, 2000.0)])
def test_no_repetitions_are_expected_if_nothing_is_timed(timed: bool, more: float) -> None:
    told: list[Any] = []
    engine: Any = SimpleNamespace(timed=timed)
    job = RunContext(1, Experiment(kernel="serial", budget=5.0), registry()["serial"], engine, never, told.append, lambda: 0.0)
    it = LoadedKernel(job.kernel, engine, cast(Any, None), [step("a", 1), step("a", 1)], [])
    half = Repetitions(job, it).progress(-500.0)
    half(1)
    assert told[0].done == 0.5 and 500.0 <= told[0].left - more < 600.0


def step(phase: str, relaxations: int, device: int = 0, op: str = "") -> Step:
    cell = (Rect(0, 0, 1, 1),)
    return Step(op or phase, phase, (), Cost(relaxations, device, 2 * device), cell, cell)


@pytest.mark.parametrize("rounds", [1, 64, 65])
def test_parts_and_rounds_add_up(rounds: int) -> None:
    plan = list(blocked.plan(Shape(4 * rounds, 4), False))
    parts = stretches(plan)
    random = np.random.default_rng(rounds)
    seconds = [float(s) for s in random.random(len(parts))]
    told = phase_parts(parts, seconds, PHASES)
    assert [p.phase for p in told] == (["pivot"] if rounds == 1 else list(PHASES))
    assert sum(p.seconds for p in told) == pytest.approx(sum(seconds))
    assert sum(p.launches for p in told) == len(plan)
    assert sum(p.relaxations for p in told) == (4 * rounds) ** 3
    assert sum(p.device_bytes for p in told) == sum(s.cost.device_bytes for s in plan)
    assert sum(p.link_bytes for p in told) == 0
    assert told[0].seconds == pytest.approx(sum(s for s, p in zip(seconds, parts, strict=True) if p.phase == "pivot"))

    sampled = sample_rounds(parts, seconds, PHASES)
    assert len(sampled) <= MAX_ROUNDS
    every = math.ceil(rounds / MAX_ROUNDS)
    assert [r[0] for r in sampled] == ([] if rounds == 1 else list(range(0, rounds, every)))
    before = [0, *accumulate(sum(s.cost.relaxations for s in plan if s.args == (p,)) for p in range(rounds))]
    for index, first, row in sampled:
        assert first == before[index]
        assert row == pytest.approx(tuple(seconds[3 * index : 3 * index + 3]))
    if every == 1 and rounds > 1:
        assert sum(sum(row) for _, _, row in sampled) == pytest.approx(sum(seconds))


def test_batches_end_where_the_phase_changes() -> None:
    plan = [step("a", 1), step("a", 2), step("b", 4), step("a", 8)]
    found = stretches(plan)
    assert [(s.phase, len(s.steps), s.cost.relaxations) for s in found] == [("a", 2, 3), ("b", 1, 4), ("a", 1, 8)]
    assert [s for stretch in found for s in stretch.steps] == plan and stretches([]) == []
    parts = [PhaseStretch("pivot", (step("pivot", 1, 10), step("pivot", 1, 20)))]
    (told,) = phase_parts(parts, [0.5], PHASES)
    assert (told.device_bytes, told.link_bytes, told.launches) == (30, 60, 2)
    plan = [step("a", 1, op="x"), step("a", 1, op="y"), step("b", 1, op="x"), step("b", 1, op="z")]
    assert [(s.op, s.phase) for s in one_of_each_op(plan)] == [("x", "a"), ("y", "a"), ("z", "b")]


PLAIN = registry()["katz-kider"]


def engine_with(free_device: int | None) -> Any:
    return SimpleNamespace(free_bytes=lambda: free_device, ranks=())


def test_memory_is_checked_on_host_and_device() -> None:
    shape = Shape(8192, 64, "float32")
    sentence = r"^n = 8192 float32 needs 1\.50 GiB of host memory, but only 1\.00 GiB is free; choose n up to \d+$"
    with pytest.raises(Refused, match=sentence) as caught:
        check_memory(PLAIN, shape, engine_with(None), free_host=2**30)
    fits = int(str(caught.value).rpartition(" ")[2])
    assert fits % 64 == 0
    check_memory(PLAIN, replace(shape, n=fits), engine_with(None), free_host=2**30)
    with pytest.raises(Refused):
        check_memory(PLAIN, replace(shape, n=fits + 1), engine_with(None), free_host=2**30)
    check_memory(PLAIN, Shape(8192), engine_with(2**30), free_host=2**40)
    with pytest.raises(Refused, match=r"device memory, but only 512 MiB is free; choose n up to 5792$"):
        check_memory(PLAIN, Shape(8192), engine_with(2**29), free_host=2**40)
    with pytest.raises(Refused, match=r"host memory, but only 0 B is free; choose n up to 0$"):
        check_memory(PLAIN, Shape(10), engine_with(2**40), free_host=0)


def test_each_rank_needs_memory_for_its_share() -> None:
    for backend, where in (("cpu", "host"), ("cuda", "device")):
        engine = engine_with(2**30)
        engine.ranks = tuple(events.RankOf(rank=rank, backend=backend) for rank in range(4))
        # half a gigabyte for each, and a whole one would not do
        check_memory(PLAIN, Shape(16384, 32, ranks=4), engine, free_host=2**50)
        with pytest.raises(Refused, match=f"of {where} memory for each of 4 ranks, but only 1.00 GiB is free; choose n") as why:
            check_memory(PLAIN, Shape(32768, 32, ranks=4), engine, free_host=2**50)
        fits = int(str(why.value).split()[-1])
        check_memory(PLAIN, Shape(fits, 32, ranks=4), engine, free_host=2**50)
    with pytest.raises(Refused, match=r"of host memory, but only 4\.00 GiB is free"):
        engine.ranks = tuple(events.RankOf(rank=rank, backend="cpu") for rank in range(4))
        check_memory(PLAIN, Shape(16384, 32, ranks=4), engine, free_host=2**32)


@pytest.mark.parametrize(("blocks", "expected"), [(None, ("table", 8, 64)), (8, ("driver", 8, 64)), (5, ("driver", 5, 40))])
def test_occupancy_is_the_drivers_where_there_is_one(blocks: int | None, expected: tuple[Any, ...]) -> None:
    got = Resources(256, 32, 0, blocks_per_multiprocessor=blocks)
    program: Any = SimpleNamespace(resources=lambda: {"rest": got})
    assert list(occupancies(program, Target("cuda", (99, 0)))) == [] or blocks, "an unknown GPU"
    (told,) = occupancies(program, Target("cuda", (9, 0)))
    assert (told["source"], told["blocks"], told["warps"], told["max_warps"]) == (*expected, 64)
    assert bool(told["limiters"]) == (blocks in (None, 8)), "a limiter that disagrees is not shown"
    events.Occupancy(t=0, run=1, **told)


CudaError, CudaSupportError = (type(name, (RuntimeError,), {}) for name in ("CudaError", "CudaSupportError"))


@pytest.mark.parametrize(
    ("error", "code", "words", "lost"),
    [
        (MemoryError(), "memory", "the host's memory is exhausted (MemoryError); choose a smaller n", False),
        (CudaError("CUDA_ERROR_OUT_OF_MEMORY"), "memory", "the GPU's memory is exhausted", True),
        (CudaSupportError("Error at driver init: \n\nno library.\n:"), "cuda", "CUDA does not start (no library);", True),
        (CudaError("CUDA_ERROR_ILLEGAL_ADDRESS"), "cuda", "the next run gets a new worker", True),
        (ValueError("\x1b[31mno"), "error", "ValueError: [31mno", False),
    ],
)
def test_an_error_in_a_run_is_named_and_marks_a_lost_worker(error: Exception, code: str, words: str, lost: bool) -> None:
    told = diagnose(error)
    assert (told[0], told[2]) == (code, lost) and words in told[1]
