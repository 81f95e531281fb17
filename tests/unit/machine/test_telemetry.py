"""The pure parts of telemetry: throttle reasons, believable numbers, the host's readings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from types import SimpleNamespace

import psutil
import pytest

from fwtui.machine.telemetry import bounds, sampler
from fwtui.stream.throttle import throttled


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (None, ()),
        (0, ()),
        (0x1 | 0x2 | 0x100, ()),
        (0x4, ("power cap",)),
        (0x1 | 0x20 | 0x80, ("thermal", "power brake")),
        (0x8 | 0x40, ("hardware slowdown", "hardware thermal")),
        (0x10000, ("reason 0x10000",)),
    ],
)
def test_throttle_reasons_in_words(mask: int | None, words: tuple[str, ...]) -> None:
    assert throttled(mask) == words


@pytest.mark.parametrize(("percent", "expected"), [(42, 0.42), (0, 0.0), (110, 1.1), (151, None), (-1, None), (None, None)])
def test_shares_are_believable_or_none(percent: float | None, expected: float | None) -> None:
    assert bounds.share(percent) == expected


def test_numbers_that_mean_unknown_are_none() -> None:
    assert bounds.share(math.nan) is None
    assert bounds.scaled(2**32 - 1, 1e-3) is None
    assert bounds.scaled(math.inf, 1.0) is None
    assert bounds.scaled(0, 1.0) == 0
    assert bounds.count(2**64 - 1) is None


def test_rounding_keeps_four_digits_of_any_size() -> None:
    assert [bounds.significant(x) for x in (0.00012344, 123456.0, 0.0, 1979.6)] == [0.0001234, 123500.0, 0.0, 1980.0]


def system(percent: Callable[..., object] = psutil.cpu_percent, clock: Callable[[], object] = psutil.cpu_freq) -> SimpleNamespace:
    """What the host is asked."""
    return SimpleNamespace(cpu_percent=percent, cpu_freq=clock, virtual_memory=psutil.virtual_memory)


def test_a_host_without_a_clock_says_none() -> None:
    times = iter([None, SimpleNamespace(current=0.0), SimpleNamespace(current=2600.0)])
    reader = sampler.Host(0.0, sampler.Own(), system(clock=lambda: next(times)))
    assert [reader.read(now)["cpu_clock_mhz"] for now in (0.0, 1.0, 2.0, 2.5)] == [None, None, 2600.0, 2600.0]


def test_cpu_time_over_too_short_a_window_is_none() -> None:
    reader = sampler.Host(0.0, sampler.Own(), system(lambda percpu=False: [37.0] if percpu else 37.0))
    assert [reader.read(now)["cpu_utilisation"] for now in (0.01, 0.1)] == [None, 0.37]


def test_what_the_program_itself_uses_is_no_work_of_others() -> None:
    used = {os.getpid(): 1.0, os.getppid(): 10.0, 77: 100.0}
    own = sampler.Own(used.get)
    reader = sampler.Host(0.0, own, system(lambda percpu=False: [0.0, 100.0, 0.0, 50.0] if percpu else 37.5), {1, 3})

    def read(now: float, *spent: float) -> float:
        for pid, more in zip(used, spent, strict=True):
            used[pid] += more
        return reader.read(now)["other_cpu_utilisation"]

    assert read(1.0, 0.1, 0.2, 0.8) == pytest.approx((1.5 - 0.3) / 2), "of the two cores that it may use; nobody named the worker"
    own.workers = (77,)
    assert read(2.0, 0.0, 0.0, 0.8) == pytest.approx(1.5 / 2), "what a process used before it was named says nothing of now"
    assert read(3.0, 0.1, 0.2, 0.8) == pytest.approx((1.5 - 1.1) / 2)
    assert read(4.0, 0.5, 0.5, 0.8) == 0, "counted a little later than the cores were"
    used.pop(77)
    assert read(5.0, 0.1, 0.1) == pytest.approx((1.5 - 0.2) / 2), "it is gone"


def test_the_processor_time_of_a_process_that_is_gone_is_unknown() -> None:
    assert (sampler.processor_seconds(os.getpid()) or 0) > 0 and sampler.processor_seconds(2**22) is None
