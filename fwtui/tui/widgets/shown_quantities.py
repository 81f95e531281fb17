"""The telemetry quantities that are shown by default, and the ends of their scales."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES
from fwtui.stream.model import Model
from fwtui.stream.quantity import Quantity


def default_quantities(model: Model, host: bool = False) -> dict[str, Quantity]:
    """Return the quantities that are shown by default: those of the GPU; without a GPU or with `host`, those of the machine."""
    host = host or model.gpu is None
    return {key: quantity for key, quantity in QUANTITIES.items() if not quantity.later and quantity.host == host}


def default_quantities_of_several(model: Model, gpus: Sequence[DeviceId]) -> dict[str, Quantity]:
    """Return the default quantities for several GPUs: those in their last telemetry samples, the most important first."""
    last = [reading for gpu in gpus for reading in model.readings.get(gpu, ())[-2:]]
    at: dict[int, str] = {}
    for key, quantity in QUANTITIES.items():
        if quantity.among and any(getattr(reading, key) is not None for reading in last):
            at.setdefault(quantity.among, key)
    return {at[place]: QUANTITIES[at[place]] for place in sorted(at)} or default_quantities(model)


def most_of(quantity: Quantity, model: Model, gpu: DeviceId | None = None) -> float | None:
    """Return the maximum of a quantity on that GPU, by default on the GPU that is watched; None if it is unknown."""
    if not isinstance(quantity.most, str):
        return quantity.most
    machine = model.header.machine if model.header is not None else None
    device = model.gpu if gpu is None else model.devices.get(gpu)
    return getattr(machine if quantity.host else device, quantity.most, None)
