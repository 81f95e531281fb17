"""The queue of a campaign: time, what is expected of a run, what is left out and what is run again."""

from contextlib import nullcontext
from math import inf
from typing import Any

import msgspec
import pytest
from made_sessions import CLAIMS, Made, MadeLive, int32

from fwtui.analysis.estimate import FIRST_COMPILE, expect, ran_before
from fwtui.campaigns.queue import MOST_SECONDS, Queue
from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.campaign import PASSES, Performer, results_of
from fwtui.campaigns.reproduce.claim import UNTESTABLE
from fwtui.campaigns.reproduce.preset import Preset, RunScale
from fwtui.campaigns.reproduce.results import LEFT_OUT, Results, ask
from fwtui.commands.reproduce import lines
from fwtui.experiment.experiment import Experiment, settle
from fwtui.stream import events


def test_time_passes_only_while_it_goes_and_is_shared() -> None:
    now = [0.0]
    queue = Queue(MadeLive(), 100.0, clock=lambda: now[-1])
    now.append(50.0)
    assert (queue.left, queue.going) == (100.0, False)
    queue.go()
    now.append(60.0)
    assert (queue.spent, queue.left, queue.going) == (10.0, 90.0, True)
    part = queue.share(1 / 3)
    now.append(75.0)
    assert (part.left, queue.left) == (15.0, 75.0)
    queue.hold()
    now.append(500.0)
    assert (queue.spent, part.left) == (25.0, 0.0)
    queue.go()
    queue.go()
    now.append(510.0)
    assert queue.spent == 35.0


@pytest.mark.parametrize(
    ("live", "why"),
    [
        (MadeLive(why="no GPU here"), "no GPU here"),
        (MadeLive(dies=True), "the worker died"),
        (MadeLive(outcome="failed", message="it broke"), "it broke"),
        (MadeLive(outcome="done"), ""),
        (MadeLive(verdict="wrong"), ""),
    ],
)
def test_why_a_run_came_to_no_end(live: MadeLive, why: str) -> None:
    run, told = Queue(live, 1.0).run(settle(ask("naive", 64)))
    assert told == why and (run is None) == (not live.model.runs)


def test_what_is_expected_of_a_run_from_those_before() -> None:
    made = Made().add(ask("serial", 1024), 2.0, stages={"graph": 0.5, "verify": 0.25})
    like = expect(made.model, ask("serial", 2048, repeats=3))
    # a warm-up, three passes and one with a clock at every phase; the graph and the sampled check grow with n^2
    assert like == (16.0, pytest.approx(5 * 16.0 + 4 * 0.75), 0.0)
    warm_up = 16.0  # it is compiled
    assert expect(made.model, ask("serial", 2048, repeats=3), brief=True).total == pytest.approx(warm_up + 3 * 16.0 + 3.0)
    other = expect(made.model, ask("tiled-cpu", 1024, repeats=1), rates={"cpu": 1024**3})
    assert other == (1.0, pytest.approx(3.0 + 0.5 + 0.25 + FIRST_COMPILE), FIRST_COMPILE)
    assert ran_before(made.model, ask("serial", 1024)) and not ran_before(made.model, ask("serial", 1023))
    made = Made()
    for seconds in (1.0, 9.0, 2.0):
        made.add(ask("serial", 512), seconds)
    assert expect(made.model, ask("serial", 1024)).one == pytest.approx(16.0)


def test_why_there_is_no_time_is_said_in_one_way() -> None:
    live = MadeLive()
    live.made.add(ask("serial", 1024), 2.0)
    queue = Queue(live, 100.0, clock=lambda: 0.0, advice="; ask for more")
    small, large = ask("serial", 1024, repeats=1), ask("serial", 4096)
    assert queue.refusal(small) == ""
    assert queue.refusal(large) == "expected to take 2 min 08 s, more than 60 s a pass"
    assert queue.refusal(small, 90.0, reserved=30.0) == ("expected to take 90.0 s, and 70.0 s of 100 s are left; ask for more"), (
        "the others have theirs first"
    )
    assert Queue(live, 100.0, most=200.0).refusal(large, 90.0) == ""
    assert Queue(MadeLive(), 100.0, earlier=list(live.model.runs.values())).expect(large).one == pytest.approx(128.0)


def test_the_number_of_passes_is_a_rule_by_their_length() -> None:
    live = MadeLive()
    live.made.add(ask("serial", 1024), 2.0)
    queue, rule = Queue(live, 100.0), ((1.0, 20), (10.0, 3), (inf, 1))
    wanted = [settle(ask("serial", n)) for n in (256, 1024, 2048)]
    assert [queue.repeated(one, rule).repeats for one in wanted] == [20, 3, 1]
    assert queue.repeated(settle(ask("serial", 256, repeats=7)), rule).repeats == 7, "asked for"
    assert queue.repeated(wanted[1], rule, within=5.0).repeats == 0, "by the run's own rules"


def performed(live: Any, *wanted: Experiment, gpu: bool = True, limit: float = 1000.0) -> list[str]:
    preset = Preset("test", "Test", (), lambda results, scale: iter(wanted), seconds=limit)
    Performer(live, preset, RunScale(gpu), limit, lambda text: None).perform()
    return [m.text for m in live.model.markers if m.text.startswith(LEFT_OUT)]


def test_what_would_take_too_long_needs_a_gpu_or_is_missing_is_left_out_and_named_once() -> None:
    live: Any = MadeLive(Made().add(ask("naive", 8192), 2.0))
    left_out = performed(live, ask("naive", 32768), ask("naive", 65536))
    assert not live.started and len(left_out) == 2 and all(text.endswith("more than 60 s a pass") for text in left_out)
    live = MadeLive(Made().add(ask("naive", 4096), 0.25))
    assert not performed(live, ask("naive", 8192)) and live.started[0].repeats == 2
    live = MadeLive(Made().add(ask("naive", 4096), 0.25))
    assert "are left" in performed(live, ask("naive", 8192), limit=1.0)[0] and not live.started
    live: Any = MadeLive(Made(gpu=None))
    left_out = performed(live, ask("naive", 64), ask("naive", 128), Experiment(kernel="no-such"), gpu=False)
    assert left_out == [f"{LEFT_OUT}naive: needs a GPU", f"{LEFT_OUT}no-such: kernel missing"]
    results = Results(live.model)
    assert CLAIMS["SF4"].answer(results).reason == "naive: needs a GPU"


def test_long_runs_are_expected_by_the_cube_repeated_less_and_checked_once_for_each_graph() -> None:
    queue = Queue(MadeLive(Made().add(ask("naive", 2048), 0.1)), 1.0)
    assert [queue.repeated(settle(ask("naive", n)), PASSES).repeats for n in (256, 2048, 4096, 16384)] == [20, 5, 3, 2]
    assert queue.expect(ask("naive", 65536)).one > MOST_SECONDS
    # a small graph's time is the launches', which do not grow by the cube
    tiny: Any = MadeLive(Made().add(ask("naive", 64), 0.001))
    assert Queue(tiny, 1.0).expect(ask("naive", 1024)).one == pytest.approx(0.001 * 16**2)
    made = Made().add(ask("naive", 2048), 0.01, stages={"verify": 9.0})
    live: Any = MadeLive(made)

    def total(wanted: Experiment) -> float:
        queue = Queue(live, 1.0)
        return queue.expect(queue.repeated(settle(wanted), PASSES)).total

    assert total(ask("katz-kider", 2048)) < 5, "SciPy's distances of that graph are known"
    assert total(ask("katz-kider", 2048, seed=8)) > 8
    assert total(ask("katz-kider", 4096, verify="sample")) < 5


def test_nothing_is_run_twice_but_what_was_run_before() -> None:
    live: Any = MadeLive(Made())
    performed(live, ask("naive", 512), ask("naive", 512), ask("naive", 2048), ask("naive", 2049), ask("serial", 513))
    assert [(w.n, w.verify) for w in live.started] == [(512, "auto"), (2048, "auto"), (2049, "sample"), (513, "sample")]
    live: Any = MadeLive(Made().add(ask("naive", 512)))
    live.now = 2.0
    live.made.began = 3.0
    performed(live, ask("naive", 512))
    assert [w.n for w in live.started] == [512]
    live.model.apply(events.Marker(t=4.0, text="end of reproduce test"))
    live.model.apply(events.Marker(t=5.0, text="reproduce other"))
    live.made.began = 6.0
    live.start(ask("naive", 1024))
    live.model.markers[0] = msgspec.structs.replace(live.model.markers[0], t=2.0, text="reproduce test --quick")
    for name, sizes in (("test", [512]), ("other", [1024]), ("never", [512, 512, 1024])):
        assert [run.n for run in results_of(live.model, name).runs] == sizes


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("quick", [True, False])
def test_every_preset_asks_for_what_its_kernels_offer(name: str, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwtui.campaigns.reproduce.documents.cs542200.write_graph", lambda graph, path: iter([None, ""]))
    live: Any = MadeLive(Made())
    preset = presets()[name]
    results = Performer(live, preset, RunScale(gpu=True, quick=quick), 1e9, lambda text: None).perform()
    results.compiled = lambda kernel: "not compiled here"
    assert not live.refused
    assert 5 <= len(live.started) <= 60, "a recorded session would be too large"
    untestable = {c.id: c.answer(results).reason for c in preset.claims if c.answer(results).verdict == UNTESTABLE}
    allowed = {"HE5", "HE6", "HE7", "CS1", "CS6", "SF9", "SF11", "CA3", "CA8", "CA10", "LS10"}  # need more than times
    assert set(untestable) <= allowed, untestable
    assert all(text.strip() for text in lines(preset, results, [(c, c.answer(results)) for c in preset.claims]) if text)


def test_counters_are_profiled_apart_and_told_to_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    live: Any = MadeLive(Made().add(int32("katz-kider", 1024, tile=8)).add(int32("katz-kider", 4096, tile=8)))
    live.now, live.tell, live.without_sampler = 5.0, live.model.apply, nullcontext
    said: list[str] = []
    performer = Performer(live, presets()["cs542200"], RunScale(True), 100.0, said.append)
    ncu: dict[str, Any] = {"measure": lambda wanted: {"rest": {"seconds": float(wanted.n)}}}
    monkeypatch.setattr("fwtui.live.counters.measure", lambda wanted: ncu["measure"](wanted))
    performer.count(Results(live.model))
    assert Results(live.model).counter(int32("katz-kider", 1024, tile=8), "rest", "seconds") == 1024.0
    assert "no counters of blocked-branch: blocked-branch was not run" in said
    ncu["measure"] = lambda wanted: "ncu is not here"
    performer.count(Results(live.model))
    assert said[-1] == "no counters: ncu is not here"
