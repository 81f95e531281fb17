"""Counters that a live session asks for while it goes on."""

from __future__ import annotations

import time
from threading import Event

import psutil
import pytest
from fake_ncu import Fake

from fwtui.common.errors import Refused
from fwtui.experiment.experiment import Experiment, settle
from fwtui.live.session import Live, Profile
from fwtui.stream import events

KATZ = settle(Experiment(kernel="katz-kider", n=512, options={"threads": 64}))


def after_a_run(telemetry_hz: float = 0, profile: Profile | None = None) -> Live:
    session = Live(telemetry_hz=telemetry_hz, profile=profile)
    session.tell(events.RunStarted(t=0, run=1, experiment=KATZ, title="", backend="cuda", phases=()))
    session.tell(events.RunDone(t=1, run=1, outcome="done"))
    session.asked[1] = KATZ
    return session


def drained(live: Live) -> list[str]:
    deadline = time.monotonic() + 20
    while live.busy:
        assert time.monotonic() < deadline
        live.drain()
        time.sleep(0.01)
    return [n.text for n in live.model.log]


def test_they_are_told_when_they_are_in() -> None:
    live = after_a_run(profile=lambda experiment, stop: {"rest": {"occupancy": 0.5}})
    live.count(1)
    assert live.busy
    with pytest.raises(Refused, match="run 1 are being profiled"):
        live.start(live.settled(Experiment(kernel="serial", n=4)))
    assert drained(live) == ["the counters of run 1 are ready"]
    assert live.model.runs[1].counters == {"rest": {"occupancy": 0.5}}


@pytest.mark.parametrize("outcome", ["the reason", ValueError("the reason")])
def test_why_there_are_none_is_told(outcome: str | Exception) -> None:
    def measured(experiment: Experiment, stop: Event) -> str:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    live = after_a_run(profile=measured)
    live.count(1)
    told = drained(live)
    assert len(told) == 1 and told[0].startswith("no counters of run 1: ") and told[0].endswith("the reason")
    assert live.model.runs[1].counters == {}


def test_cancel_ends_the_profiler_and_what_it_profiles(tool: Fake) -> None:
    live = after_a_run()
    tool.answers({"log": "", "sleep": True})
    live.count(1)
    while not (tool.folder / "call-0").exists():
        time.sleep(0.01)
    profiler = next(p for p in psutil.Process().children() if str(tool.path) in p.cmdline())
    live.cancel()
    assert drained(live) == ["no counters of run 1: the profiler was stopped"]
    assert not profiler.is_running() or profiler.status() == psutil.STATUS_ZOMBIE


def test_telemetry_pauses_meanwhile() -> None:
    go_on = Event()
    live = after_a_run(telemetry_hz=20, profile=lambda experiment, stop: "waited" if go_on.wait(20) else "never")
    try:
        live.drain()
        assert live.sampling.child is not None
        live.count(1)
        live.drain()
        assert live.sampling.child is None
        go_on.set()
        assert drained(live) == ["no counters of run 1: waited"]
        live.drain()
        assert live.sampling.child is not None
    finally:
        live.close()
