"""What of a preset is run: in which time, how often, checked how, and what is left out and named."""

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from made_sessions import CLAIMS, Made, MadeLive, int32

from fwtui.campaigns.queue import MOST_SECONDS, Queue
from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.campaign import PASSES, Performer, held
from fwtui.campaigns.reproduce.claim import UNTESTABLE
from fwtui.campaigns.reproduce.preset import Preset, RunScale
from fwtui.campaigns.reproduce.results import LEFT_OUT, Results, ask
from fwtui.commands.reproduce import lines
from fwtui.experiment.experiment import Experiment, settle
from fwtui.stream import events


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
        assert [run.n for run in held(live.model, name).runs] == sizes


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("quick", [True, False])
def test_every_preset_asks_for_what_its_kernels_offer(name: str, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fwtui.campaigns.reproduce.documents.cs542200.written", lambda graph, path: iter([None, ""]))
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
