"""The telemetry quantities that are shown by default, and the ends of their scales."""

from __future__ import annotations

from collections.abc import Sequence

from fwtui.experiment.device import DeviceId
from fwtui.stream.events import QUANTITIES
from fwtui.stream.model import Model
from fwtui.stream.quantity import Quantity


def usual(model: Model, host: bool = False) -> dict[str, Quantity]:
    """What is shown before the user has chosen: the GPU's quantities, or the machine's without a GPU or if `host`."""
    host = host or model.gpu is None
    return {key: quantity for key, quantity in QUANTITIES.items() if not quantity.later and quantity.host == host}


def among(model: Model, gpus: Sequence[DeviceId]) -> dict[str, Quantity]:
    """What is shown of several GPUs before the user has chosen: what their last readings have, the most telling first."""
    last = [reading for gpu in gpus for reading in model.readings.get(gpu, ())[-2:]]
    at: dict[int, str] = {}
    for key, quantity in QUANTITIES.items():
        if quantity.among and any(getattr(reading, key) is not None for reading in last):
            at.setdefault(quantity.among, key)
    return {at[place]: QUANTITIES[at[place]] for place in sorted(at)} or usual(model)


def most_of(quantity: Quantity, model: Model, gpu: DeviceId | None = None) -> float | None:
    """The greatest possible value, on that GPU or the one that is watched; None if it is not known."""
    if not isinstance(quantity.most, str):
        return quantity.most
    machine = model.header.machine if model.header is not None else None
    device = model.gpu if gpu is None else model.devices.get(gpu)
    return getattr(machine if quantity.host else device, quantity.most, None)
