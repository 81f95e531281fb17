"""Load balance of several GPUs, in one sentence."""

import pytest

from fwtui.analysis.gpu_balance import balance
from fwtui.experiment.device import DeviceId
from fwtui.stream import events
from fwtui.stream.model import Model

GPUS = tuple(DeviceId("cuda", index) for index in range(3))


def worked(name: str, *values: float | None, peak: float | None = None, **more: float) -> Model:
    model = Model()
    for gpu, value in enumerate(values):
        model.apply(events.Device(t=0, gpu=gpu, nvlink_peak_bytes_per_second=peak))
        for t, amount in ((0.0, 0.0), (1.0, value), (2.0, value), (3.0, 0.0)):
            model.apply(events.Telemetry(t=t, gpu=gpu, **{name: amount}, **{key: each * (gpu + 1) for key, each in more.items()}))  # type: ignore[arg-type]
    return model


@pytest.mark.parametrize(
    ("name", "values", "word", "why"),
    [
        ("sm_utilisation", (0.97, 0.41, 0.96), "uneven", "SM activity 41 % on GPU 1, 97 % on GPU 0"),
        ("sm_utilisation", (0.97, 0.94, 0.96), "even", "SM activity 94 to 97 % on 3 GPUs"),
        ("sm_utilisation", (0.97, 0.97, 0.97), "even", "SM activity 97 % on each of 3 GPUs"),
        ("sm_utilisation", (0.01, 0.0, 0.02), "idle", "SM activity 0 to 2 % on 3 GPUs"),
        ("gpu_power_watts", (600.0, 80.0, 590.0), "uneven", "power 80 W on GPU 1, 600 W on GPU 0"),
        ("gpu_power_watts", (0.01, 0.01), "even", "power 0 W on each of 2 GPUs"),
        ("gpu_utilisation", (1.0, None, 0.5), "uneven", "GPU util 50 % on GPU 2, 100 % on GPU 0"),
    ],
)
def test_the_busiest_and_the_least_busy(name: str, values: tuple[float | None, ...], word: str, why: str) -> None:
    found = balance(worked(name, *values), GPUS, 1.0, 2.0)
    assert found is not None and (found.word, found.why, found.links) == (word, why, ())


def test_links_are_a_share_where_their_peak_is_known_and_one_gpu_is_not_compared() -> None:
    full = ("mean NVLink traffic up to 322 GB/s, 33.7 % of its peak (GPU 1)", "mean NVLink load up to 34 %")
    for peak, said in ((956e9, full), (None, ("mean NVLink traffic up to 322 GB/s (GPU 1)",))):
        found = balance(worked("sm_utilisation", 0.9, 0.9, peak=peak, nvlink_bytes_per_second=161e9), GPUS, 1.0, 2.0)
        assert found is not None and found.links == said
    silent = balance(worked("sm_utilisation", 0.9, 0.9, peak=956e9, nvlink_bytes_per_second=0.0), GPUS, 1.0, 2.0)
    assert silent is not None and silent.links == ()
    assert balance(worked("sm_utilisation", 0.9), GPUS, 1.0, 2.0) is None
    assert balance(worked("sm_utilisation", 0.9, 0.4), GPUS, 5.0, 6.0) is None, "nothing was read then"
