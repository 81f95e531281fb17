"""Load balance of several GPUs, and the traffic of the links between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import NamedTuple

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES
from fwtui.stream.model import Model, within

EVEN = 0.9  # minimum load / maximum load from which the load counts as even
IDLE = 0.05  # share of the time below which a GPU counts as idle
WORK = ("sm_utilisation", "gpu_power_watts", "gpu_utilisation")  # quantities of the load, best first
LINK = "nvlink_bytes_per_second"


class Balance(NamedTuple):
    """Mean loads during an interval, by GPU."""

    name: str  # the quantity, one of WORK
    work: Mapping[DeviceId, float]
    link: tuple[DeviceId, float, float | None] | None = None  # the GPU with the most NVLink traffic, bytes/s, share of its peak

    @property
    def word(self) -> str:
        """`idle`, `even` or `uneven`."""
        most = max(self.work.values())
        if most < IDLE and self.name != "gpu_power_watts":
            return "idle"
        return "even" if min(self.work.values()) >= EVEN * most else "uneven"

    @property
    def why(self) -> str:
        """The GPUs of least and greatest load with their loads, or the range."""
        quantity = QUANTITIES[self.name]
        least, most = (choose(self.work, key=self.work.__getitem__) for choose in (min, max))
        low, high = (quantity.unit.text(self.work[gpu]) for gpu in (least, most))
        if self.word == "uneven":
            return f"{quantity.title} {low} on GPU {least}, {high} on GPU {most}"
        if low == high:
            return f"{quantity.title} {high} on each of {len(self.work)} GPUs"
        number, unit = low.rsplit(" ", 1)
        return f"{quantity.title} {number if high.endswith(unit) else low} to {high} on {len(self.work)} GPUs"

    @property
    def links(self) -> tuple[str, ...]:
        """The largest NVLink traffic of a GPU, as a long and a short text; empty if it is unknown or 0."""
        if self.link is None or not self.link[1]:
            return ()
        gpu, carried, share = self.link
        traffic = f"mean NVLink traffic up to {units.bandwidth(carried)}"
        if not share:
            return (f"{traffic} (GPU {gpu})",)
        return f"{traffic}, {units.percent(share)} of its peak (GPU {gpu})", f"mean NVLink load up to {100 * share:.0f} %"


def balance(model: Model, gpus: Iterable[DeviceId], start: float, end: float) -> Balance | None:
    """Return the loads of these GPUs between two session times; None unless two of them have readings."""
    during = {gpu: within(model.readings.get(gpu, ()), start, end) for gpu in gpus}

    def means(name: str) -> dict[DeviceId, float]:
        values_by_gpu = {
            gpu: [value for r in readings if (value := getattr(r, name)) is not None] for gpu, readings in during.items()
        }
        return {gpu: fmean(values) for gpu, values in values_by_gpu.items() if values}

    for name in WORK:
        if len(work := means(name)) > 1:
            return Balance(name, work, _fullest(model, means(LINK)))
    return None


def _fullest(model: Model, carried: Mapping[DeviceId, float]) -> tuple[DeviceId, float, float | None] | None:
    if not carried:
        return None
    gpu = max(carried, key=carried.__getitem__)
    counters = model.devices.get(gpu)
    peak = counters.nvlink_peak_bytes_per_second if counters is not None else None
    return gpu, carried[gpu], carried[gpu] / peak if peak else None
