"""Two GPUs in one session: what is asked of one is asked of no other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pretending import Pretend
from stub_child import HeardChild, StubChild, answering

from fwtui.analysis import limits
from fwtui.engine.engine import Engine, HostEngine
from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.experiment.experiment import Experiment, as_it_ran, changed, settle
from fwtui.live.session import Live
from fwtui.machine import tuned
from fwtui.machine.tuned import TunedTrial
from fwtui.measure.worker import Worker
from fwtui.stream import codec, events, requests
from fwtui_kernels.plan import Target

SECOND = DeviceId("cuda", 1)
RUN = Experiment(kernel="naive", n=64, device="1")


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch, pretend: Pretend, tmp_path: Path) -> None:
    """A machine with two GPUs of two kinds."""
    gpus = tuple(events.Device(t=0, name=name, compute_capability=(9, 0)) for name in ("one", "two"))
    pretend.gpus(*gpus)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def told(request: Any) -> Iterator[events.Event]:
    assert request.experiment.runs_on == SECOND
    if isinstance(request, requests.RunRequest):
        yield events.RunStarted(t=1, run=request.run, experiment=RUN, title="", backend="cuda", phases=(), gpu=1)
        yield events.Verdict(t=2, run=request.run, verdict="verified", how="", checksum="abc")
        yield events.RunDone(t=3, run=request.run, outcome="done")


def test_a_run_its_limits_its_tuning_telemetry_and_answers_are_of_the_gpu_that_was_asked_for() -> None:
    watched: list[str] = []

    def child(module: str, arguments: Sequence[str], *given: Any) -> Any:
        if module != "fwtui.machine.telemetry.sampler":
            return answering(told)(module, arguments, *given)
        watched.append(arguments[-1])
        return HeardChild(module, arguments, *given)

    for device in (FIRST_GPU, SECOND):
        limits.save(events.Limits(t=0, backend="cuda", gpu=device.index, device=f"limits of {device}", complete=True))
    live = Live(child=child)
    live.drain()
    run = live.start(live.settled(RUN))
    live.drain()
    assert live.model.runs[run].device == SECOND == live.model.watched and watched == ["0", "1"]
    assert {device: kept.device for device, kept in live.model.measured.items()} == {SECOND: "limits of 1"}
    live.answer(run)
    assert isinstance(live.worker, StubChild) and isinstance(live.worker.asked[-1], requests.AnswerRequest)
    live.close()
    trial = TunedTrial(n=64, dtype="float32", nonnegative=True, kernel="naive", seconds=1.0)
    tuned.save([trial], SECOND)
    assert tuned.load(SECOND) == [trial] and tuned.load(FIRST_GPU) == []


def test_the_worker_has_an_engine_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    class On(HostEngine):
        def __init__(self, device: DeviceId) -> None:
            super().__init__(Target(device.backend))
            self.device = device

    used: list[Engine] = []
    runner: Any = SimpleNamespace(run=lambda run, experiment, engine, *more: used.append(engine))
    worker = Worker(-1, 0.0, (), runner)
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr("fwtui.engine.engine_for._opened", On)
    for gpu in (0, 1, 0):
        worker.serve(requests.RunRequest(1, settle(changed(RUN, device=str(gpu)))))
    worker.serve(requests.RunRequest(1, settle(Experiment(kernel="serial", n=9))))
    assert [str(engine.device) for engine in used] == ["0", "1", "0", "cpu"]
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    worker.serve(requests.RunRequest(1, settle(RUN)))
    assert used[-1].device == DeviceId("simulator")


def test_the_worker_refuses_what_is_open() -> None:
    heard, told = os.pipe()
    runner: Any = SimpleNamespace()
    Worker(told, 0.0, (), runner).serve(requests.RunRequest(4, as_it_ran(RUN, SECOND)))
    os.close(told)
    with open(heard, "rb") as pipe:
        began, done = [codec.decode(line[:-1]) for line in pipe]
    assert isinstance(began, events.RunStarted) and type(began.experiment) is Experiment and began.gpu == 1
    assert isinstance(done, events.RunDone) and (done.run, done.outcome) == (4, "failed")
    assert done.message == "options or launch of the experiment is open, and nothing is chosen where it runs; run it again"
