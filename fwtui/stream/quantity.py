"""The title, format and scale of a measured quantity, declared at its field in fwtui.stream.events.Telemetry."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, get_type_hints

from fwtui.common import units

GPM = "GPM"  # source of the counters that the GPU itself samples
REASONS: dict[int, str] = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x200: "board limit",
    0x400: "reliability",
}
# idle, application clocks and display clocks are choices, not limits that the card ran into
HARMLESS = 0x1 | 0x2 | 0x100


class Unit(NamedTuple):
    """The format of values, and their width in cells."""

    text: Callable[[float], str]
    cells: int = 8


WATTS, MEGAHERTZ, CELSIUS = Unit("{:.0f} W".format, 6), Unit("{:.0f} MHz".format), Unit("{:.0f} °C".format, 6)
PERCENT, MEMORY, DURATION = Unit(lambda share: f"{100 * share:.0f} %", 5), Unit(units.memory), Unit(units.duration)
TRAFFIC = Unit(units.bandwidth, 9)


class Quantity(NamedTuple):
    """The display properties of a telemetry field."""

    title: str
    unit: Unit
    meaning: str  # description in the list of tracks
    most: float | str | None = None  # greatest possible value, or the field of the Device (or Machine) that contains it
    about: float = 1.0  # end of the strip's scale while the maximum is unknown
    least: float = 0.0
    later: bool = False  # shown only if the user chooses it
    host: bool = False  # value of the host, not of a GPU
    place: int = 9  # position among the quantities of its kind
    short: str = ""  # title on the strip, if `title` is too long
    source: str = ""  # the counter or interface that measures it
    among: int = 0  # position in the view of several GPUs, where the first of two wins; 0: only if chosen


def quantities_of(kind: type) -> dict[str, Quantity]:
    """Map the fields of an event type to their quantities, in display order."""
    hints = get_type_hints(kind, include_extras=True)
    quantities = {
        name: one for name, hint in hints.items() for one in getattr(hint, "__metadata__", ()) if isinstance(one, Quantity)
    }
    return dict(sorted(quantities.items(), key=lambda item: (item[1].host, item[1].later, item[1].place)))


def throttled(mask: int | None) -> tuple[str, ...]:
    """Return the reasons for lowered clocks; empty if there are none or they are unknown."""
    if not mask:
        return ()
    reasons = [reason for bit, reason in REASONS.items() if mask & bit]
    unknown = mask & ~(HARMLESS | sum(REASONS))
    return tuple(reasons) + ((f"reason {unknown:#x}",) if unknown else ())
