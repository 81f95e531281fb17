"""Which device a text, an event or a request means."""

from __future__ import annotations

import pytest

from fwtui.common.errors import Refused
from fwtui.experiment.device import CPU, FIRST_GPU, DeviceId
from fwtui.experiment.experiment import Experiment
from fwtui.stream import events, requests

SECOND = DeviceId("cuda", 1)
NAMED = {"auto": DeviceId(), "0": FIRST_GPU, "1": SECOND, "9999": DeviceId("cuda", 9999), "simulator": DeviceId("simulator")}


@pytest.mark.parametrize(("text", "device"), NAMED.items())
def test_a_text_names_a_device_which_says_it_again(text: str, device: DeviceId) -> None:
    assert DeviceId.parse(text) == device and str(device) == text
    assert Experiment(device=text).device_id == device


def test_what_names_no_device_is_refused_and_events_name_theirs_by_backend_and_number() -> None:
    for text in ("", "gpu", "-1", "1.0", "٣", "²", "12345", " 1", "cpu"):
        with pytest.raises(Refused, match="is neither auto, simulator nor a GPU's number"):
            DeviceId.parse(text)
        assert Experiment(device=text).device_id == DeviceId(), "of a made-up session"
    assert DeviceId.parse("cpu", "cpu") == CPU and DeviceId.parse("1", "cpu") == SECOND
    with pytest.raises(Refused, match="'simulator' is neither auto, cpu nor"):
        DeviceId.parse("simulator", "cpu")
    assert DeviceId("cpu", 3) == CPU and SECOND.on("cpu") == CPU and SECOND.on("cuda") == SECOND
    assert DeviceId().on("cuda") == DeviceId("simulator").on("cuda") == FIRST_GPU
    assert len({FIRST_GPU, SECOND, CPU, DeviceId("cpu", 1)}) == 3
    assert sorted([SECOND, CPU, FIRST_GPU]) == [CPU, FIRST_GPU, SECOND]
    begun = events.RunStarted(t=0, run=1, experiment=Experiment(), title="", backend="cuda", phases=(), gpu=1)
    of_gpu = events.Device(t=0, gpu=1), events.Telemetry(t=0, gpu=1), begun
    asked = events.Limits(t=0, backend="cuda", gpu=1), requests.ProbeRequest("cuda", 1)
    assert {told.device_id for told in (*of_gpu, *asked)} == {SECOND}
    assert events.Limits(t=0, backend="cpu", gpu=1).device_id == requests.ProbeRequest("cpu", 1).device_id == CPU
    assert events.Telemetry(t=0).device_id == FIRST_GPU, "of an old session"
