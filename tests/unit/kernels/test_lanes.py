"""How a plan's lanes become streams: seen on streams that only note what they are given."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from fwtui.analysis.plan_checks import ancestors
from fwtui_kernels import registry
from fwtui_kernels.plan import Shape, Step

START, END = "start", "end"


class Stream:
    def __init__(self, priority: int = 0):
        self.priority = priority
        self.notes: list[tuple[str, Any]] = []


class Event:
    def record(self, stream: Stream) -> None:
        stream.notes.append(("record", self))

    def wait(self, stream: Stream) -> None:
        stream.notes.append(("wait", self))


class Program:
    def launch(self, step: Step, buffers: Any, stream: Stream) -> None:
        stream.notes.append(("launch", step))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A CudaEngine on such streams, without a driver."""
    module = pytest.importorskip("fwtui.engine.cuda_engine", reason="the CUDA packages are not installed")
    made: list[Stream] = []

    def create(flags: int, priority: int) -> tuple[Any, int]:
        made.append(Stream(priority))
        return module.driver.CUresult.CUDA_SUCCESS, len(made) - 1

    driver = SimpleNamespace(
        CUresult=module.driver.CUresult, CUstream_flags=module.driver.CUstream_flags, cuStreamCreateWithPriority=create
    )
    monkeypatch.setattr(module, "driver", driver)
    monkeypatch.setattr(module, "cuda", SimpleNamespace(event=lambda timing: Event(), external_stream=made.__getitem__))
    engine = object.__new__(module.CudaEngine)
    engine.stream = Stream()
    engine._lanes = {0: engine.stream}
    return engine


def run(streams: list[Stream], random: Random) -> list[Any]:
    """What is launched, in one random order that the streams' records and waits allow."""
    left = [list(stream.notes) for stream in streams]
    recorded: set[int] = set()
    launched: list[Any] = []
    while any(left):
        ready = [notes for notes in left if notes and (notes[0][0] != "wait" or id(notes[0][1]) in recorded)]
        assert ready, "the streams wait for each other"
        what, subject = random.choice(ready).pop(0)
        if what == "record":
            recorded.add(id(subject))
        elif what == "launch":
            launched.append(subject)
    return launched


def test_streams_keep_every_order_of_the_plan_between_its_start_and_its_end(engine: Any) -> None:
    plan = list(registry()["look-ahead"].plan(Shape(40, 8), False))
    engine.stream.notes.append(("launch", START))
    engine._launch_lanes(Program(), plan, None, lambda: None)
    engine.stream.notes.append(("launch", END))
    streams = list(engine._lanes.values())
    before, orders = ancestors(plan), set()
    for seed in range(30):
        launched = run(streams, Random(seed))
        assert launched[0] == START and launched[-1] == END and len(launched) == len(plan) + 2
        place = {id(step): at for at, step in enumerate(launched)}
        for late, step in enumerate(plan):
            assert all(place[id(plan[early])] < place[id(step)] for early in range(late) if before[late] >> early & 1)
        orders.add(tuple(place[id(step)] for step in plan))
    assert len(orders) > 1, "nothing runs beside anything"


def test_a_higher_lane_is_a_more_urgent_stream(engine: Any) -> None:
    # to CUDA a lower number is more urgent, and 0 is what streams have by default
    assert [engine._lane(lane).priority for lane in (2, 1, 2, 0)] == [-2, -1, -2, 0]
    assert engine._lane(1) is engine._lane(1) and engine._lane(0) is engine.stream
