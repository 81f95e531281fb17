"""Peak rates of devices: a run's share of its peak rate, and the stored measurements."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple, TypeVar

import msgspec

from fwtui.common import units
from fwtui.experiment.device import DeviceId
from fwtui.machine import device_cache
from fwtui.stream import codec, events
from fwtui.stream.model import Model
from fwtui.stream.run import Run
from fwtui_kernels.forms import RelaxForm
from fwtui_kernels.plan import DTYPES
from fwtui_kernels.probes.probe_forms import EDITION, right_for

KIND = f"limits-{EDITION}"
HOW_TO_MEASURE = "fwtui doctor --measure"
CLOCK_FACTORS = (0.1, 2.0)  # between a run's clock and the probe's; a reading outside is invalid


L = TypeVar("L", events.FormLimit, events.LevelLimit)


class Limit(NamedTuple):
    """The peak rate of a run's device, or of all its devices together, for its data type and sign."""

    form: RelaxForm
    relaxations_per_second: float  # scaled to the clock of the run, if both clocks were recorded
    share: float | None  # rate of the run / peak rate; None without a time
    clock_mhz: float | None = None  # clock that the peak rate refers to
    noisy: bool = False  # measured while other programs used the device, so that it may be too low


def limit_of(model: Model, run: Run) -> Limit | None:
    """Return the peak rate of the fastest form that is valid for the run's distances; None if none was measured."""
    return model.once(_limit_of, run)


def _limit_of(model: Model, run: Run) -> Limit | None:
    limits = model.measured.get(run.device)
    if limits is None or not limits.complete:
        return None
    nonnegative = run.graph is None or run.graph.low is None or run.graph.low >= 0
    if (found := _fastest(limits, run.experiment.dtype, nonnegative)) is None:
        return None
    form, best = found
    factor = _clock_factor(model, run, best)
    rate = (best.relaxations_per_second or 0.0) * factor * run.device_count
    share = run.rate / rate if run.rate and rate else None
    clock = best.clock_mhz * factor if best.clock_mhz else None
    return Limit(form, rate, share if share is not None and isfinite(share) else None, clock, best.noisy)


def _fastest(limits: events.Limits, dtype: str, nonnegative: bool) -> tuple[RelaxForm, events.FormLimit] | None:
    """Return the fastest form that is valid for a data type and sign; None if none was measured."""
    measured = {limit.form: limit for limit in limits.forms if limit.relaxations_per_second}
    valid = ((form, measured[form.key]) for form in right_for(limits.backend, dtype, nonnegative) if form.key in measured)
    return max(valid, key=lambda pair: pair[1].relaxations_per_second or 0.0, default=None)


def describe_peaks(limits: events.Limits) -> list[str]:
    """Return the peak rate of each data type for non-negative weights, in relaxations/s: float32 108 G, int16 228 G (noisy)."""
    found = [(dtype, pair[1]) for dtype in DTYPES if (pair := _fastest(limits, dtype, True)) is not None]
    return [f"{dtype} {units.scaled(one.relaxations_per_second, '')}{' (noisy)' * one.noisy}" for dtype, one in found]


def share_of_peak(run: Run, gpu: events.Device | None) -> float | None:
    """Return effective bandwidth / peak bandwidth of the run's GPUs; None for a CPU kernel."""
    peak = of_all_devices(run, gpu.peak_bytes_per_second) if gpu is not None and run.backend == "cuda" else None
    return run.bandwidth / peak if run.bandwidth and peak else None


def of_all_devices(run: Run, rate: float | None) -> float | None:
    """Scale a device's rate to all devices of the run."""
    return rate * run.device_count if rate is not None else None


def _clock_factor(model: Model, run: Run, form: events.FormLimit) -> float:
    """Return the clock of the run / the clock of the measurement; 1 if one is unknown or the ratio is implausible."""
    evidence = model.evidence(run) if run.backend == "cuda" else None
    if evidence is None or not evidence.gpu_clock_mhz or not form.clock_mhz:
        return 1.0
    factor = evidence.gpu_clock_mhz / form.clock_mhz
    return factor if CLOCK_FACTORS[0] <= factor <= CLOCK_FACTORS[1] else 1.0


def load(device: DeviceId) -> events.Limits | None:
    """Return the stored peak rates of a device of this machine; None if there are none."""
    event = device_cache.read(KIND, device, lambda data: codec.decode(data.rstrip(b"\n")))
    if not isinstance(event, events.Limits) or event.backend != device.backend or not event.complete:
        return None
    return msgspec.structs.replace(event, gpu=device.index)


def save(limits: events.Limits) -> events.Limits:
    """Store complete limits merged with the stored ones, and return them: the best measurement of each form counts.

    Other work can only slow a measurement down. Limits with a note are not stored, so that they are measured again.
    """
    if not limits.complete or limits.note:
        return limits
    before = load(limits.device_id)
    best = limits if before is None else _best(before, limits)
    device_cache.write(KIND, limits.device_id, codec.encode(msgspec.structs.replace(best, t=0.0, gpu=0)))
    return best


def _best(before: events.Limits, now: events.Limits) -> events.Limits:
    forms, levels = {limit.form: limit for limit in before.forms}, {limit.level: limit for limit in before.levels}
    copied = max(before.copy_bytes_per_second or 0.0, now.copy_bytes_per_second or 0.0) or None
    return msgspec.structs.replace(
        now,
        forms=tuple(_better(forms.get(limit.form, limit), limit) for limit in now.forms),
        levels=tuple(_better(levels.get(limit.level, limit), limit) for limit in now.levels),
        copy_bytes_per_second=copied,
        copy_noisy=now.copy_noisy and (before.copy_noisy or before.copy_bytes_per_second is None),
    )


def _better(before: L, now: L) -> L:
    """Return the larger of each rate, noisy only if both are."""
    names = [name for name in now.__struct_fields__ if name not in ("form", "level", "noisy", "clock_mhz")]
    best = max((before, now), key=lambda one: getattr(one, names[0]) or 0.0)
    rates = {name: max(getattr(before, name) or 0.0, getattr(now, name) or 0.0) or None for name in names}
    return msgspec.structs.replace(best, **rates, noisy=before.noisy and now.noisy)


def noise(limits: events.Limits) -> str:
    """Return a warning if other programs ran while limits were measured; else empty."""
    parts = [*limits.forms, *limits.levels]
    if not (limits.copy_noisy or any(one.noisy for one in parts)):
        return ""
    return "limits marked as noisy may be too low, because other programs ran; measure them again on an idle machine"
