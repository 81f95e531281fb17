"""Quantities over time: what telemetry can show, each with fixed ends, and its readings in bins of equal length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fwtui.common import units
from fwtui.stream import events
from fwtui.stream.model import Model

HOLD_SECONDS = 1.5  # a reading stands until the next one, but not for longer than this
GIB = 2**30
Known = Callable[[Model], float | None]
T = TypeVar("T")


class Quantity(NamedTuple):
    """One lane: its name, a reading's value, the value in words, and the ends of its scale.

    Where nobody knows the greatest possible value, the scale ends at a round number above what was read.
    """

    name: str
    title: str
    value: Callable[[events.Telemetry], float | None]
    text: Callable[[float], str]
    most: Known
    meaning: str  # for the choice of lanes
    least: float = 0.0
    first: bool = True  # whether it is shown before anybody has chosen
    host: bool = False  # of the machine, not of its GPU


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _gpu(name: str) -> Known:
    return lambda model: getattr(model.gpu, name, None)


def _whole(model: Model) -> float:
    return 1.0


def _unknown(model: Model) -> None:
    return None


def _host_memory(model: Model) -> float | None:
    return model.header.machine.memory_bytes if model.header is not None else None


def _hot(model: Model) -> float:
    return 95.0


WATTS, MEGAHERTZ, CELSIUS = "{:.0f} W".format, "{:.0f} MHz".format, "{:.0f} °C".format
QUANTITIES = (
    Quantity("power", "power", lambda r: r.gpu_power_watts, WATTS, _gpu("power_limit_watts"), "of the board"),
    Quantity("clock", "SM clock", lambda r: r.gpu_clock_mhz, MEGAHERTZ, _gpu("max_clock_mhz"), "of the multiprocessors"),
    Quantity("temperature", "temp", lambda r: r.gpu_temperature, CELSIUS, _hot, "of the GPU", 20.0),
    Quantity("utilisation", "util", lambda r: r.gpu_utilisation, _percent, _whole, "time with any kernel running (NVML)"),
    Quantity("occupancy", "SM occ", lambda r: r.sm_occupancy, _percent, _whole, "resident warps of all possible ones (GPM)"),
    Quantity("dram", "DRAM", lambda r: r.dram_utilisation, _percent, _whole, "of the memory's peak (GPM)"),
    Quantity("memory", "memory", lambda r: r.gpu_memory_bytes, units.memory, _gpu("memory_bytes"), "held on the GPU"),
    Quantity("sm", "SM busy", lambda r: r.sm_utilisation, _percent, _whole, "multiprocessors with work (GPM)", first=False),
    Quantity("integer", "int pipe", lambda r: r.integer_utilisation, _percent, _whole, "of its peak (GPM)", first=False),
    Quantity("fp32", "fp32 pipe", lambda r: r.fp32_utilisation, _percent, _whole, "of its peak (GPM)", first=False),
    Quantity("memory-clock", "mem clock", lambda r: r.memory_clock_mhz, MEGAHERTZ, _unknown, "of GPU memory", first=False),
    Quantity("cpu", "CPU", lambda r: r.cpu_utilisation, _percent, _whole, "all cores of the machine", host=True),
    Quantity("cpu-clock", "CPU clock", lambda r: r.cpu_clock_mhz, MEGAHERTZ, _unknown, "mean of the cores", host=True),
    Quantity("host-memory", "host mem", lambda r: r.host_memory_bytes, units.memory, _host_memory, "used", host=True),
    Quantity("cost", "sampling", lambda r: r.cost_seconds, units.duration, _unknown, "what one reading cost", first=False),
)
NAMED = {quantity.name: quantity for quantity in QUANTITIES}


def usual(model: Model) -> tuple[str, ...]:
    """What is shown before anybody has chosen: the GPU's quantities, or the machine's where there is none."""
    host = model.gpu is None
    return tuple(quantity.name for quantity in QUANTITIES if quantity.first and quantity.host == host)


class Bins:
    """Means of readings in bins of `seconds`, counted from time 0; follows a list that grows, or is cut by a rewind."""

    def __init__(self, seconds: float, names: Sequence[str]):
        self.seconds = seconds
        self.names = tuple(names)
        self._clear()

    def _clear(self) -> None:
        self._sums: list[dict[int, tuple[float, int]]] = [{} for _ in self.names]  # per quantity: bin -> sum, count
        self._masks: dict[int, int] = {}  # bin -> reasons for lowered clocks
        self._taken = 0
        self._last: events.Telemetry | None = None
        self.greatest = [0.0] * len(self.names)  # that was ever read

    def take(self, readings: Sequence[events.Telemetry]) -> None:
        """Agree with these readings; only what is new costs anything."""
        if self._taken > len(readings) or (self._taken and readings[self._taken - 1] is not self._last):
            self._clear()
        values = [NAMED[name].value for name in self.names]
        for reading in readings[self._taken :]:
            place = self.place(reading.t)
            for number, (value_of, sums) in enumerate(zip(values, self._sums, strict=True)):
                value = value_of(reading)
                if value is not None:
                    total, count = sums.get(place, (0.0, 0))
                    sums[place] = (total + value, count + 1)
                    self.greatest[number] = max(self.greatest[number], value)
            if reading.throttle is not None:
                self._masks[place] = self._masks.get(place, 0) | reading.throttle
        self._taken = len(readings)
        self._last = readings[-1] if readings else None

    def place(self, t: float) -> int:
        """The bin of a time."""
        return int(t / self.seconds)

    def means(self, number: int, first: int, count: int) -> list[float | None]:
        """Means in the bins from `first` on. A reading stands until the next one, but not for too long."""
        sums = self._sums[number]
        return self._held({place: sums[place][0] / sums[place][1] for place in self._near(sums, first, count)}, first, count)

    def masks(self, first: int, count: int) -> list[int | None]:
        """The throttle masks of those bins; None where nothing was read."""
        return self._held({place: self._masks[place] for place in self._near(self._masks, first, count)}, first, count)

    @property
    def _hold(self) -> int:
        return math.ceil(HOLD_SECONDS / self.seconds)

    def _near(self, told: Mapping[int, object], first: int, count: int) -> Iterator[int]:
        return (place for place in range(first - self._hold, first + count) if place in told)

    def _held(self, told: Mapping[int, T], first: int, count: int) -> list[T | None]:
        end = self.place(self._last.t) if self._last is not None else -1  # nothing is known after the last reading
        row: list[T | None] = []
        last: int | None = None
        for place in range(first - self._hold, first + count):
            if place in told:
                last = place
            if place >= first:
                row.append(told[last] if last is not None and place - last <= self._hold and place <= end else None)
        return row


SPANS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 4 * 3600.0, 12 * 3600.0)


def span_for(seconds: float) -> float:
    """The least of the usual spans that covers so many seconds."""
    return next((span for span in SPANS if span >= seconds), max(SPANS[-1], seconds))


STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)


def moments(start: float, end: float, most: int) -> list[float]:
    """Round times between two times, at most so many, as a clock would be divided."""
    if most < 1 or end <= start:
        return []
    step = next((step for step in STEPS if (end - start) / step <= most), (end - start) / most)
    return [place * step for place in range(math.ceil(start / step - 1e-9), math.floor(end / step + 1e-9) + 1)][:most]
