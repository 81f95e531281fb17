"""The sampler of a live session: when there is one, which GPUs it follows, and how often it begins again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from stub_child import HeardChild

from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.live.sampling import RESTARTS, Sampling


@pytest.fixture
def begun() -> list[HeardChild]:
    """Every sampler that was begun."""
    return []


def sampling(begun: list[HeardChild], hz: float = 10, identify: bool = False, clock: Sequence[float] = (100.0,)) -> Sampling:
    """Its time is the last element of `clock`."""

    def begin(*given: Any) -> Any:
        begun.append(HeardChild(*given))
        return begun[-1]

    return Sampling(100.0, hz, FIRST_GPU, identify, begin, lambda: clock[-1])


def test_it_follows_the_gpus_that_run(begun: list[HeardChild]) -> None:
    kept = sampling(begun, identify=True)
    kept.keep()
    first = kept.child
    assert first is not None and begun[0].arguments == ["--hz", "10", "--identify", "--device", "0"]
    assert kept.follow((FIRST_GPU,)) is None and kept.child is first
    assert kept.follow([DeviceId("cuda", 2), FIRST_GPU]) is first and first.exit_code == 0 and kept.child is None
    kept.keep()
    assert [child.arguments for child in begun[1:]] == [["--hz", "10", "--identify", "--device", "2,0"]]
    assert kept.follow([DeviceId("cuda", 2), FIRST_GPU]) is None and kept.child is not None


def test_there_is_none_while_it_is_held_and_none_where_nobody_wants_one(begun: list[HeardChild]) -> None:
    kept = sampling(begun)
    assert kept.hold() is None
    kept.keep()
    assert kept.child is None
    kept.release()
    kept.keep()
    child = kept.child
    assert child is not None and kept.hold() is child and kept.child is None
    unwanted = sampling(begun, hz=0)
    unwanted.keep()
    unwanted.hold()
    unwanted.release()
    unwanted.keep()
    assert unwanted.child is None and len(begun) == 1


def test_every_sampler_learns_which_process_measures(begun: list[HeardChild]) -> None:
    kept = sampling(begun)
    kept.measures((7,))
    kept.keep()
    assert begun[0].heard == [b"7\n"]
    kept.measures((8,))
    kept.follow((DeviceId("cuda", 1),))
    kept.keep()
    assert [child.heard for child in begun] == [[b"7\n", b"8\n"], [b"8\n"]]


def test_one_that_dies_begins_again_later_and_later_and_then_no_more(begun: list[HeardChild]) -> None:
    clock = [100.0]
    kept = sampling(begun, clock=clock)
    said = []
    for death in range(1, RESTARTS + 2):
        kept.keep()
        child: Any = kept.child
        assert child is not None and kept.died(7.0) is None, "it lives"
        child.exit_code = -11
        child.lines.append("the last")
        assert kept.died(7.0) is None, "it still has something to say"
        child.lines.clear()
        fault = kept.died(7.0)
        assert fault is not None and (fault.t, fault.source, fault.code) == (7.0, "sampler", "died")
        said.append(fault.message.rpartition("; ")[2])
        clock.append(clock[-1] + 2.0**death - 0.01)
        kept.keep()
        assert kept.child is None, "not yet"
        clock.append(clock[-1] + 0.02)
    assert said == [*(f"it starts again in {2**death} s" for death in range(1, RESTARTS + 1)), "telemetry stops"]
    clock.append(clock[-1] + 1e6)
    kept.keep()
    assert kept.child is None and len(begun) == RESTARTS + 1
