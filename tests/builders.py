"""What many tests build: a model of events, a check that cancels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fwtui.engine.engine import Cancelled
from fwtui.stream.codec import Unknown
from fwtui.stream.events import Event, Occupancy
from fwtui.stream.model import Model


def model_of(told: Iterable[Event | Unknown]) -> Model:
    """What these events add up to."""
    model = Model()
    model.apply_all(told)
    return model


def occupancy(**changes: Any) -> Occupancy:
    """Of an op that keeps half of the warps busy, but for these fields."""
    usual = {"t": 1.0, "run": 1, "op": "rest", "threads": 256, "registers": 40, "shared_bytes": 0, "limiters": ()}
    return Occupancy(**{**usual, "blocks": 4, "warps": 32, "max_warps": 64, "source": "table", **changes})


def never() -> None:
    """A check that never cancels."""


def after(count: int) -> Callable[[], None]:
    """A check that raises Cancelled at its count-th call."""
    calls = iter(range(1, 10**9))

    def check() -> None:
        if next(calls) >= count:
            raise Cancelled

    return check
