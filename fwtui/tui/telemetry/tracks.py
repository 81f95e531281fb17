"""Telemetry over time: the tracks of quantities and GPUs, their readings in bins of equal length, and round times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fwtui.experiment.device import DeviceId
from fwtui.stream import events
from fwtui.stream.events import QUANTITIES
from fwtui.stream.model import Model

HOLD_SECONDS = 1.5  # a reading holds until the next one, for at most this or twice the mean interval
T = TypeVar("T")
V = TypeVar("V")


class Track(NamedTuple):
    """A quantity of one GPU, or of the machine, over time."""

    name: str
    gpu: DeviceId | None  # None: the machine's
    title: str
    head: str = ""  # the line above a group, in its first track

    def readings(self, model: Model) -> Sequence[events.Telemetry]:
        return model.of_host if self.gpu is None else model.readings.get(self.gpu, ())


def tracks_of(model: Model, names: Sequence[str], gpus: Sequence[DeviceId]) -> list[Track]:
    """Return a track per quantity of one GPU; for several GPUs a group of tracks per quantity."""
    tracks: list[Track] = []
    for name in names:
        quantity = QUANTITIES[name]
        if quantity.host or len(gpus) == 1:
            tracks.append(Track(name, None if quantity.host else gpus[0], quantity.title))
            continue
        heads = [f"{quantity.title}, {quantity.meaning}", *[""] * len(gpus)]
        tracks += [Track(name, gpu, f"GPU {gpu}", head) for gpu, head in zip(gpus, heads, strict=False)]
    return tracks


class Bins:
    """Means and maxima of readings, in bins of `seconds` from time 0.

    It follows a list that grows, or that a rewind has cut.
    """

    def __init__(self, seconds: float, names: Sequence[str]):
        self.seconds = seconds
        self.names = tuple(names)
        self._clear()

    def _clear(self) -> None:
        # one dict per quantity: bin -> sum, count and maximum of the readings
        self._values: list[dict[int, tuple[float, int, float]]] = [{} for _ in self.names]
        self._masks: dict[int, int] = {}  # bin -> reasons for lowered clocks
        self._taken = 0
        self._last: events.Telemetry | None = None
        self._between = 0.0  # mean seconds between two readings

    def take(self, readings: Sequence[events.Telemetry]) -> None:
        """Take these readings; only new ones cost anything."""
        if self._taken > len(readings) or (self._taken and readings[self._taken - 1] is not self._last):
            self._clear()
        for reading in readings[self._taken :]:
            place = self.place(reading.t)
            for name, values in zip(self.names, self._values, strict=True):
                if (value := getattr(reading, name)) is not None:
                    total, count, highest = values.get(place, (0.0, 0, value))
                    values[place] = (total + value, count + 1, max(highest, value))
            if reading.throttle is not None:
                self._masks[place] = self._masks.get(place, 0) | reading.throttle
        self._taken = len(readings)
        self._last = readings[-1] if readings else None
        self._between = (readings[-1].t - readings[0].t) / (len(readings) - 1) if len(readings) > 1 else 0.0

    @property
    def hold(self) -> float:
        """The seconds for which a reading holds."""
        return max(HOLD_SECONDS, 2 * self._between)

    def place(self, t: float) -> int:
        """Return the bin of a time."""
        return int(t / self.seconds)

    def means(self, number: int, first: int, count: int) -> list[float | None]:
        """Return the means of `count` bins from `first` on; a reading holds until the next one, but not for too long."""
        return self._held(self._values[number], first, count, lambda one: one[0] / one[1])

    def mean_and_maximum(self, number: int, first: int, count: int) -> tuple[float | None, float | None]:
        """Return the mean and the maximum of all readings in these bins; None without readings."""
        there = [one for place in range(first, first + count) if (one := self._values[number].get(place)) is not None]
        if not there:
            return None, None
        return sum(total for total, _, _ in there) / sum(count for _, count, _ in there), max(highest for *_, highest in there)

    def masks(self, first: int, count: int) -> list[int | None]:
        """Return the throttle masks of these bins; None for a bin without a reading."""
        return self._held(self._masks, first, count, lambda mask: mask)

    def _held(self, values: Mapping[int, T], first: int, count: int, value: Callable[[T], V]) -> list[V | None]:
        hold = math.ceil(self.hold / self.seconds)
        end = self.place(self._last.t) if self._last is not None else -1  # bins after the last reading are empty
        row: list[V | None] = []
        last: int | None = None
        for place in range(first - hold, first + count):
            if place in values:
                last = place
            if place >= first:
                row.append(value(values[last]) if last is not None and place - last <= hold and place <= end else None)
        return row


SPANS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 4 * 3600.0, 12 * 3600.0)


def span_for(seconds: float) -> float:
    """Return the shortest of SPANS that covers this many seconds."""
    return next((span for span in SPANS if span >= seconds), max(SPANS[-1], seconds))


STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)


def moments(start: float, end: float, most: int) -> list[float]:
    """Return at most `most` round clock times between two times."""
    if most < 1 or end <= start:
        return []
    step = next((step for step in STEPS if (end - start) / step <= most), (end - start) / most)
    return [place * step for place in range(math.ceil(start / step - 1e-9), math.floor(end / step + 1e-9) + 1)][:most]
