"""The devices of a run on several: what is read, what is refused, and what auto puts in their place."""

from __future__ import annotations

import sys

import pytest
from pretending import Pretend

from fwtui.common.errors import NoGpu, Refused
from fwtui.experiment.device import RankDevice, places, written
from fwtui.experiment.experiment import Experiment, settle
from fwtui.live import rank_job
from fwtui.machine import auto
from fwtui.stream import events


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("0", (RankDevice(0, 0),)),
        ("3, 1", (RankDevice(0, 3), RankDevice(0, 1))),
        ("cpu,cpu", (RankDevice(0, None),) * 2),
        ("0,1:0", (RankDevice(0, 0), RankDevice(1, 0))),
        ("cpu,12:cpu", (RankDevice(0, None), RankDevice(12, None))),
    ],
)
def test_devices_read_what_they_write(text: str, found: tuple[RankDevice, ...]) -> None:
    assert places(text) == places(written(found)) == found
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
        ("distributed-cpu", ",".join(["cpu"] * 65), "65 devices on one machine are more than 64"),
        ("distributed-cpu", ",".join(["cpu"] * 513), "513 devices are more than 512"),
        ("distributed-cpu", "0,1", "distributed-cpu does not run on 0,1; choose distributed, or other devices"),
        ("distributed", "cpu,cpu", "distributed does not run on cpu,cpu; choose distributed-cpu"),
        ("serial", "cpu,cpu", "serial runs on one device, not on cpu,cpu; choose distributed-cpu or distributed"),
    ],
)
def test_what_cannot_be_is_refused(kernel: str, devices: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refusal:
        settle(Experiment(kernel=kernel, devices=devices))
    assert "\x1b" not in str(refusal.value)


def test_all_and_auto_are_resolved_and_several_machines_or_no_mpi_refused(
    pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend.gpus(events.Device(t=0, name="a"), events.Device(t=0, name="b"))
    asked = auto.settle_here(Experiment(kernel="auto", devices="all"))
    assert (asked.kernel, asked.devices) == ("distributed", "0,1")
    assert auto.settle_here(Experiment(kernel="distributed", devices="1,0")).runs_on.index == 1
    with pytest.raises(NoGpu, match="there is no GPU 2 of devices 0,2 here"):
        auto.settle_here(Experiment(kernel="distributed", devices="0,2"))
    pretend.gpus()
    with pytest.raises(NoGpu, match="no GPU here for devices all"):
        auto.settle_here(Experiment(kernel="auto", devices="all"))
    assert auto.settle_here(Experiment(kernel="auto", devices="cpu,cpu")).kernel == "distributed-cpu"
    rank_job.check_job("cpu,cpu")
    with pytest.raises(Refused, match="several machines; start `fwtui rank`"):
        rank_job.check_job("0,1:0")
    monkeypatch.setitem(sys.modules, "mpi4py", None)  # it is not installed
    with pytest.raises(Refused, match=r"mpi4py is not installed; run: .*fwtui\[cluster\]"):
        rank_job.check_job("cpu,cpu")
    with pytest.raises(Refused, match="devices 0,1 and device 1 exclude each other"):
        settle(Experiment(kernel="distributed", devices="0,1", device="1"))
