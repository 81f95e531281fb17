"""The sampler of a live session: when there is one, which GPUs it follows, and how often it begins again."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from stub_child import StubChild

from fwtui.experiment.device import FIRST_GPU, DeviceId
from fwtui.live import sampling
from fwtui.live.sampling import RESTARTS, Sampling


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time as the sampling sees it: its last element."""
    now = [100.0]
    monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: now[-1]))
    return now


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> list[Sequence[str]]:
    """The arguments of every sampler that was begun."""
    told: list[Sequence[str]] = []

    def begin(module: str, arguments: Sequence[str], origin: float) -> Any:
        told.append(arguments)
        return StubChild(module, arguments, origin)

    monkeypatch.setattr(sampling, "Child", begin)
    return told


def test_it_follows_the_gpus_that_run(begun: list[Sequence[str]]) -> None:
    kept = Sampling(100.0, 10, FIRST_GPU, True)
    kept.keep()
    first = kept.child
    assert first is not None and begun == [["--hz", "10", "--identify", "--device", "0"]]
    assert kept.follow((FIRST_GPU,)) is None and kept.child is first
    assert kept.follow([DeviceId("cuda", 2), FIRST_GPU]) is first and first.exit_code == 0 and kept.child is None
    kept.keep()
    assert begun[1:] == [["--hz", "10", "--identify", "--device", "2,0"]]
    assert kept.follow([DeviceId("cuda", 2), FIRST_GPU]) is None and kept.child is not None


def test_there_is_none_while_it_is_held_and_none_where_nobody_wants_one(begun: list[Sequence[str]]) -> None:
    kept = Sampling(100.0, 10, FIRST_GPU, False)
    assert kept.hold() is None
    kept.keep()
    assert kept.child is None
    kept.release()
    kept.keep()
    child = kept.child
    assert child is not None and kept.hold() is child and kept.child is None
    unwanted = Sampling(100.0, 0, FIRST_GPU, False)
    unwanted.keep()
    unwanted.hold()
    unwanted.release()
    unwanted.keep()
    assert unwanted.child is None and len(begun) == 1


def test_every_sampler_learns_which_process_measures(begun: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[bytes] = []
    monkeypatch.setattr(StubChild, "send", lambda child, line: said.append(line))
    kept = Sampling(100.0, 10, FIRST_GPU, False)
    kept.measures((7,))
    kept.keep()
    assert said == [b"7\n"]
    kept.measures((8,))
    kept.follow((DeviceId("cuda", 1),))
    kept.keep()
    assert said == [b"7\n", b"8\n", b"8\n"]


def test_one_that_dies_begins_again_later_and_later_and_then_no_more(begun: list[Sequence[str]], clock: list[float]) -> None:
    kept = Sampling(100.0, 10, FIRST_GPU, False)
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
