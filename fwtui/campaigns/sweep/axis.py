"""The axes of a sweep, with values in the form's syntax."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fwtui.common.errors import Refused
from fwtui.common.text import excerpt, quoted
from fwtui.common.units import counted
from fwtui.experiment.device import MAX_DEVICES
from fwtui.experiment.experiment import HOW_MEASURED, Experiment, kernel_named
from fwtui.experiment.fields import BY_NAME, FIELDS
from fwtui.experiment.user_kernel_registry import known_kernels
from fwtui_kernels import registry
from fwtui_kernels.plan import Kernel

ALL = "all"
DEVICES = "devices"  # an axis of numbers of devices, while the field has a list of them
# fields that can be swept, besides the kernels' options
NAMES = ("kernel", "n", "kind", "density", "dtype", "tile", "launch", "memory", DEVICES)
MEASURED = ("n", "density", "tile", DEVICES)  # axes with numeric values, as are all options
MAX_VALUES = 100


class SweepAxis(NamedTuple):
    """An axis of a sweep and its distinct values in order."""

    name: str
    values: tuple[str, ...]


def names() -> tuple[str, ...]:
    """Return the names of all possible axes."""
    options = dict.fromkeys(o.name for kernel in known_kernels().values() for o in kernel.options)
    return (*NAMES, *options)


def amounts(name: str) -> bool:
    """Return whether the values of that axis are numeric."""
    return name in MEASURED or name not in BY_NAME


def read_axis(name: str, text: str, kernels: Sequence[Kernel]) -> SweepAxis:
    """Return the axis from a user's text: 256,512 or, for n, 256..4096 (doubling) or 256..4096+256, or all. Raises Refused."""
    if name not in names():
        raise Refused(f"{quoted(name)} cannot be swept; choose one of {', '.join(names())}")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    read = _range if name == "n" else lambda word: [_value(name, word)]
    values = _all(name, kernels) if parts == [ALL] else [value for part in parts for value in read(part)]
    if not values:
        raise Refused(f"{name} has no values to sweep; pass some, separated by commas")
    if len(values) > MAX_VALUES:
        raise Refused(f"{name} has {len(values)} values, and a sweep takes at most {MAX_VALUES}; pass fewer")
    return SweepAxis(name, tuple(_sorted(name, values)))


def value(experiment: Experiment, name: str) -> str:
    """Return the experiment's value on that axis; empty if its kernel has no such choice."""
    field = BY_NAME.get(name)
    kernel = known_kernels().get(experiment.kernel)
    if name == DEVICES:
        return str(max(1, len(experiment.places))) if kernel is not None and kernel.ranked else ""
    if field is None:
        return str(experiment.options[name]) if name in experiment.options else ""
    return "" if name == "tile" and not experiment.tile else field.show(experiment)


def named(name: str, text: str) -> str:
    """Format a value with its field, such as tile 32; names have no prefix."""
    if name == DEVICES:
        return counted(int(text), "device", "devices")
    return text if name in ("kernel", "kind", "dtype", "launch", "memory") else f"{name.replace('_', ' ')} {text}"


def varied(experiments: Iterable[Experiment]) -> tuple[SweepAxis, ...]:
    """Return the axes on which these experiments differ, without differences that only follow from their kernels."""
    varying = list(experiments)
    axes: list[SweepAxis] = []
    for name in names():
        values = [(e.kernel, v) for e in varying if (v := value(e, name))]
        free = name in ("kernel", "n", "kind", "density") or len({k for k, _ in values}) < len(set(values))
        axis = SweepAxis(name, tuple(_sorted(name, [v for _, v in values])))
        axes += [axis] * (free and len(axis.values) > 1)
    return (*axes, *_hidden(varying, axes))


def _hidden(experiments: Sequence[Experiment], axes: Sequence[SweepAxis]) -> Iterator[SweepAxis]:
    """Yield an axis for fields that cannot be swept but distinguish graphs with equal values on all axes."""
    alike: dict[tuple[str, ...], list[Experiment]] = {}
    for e in experiments:
        alike.setdefault(tuple(value(e, axis.name) for axis in axes), []).append(e)
    for name in (field.name for field in FIELDS if field.name not in (*NAMES, *HOW_MEASURED)):
        if any(len({value(e, name) for e in group}) > 1 for group in alike.values()):
            yield SweepAxis(name, tuple(_sorted(name, [value(e, name) for e in experiments])))


def _value(name: str, text: str) -> str:
    """Convert a value to the form's syntax."""
    field = BY_NAME.get(name)
    if name == DEVICES:
        return str(_devices(text))
    if field is not None:
        return field.show(Experiment(**field.read(text)))
    options = [o for kernel in known_kernels().values() for o in kernel.options if o.name == name]
    offered = sorted({v for o in options for v in o.values})
    read = next((v for o in options if (v := o.read(text)) in o.values), None)
    if read is None:
        raise Refused(f"{name} {excerpt(text)} is not supported by any kernel; choose one of {', '.join(map(str, offered))}")
    return str(read)


def on_devices(count: int, kernel: Kernel) -> str:
    """Return the first devices of a machine in the syntax of the field, which is empty for one device."""
    return ",".join("cpu" if kernel.backend == "cpu" else str(gpu) for gpu in range(count)) if count > 1 else ""


def _devices(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MAX_DEVICES):
        raise Refused(f"devices {excerpt(text)}: a sweep takes numbers of devices, 1 to {MAX_DEVICES}, like 1,2,4")
    return int(text)


def _range(text: str) -> list[str]:
    """Parse one size, or a range that doubles or advances by a step."""
    first, dots, rest = text.partition("..")
    if not dots:
        return [_value("n", text)]
    last, plus, step = rest.partition("+")
    low, high = int(_value("n", first)), int(_value("n", last))
    if low > high:
        raise Refused(f"n {excerpt(text)} is in descending order; write {high}..{low}")
    if plus:
        sizes = range(low, high + 1, int(_value("n", step)))
        if len(sizes) > MAX_VALUES:
            raise Refused(f"n {excerpt(text)} has {len(sizes)} values, and a sweep takes at most {MAX_VALUES}; use larger steps")
        return [str(n) for n in sizes]
    return [str(low << doubled) for doubled in range((high // low).bit_length())]


def _all(name: str, kernels: Sequence[Kernel]) -> list[str]:
    if name == "kernel":
        return list(known_kernels())
    field = BY_NAME.get(name)
    if field is not None:
        if field.choices is None or name == DEVICES:
            raise Refused(f"{name} cannot be all; pass values, separated by commas")
        return [choice for kernel in kernels for choice in field.choices(kernel, False)]
    return [str(v) for kernel in kernels for o in kernel.options if o.name == name for v in o.values]


def _sorted(name: str, values: Sequence[str]) -> list[str]:
    """Return the distinct values: numbers by size, kernels in ladder order, others in the given order."""
    once = list(dict.fromkeys(values))
    if amounts(name):
        return sorted(once, key=float)
    if name == "kernel":
        ladder = list(registry())
        return sorted(once, key=lambda k: ladder.index(kernel_named(k).id) if k in ladder else len(ladder))
    return once
