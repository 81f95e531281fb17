"""Devices of a run: lists are parsed, refused and chosen, and two GPUs in a session stay separate."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import run_started
from pretending import Pretend
from stand_ins import HeardChild, answering

from fwtui.analysis import limits
from fwtui.common.errors import NoGpu, Refused
from fwtui.engine.engine import Engine, HostEngine
from fwtui.experiment.device import FIRST_GPU, DeviceId, RankDevice, format_devices, places
from fwtui.experiment.experiment import Experiment, as_it_ran, changed, settle
from fwtui.live.session import Live
from fwtui.machine import device_choice
from fwtui.measure.worker import Worker
from fwtui.stream import codec, events, requests
from fwtui_kernels.plan import Target


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("0", (RankDevice(0, 0),)),
        ("3, 1", (RankDevice(0, 3), RankDevice(0, 1))),
        ("cpu,cpu", (RankDevice(0, None),) * 2),
    ],
)
def test_devices_read_what_they_write(text: str, found: tuple[RankDevice, ...]) -> None:
    assert places(text) == places(format_devices(found)) == found
    assert Experiment(devices=text).shape(10).ranks == max(1, len(found))


@pytest.mark.parametrize(
    ("kernel", "devices", "words"),
    [
        ("distributed", "0,x", "'x' in devices 0,x is neither cpu nor a GPU's number"),
        ("distributed", "0,", "'' in devices 0, is neither"),
        ("distributed", "99999", "devices '99999' is neither"),
        ("distributed", "\x1b[31m", "devices '.*' is neither"),
        ("distributed", "0,cpu", "mix GPUs and cpu"),
        ("distributed", "0,1,0", "name GPU 0 twice"),
        ("distributed", "0,1:0", "'1:0' in devices 0,1:0 is neither"),
        ("distributed-cpu", ",".join(["cpu"] * 65), "65 devices are more than 64"),
        ("distributed-cpu", "0,1", "distributed-cpu does not run on 0,1; choose distributed, or other devices"),
        ("distributed", "cpu,cpu", "distributed does not run on cpu,cpu; choose distributed-cpu"),
        ("serial", "cpu,cpu", "serial runs on one device, not on cpu,cpu; choose distributed-cpu or distributed"),
    ],
)
def test_invalid_lists_of_devices_are_refused(kernel: str, devices: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refusal:
        settle(Experiment(kernel=kernel, devices=devices))
    assert "\x1b" not in str(refusal.value)


def test_all_and_auto_are_resolved_and_no_mpi_is_refused(pretend: Pretend, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend.gpus(events.Device(t=0, name="a"), events.Device(t=0, name="b"))
    with monkeypatch.context() as installed:
        installed.setattr(device_choice, "find_spec", str)
        asked = device_choice.settle_here(Experiment(kernel="auto", devices="all"))
        assert (asked.kernel, asked.devices) == ("distributed", "0,1")
        assert device_choice.settle_here(Experiment(kernel="distributed", devices="1,0")).runs_on.index == 1
    monkeypatch.setitem(sys.modules, "nccl", None)  # it is not installed
    with pytest.raises(Refused, match=r"nccl4py is not installed; run: .*fwtui\[cluster\]"):
        device_choice.settle_here(Experiment(kernel="distributed", devices="0,1"))
    with pytest.raises(NoGpu, match="GPU 2 of devices 0,2 was not found"):
        device_choice.settle_here(Experiment(kernel="distributed", devices="0,2"))
    pretend.gpus()
    with pytest.raises(NoGpu, match="no GPU found for devices all"):
        device_choice.settle_here(Experiment(kernel="auto", devices="all"))
    assert device_choice.settle_here(Experiment(kernel="auto", devices="cpu,cpu")).kernel == "distributed-cpu"
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(Refused, match=r"mpi4py is not installed; run: .*fwtui\[cluster\]"):
        device_choice.settle_here(Experiment(kernel="auto", devices="cpu,cpu"))
    with pytest.raises(Refused, match="devices 0,1 and device 1 cannot be combined"):
        settle(Experiment(kernel="distributed", devices="0,1", device="1"))


SECOND = DeviceId("cuda", 1)
RUN = Experiment(kernel="naive", n=64, device="1")


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch, pretend: Pretend, tmp_path: Path) -> None:
    """Pretend that the machine has two different GPUs."""
    gpus = tuple(events.Device(t=0, name=name, compute_capability=(9, 0)) for name in ("one", "two"))
    pretend.gpus(*gpus)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def on_the_second(request: Any) -> Iterator[events.Event]:
    assert request.experiment.runs_on == SECOND
    if isinstance(request, requests.RunRequest):
        yield run_started(RUN, request.run, backend="cuda", gpu=1)
        yield events.Verdict(t=2, run=request.run, verdict="verified", how="", checksum="abc")
        yield events.RunDone(t=3, run=request.run, outcome="done")


def test_a_run_its_limits_and_telemetry_are_of_the_gpu_that_was_asked_for() -> None:
    watched: list[str] = []

    def child(module: str, arguments: Sequence[str], *given: Any) -> Any:
        if module != "fwtui.machine.telemetry.sampler":
            return answering(on_the_second)(module, arguments, *given)
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
    live.close()


def test_the_worker_has_an_engine_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    class On(HostEngine):
        def __init__(self, device: DeviceId) -> None:
            super().__init__(Target(device.backend))
            self.device = device

    used: list[Engine] = []
    runner: Any = SimpleNamespace(run=lambda job, *more: used.append(job.engine))
    worker = Worker(-1, 0.0, (), runner)
    monkeypatch.setattr("fwtui.engine.engine_for._opened", On)
    for gpu in (0, 1, 0):
        worker.serve(requests.RunRequest(1, settle(changed(RUN, device=str(gpu)))))
    worker.serve(requests.RunRequest(1, settle(Experiment(kernel="serial", n=9))))
    assert [str(engine.device) for engine in used] == ["0", "1", "0", "cpu"]
    monkeypatch.setattr("fwtui.engine.engine_for.SIMULATED", True)
    worker.serve(requests.RunRequest(1, settle(RUN)))
    assert used[-1].device == DeviceId("simulator")


def test_the_worker_refuses_unresolved_devices() -> None:
    heard, told = os.pipe()
    runner: Any = SimpleNamespace()
    Worker(told, 0.0, (), runner).serve(requests.RunRequest(4, as_it_ran(RUN, SECOND)))
    os.close(told)
    with open(heard, "rb") as pipe:
        began, done = [codec.decode(line[:-1]) for line in pipe]
    assert isinstance(began, events.RunStarted) and type(began.experiment) is Experiment and began.gpu == 1
    assert isinstance(done, events.RunDone) and (done.run, done.outcome) == (4, "failed")
    assert done.message == "options or launch was not resolved before the run started; run it again"
