"""The queue of a campaign: time limit, expected time of a run, skipped and repeated runs."""

from math import inf
from typing import Any

import pytest
from made_sessions import Made, MadeLive, ask

from fwtui.analysis.estimate import FIRST_COMPILE, RATES, expect
from fwtui.campaigns.queue import MAX_SECONDS, Queue, Runner
from fwtui.campaigns.reproduction import REPETITIONS
from fwtui.experiment.experiment import Experiment, settle


def test_time_passes_only_while_it_goes() -> None:
    now = [0.0]
    queue = Queue(MadeLive(), 100.0, clock=lambda: now[-1])
    now.append(50.0)
    assert (queue.left, queue.going) == (100.0, False)
    queue.go()
    now.append(60.0)
    assert (queue.spent, queue.left, queue.going) == (10.0, 90.0, True)
    now.append(75.0)
    queue.hold()
    now.append(500.0)
    assert queue.spent == 25.0
    queue.go()
    queue.go()
    now.append(510.0)
    assert queue.spent == 35.0


def test_earlier_runs_predict_the_time_of_a_run() -> None:
    made = Made().add(ask("serial", 1024), 2.0, stages={"graph": 0.5, "verify": 0.25})
    like = expect(made.model, ask("serial", 2048, repeats=3))
    # a warm-up, three passes and one with a clock at every phase; the graph and the sampled check grow with n^2
    assert like == (16.0, pytest.approx(5 * 16.0 + 4 * 0.75), 0.0)
    other, one = expect(made.model, ask("tiled-cpu", 1024, repeats=1)), 1024**3 / RATES["cpu"]
    assert other == (one, pytest.approx(3 * one + 0.5 + 0.25 + FIRST_COMPILE), FIRST_COMPILE)
    made = Made()
    for seconds in (1.0, 9.0, 2.0):
        made.add(ask("serial", 512), seconds)
    assert expect(made.model, ask("serial", 1024)).one == pytest.approx(16.0)


def test_the_refusal_for_lack_of_time_has_one_form() -> None:
    live = MadeLive()
    live.made.add(ask("serial", 1024), 2.0)
    queue = Queue(live, 100.0, clock=lambda: 0.0)
    small, large = ask("serial", 1024, repeats=1), ask("serial", 4096)
    assert queue.refusal(small) == ""
    assert queue.refusal(large) == "expected to take 2 min 08 s, more than 60 s per repetition"
    assert Queue(live, 5.0, clock=lambda: 0.0).refusal(small).endswith(", and 5.00 s of 5.00 s are left")
    assert Queue(live, 1000.0, most=200.0).refusal(ask("serial", 4096, repeats=1)) == ""


def test_the_number_of_passes_is_a_rule_by_their_length() -> None:
    live = MadeLive()
    live.made.add(ask("serial", 1024), 2.0)
    queue, rule = Queue(live, 100.0), ((1.0, 20), (10.0, 3), (inf, 1))
    wanted = [settle(ask("serial", n)) for n in (256, 1024, 2048)]
    assert [queue.repeated(one, rule).repeats for one in wanted] == [20, 3, 1]
    assert queue.repeated(settle(ask("serial", 256, repeats=7)), rule).repeats == 7, "asked for"
    assert queue.repeated(wanted[1], rule, within=5.0).repeats == 0, "by the run's own rules"


def test_a_runner_starts_runs_within_the_time_limit_and_gives_reasons_for_skipped_ones() -> None:
    live: Any = MadeLive(Made().add(ask("naive", 8192), 2.0))
    wanted = [settle(ask("naive", 64, repeats=1)), settle(ask("naive", 32768)), settle(ask("naive", 128, repeats=1))]
    skipped: list[str] = []
    runner = Runner(Queue(live, 100.0).go(), iter(wanted), lambda settled, why: skipped.append(f"{settled.n}: {why}"))
    assert runner.tick() and [one.n for one in live.started] == [64]
    live.busy = True
    assert runner.tick() and len(live.started) == 1, "one at a time"
    live.busy = False
    runner.run()
    assert [one.n for one in live.started] == [64, 128] and not runner.tick()
    assert skipped == ["32768: expected to take 2 min 08 s, more than 60 s per repetition"]


def test_long_runs_are_expected_by_the_cube_repeated_less_and_checked_once_for_each_graph() -> None:
    queue = Queue(MadeLive(Made().add(ask("naive", 2048), 0.1)), 1.0)
    assert [queue.repeated(settle(ask("naive", n)), REPETITIONS).repeats for n in (256, 2048, 4096, 16384)] == [20, 5, 3, 2]
    assert queue.expect(ask("naive", 65536)).one > MAX_SECONDS
    # a small graph's time is the launches', which do not grow by the cube
    tiny: Any = MadeLive(Made().add(ask("naive", 64), 0.001))
    assert Queue(tiny, 1.0).expect(ask("naive", 1024)).one == pytest.approx(0.001 * 16**2)
    made = Made().add(ask("naive", 2048), 0.01, stages={"verify": 9.0})
    live: Any = MadeLive(made)

    def total(wanted: Experiment) -> float:
        queue = Queue(live, 1.0)
        return queue.expect(queue.repeated(settle(wanted), REPETITIONS)).total

    assert total(ask("katz-kider", 2048)) < 5, "SciPy's distances of that graph are known"
    assert total(ask("katz-kider", 2048, seed=8)) > 8
    assert total(ask("katz-kider", 4096, verify="sample")) < 5
