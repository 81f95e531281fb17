"""Lanes of a plan as CUDA streams, tested on streams that only record their calls."""

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

    def record(self) -> object:
        event = object()
        self.notes.append(("record", event))
        return event

    def wait(self, event: object) -> None:
        self.notes.append(("wait", event))


class Program:
    def launch(self, step: Step, buffers: Any, stream: Stream) -> None:
        stream.notes.append(("launch", step))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a CudaEngine on recording streams, without a driver."""
    module = pytest.importorskip("fwtui.engine.cuda_engine", reason="the CUDA packages are not installed")
    monkeypatch.setattr(module.driver_calls, "most_urgent_priority", lambda: -5)
    engine = object.__new__(module.CudaEngine)
    engine.gpu = SimpleNamespace(create_stream=lambda options: Stream(options.priority))
    engine.stream = Stream()
    engine._streams = {0: engine.stream}
    return engine


def run(streams: list[Stream], random: Random) -> list[Any]:
    """Return the launches in one random order that the streams' events allow."""
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
    engine._launch_on_streams(Program(), plan, None, lambda: None)
    engine.stream.notes.append(("launch", END))
    streams = list(engine._streams.values())
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
    assert [engine._stream(lane).priority for lane in (2, 1, 2, 0, 9)] == [-2, -1, -2, 0, -5]
    assert engine._stream(1) is engine._stream(1) and engine._stream(0) is engine.stream
