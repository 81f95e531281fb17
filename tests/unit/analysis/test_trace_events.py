"""Sessions as traces: every event conforms to the Trace Event Format, and slices nest."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from builders import run_started

from fwtui.__main__ import main
from fwtui.analysis.trace_events import trace
from fwtui.experiment.experiment import Experiment
from fwtui.sessions.folders import shipped_folder
from fwtui.stream import events

# what the format requires of each kind of event, by type, beside `name`, `pid` and `tid`
REQUIRED: dict[str, dict[str, tuple[type, ...]]] = {
    "X": {"ts": (int, float), "dur": (int, float), "args": (dict,), "cat": (str,)},
    "C": {"ts": (int, float), "args": (dict,)},
    "i": {"ts": (int, float), "s": (str,), "cat": (str,)},
    "M": {"args": (dict,)},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index", "thread_sort_index": "sort_index"}


def check(told: list[dict[str, Any]]) -> None:
    """Check that the events conform to the format."""
    for event in told:
        required = REQUIRED[event["ph"]]
        assert event.keys() == required.keys() | {"ph", "name", "pid", "tid"}, event
        assert all(isinstance(event[key], types) for key, types in required.items()), event
        assert isinstance(event["name"], str) and type(event["pid"]) is type(event["tid"]) is int
        if event["ph"] == "M":
            assert list(event["args"]) == [METADATA[event["name"]]]
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    slices = [event for event in told if event["ph"] == "X"]
    track = lambda event: (event["pid"], event["tid"])  # noqa: E731
    for _, on_track in groupby(sorted(slices, key=lambda event: (*track(event), event["ts"])), track):
        ends = 0.0
        for one in on_track:
            assert one["dur"] >= 0 and one["ts"] >= ends - 1e-3, one
            ends = one["ts"] + one["dur"]


@pytest.mark.parametrize("name", ["h200-n4096-naive-blocked", "h200-four-gpus"])
def test_a_recorded_session_is_a_trace(name: str, tmp_path: Path) -> None:
    out = tmp_path / "x.perfetto.json"
    assert main(["export", str(shipped_folder() / f"{name}.fwt.jsonl.gz"), "-o", str(out)]) == 0
    whole = json.loads(out.read_text())
    assert whole["displayTimeUnit"] == "ms" and "H200" not in whole["otherData"]["system"]
    told = whole["traceEvents"]
    check(told)
    named = {event["args"]["name"] for event in told if event["ph"] == "M" and "name" in event["args"]}
    assert {"runs", "stages", "timed repetitions", "host", "GPU 0: NVIDIA H200"} <= named
    if name == "h200-four-gpus":
        assert "rank 3 (GPU 3)" in named and any(event["name"] == "wait" for event in told)
    assert {"power", "SM clock", "CPU"} <= {event["name"] for event in told if event["ph"] == "C"}


def test_a_run_in_its_tracks() -> None:
    phases = (events.PhaseName("pivot", "Pivot"), events.PhaseName("rest", "Rest"))
    parts = tuple(events.Part(phase=p.key, seconds=0.25, launches=2, relaxations=4, device_bytes=8) for p in phases)
    experiment = Experiment(kernel="naive", n=2)
    session = [
        run_started(experiment, phases=phases),
        events.Planned(t=1, run=1, n=2, padded=2, steps=2, relaxations=8, device_bytes=0),
        events.Stage(t=1, run=1, name="compile"),
        events.Stage(t=2, run=1, name="compile", seconds=0.9),
        events.Sample(t=3, run=1, seconds=0.5, since=2.25),
        events.Sample(t=3, run=1, seconds=0.5, since=2.5),  # overlaps with the one before
        events.Round(t=4, run=1, index=1, first=4, seconds=(0.0, 0.125)),
        events.Phases(t=4, run=1, seconds=0.5, parts=parts),
        events.Marker(t=4.5, text="here"),
    ]
    told = [*trace(session)]
    check(told)
    slices = [(e["tid"], e["name"], e["ts"], e["dur"]) for e in told if e["ph"] == "X"]
    assert slices == [
        (2, "compile", 1e6, 1e6),
        (3, "run 1: naive n 2 float32", 2.25e6, 5e5),
        (3, "run 1: naive n 2 float32", 2.75e6, 2.5e5),
        (4, "pivot", 3.5e6, 2.5e5),
        (4, "rest", 3.75e6, 2.5e5),
        (5, "rest", 3.75e6, 1.25e5),
        (1, "run 1: naive n 2 float32", 1e6, 3.5e6),
    ]
    assert [e["args"]["launches"] for e in told if e["name"] == "pivot"] == [2]
    assert [(e["name"], e["ts"]) for e in told if e["ph"] == "i"] == [("here", 4.5e6)]
