"""Sessions of presets are recorded without what repeats."""

from __future__ import annotations

from pathlib import Path

from builders import occupancy

from fwtui.campaigns.reproduce import presets
from fwtui.campaigns.reproduce.claim_recorder import TELEMETRY_HZ, SlimRecorder, rounded
from fwtui.campaigns.reproduce.results import ask
from fwtui.sessions.reader import load
from fwtui.stream import events
from fwtui.stream.codec import as_line


def test_a_session_without_repetitions_is_small_and_says_the_same(tmp_path: Path) -> None:
    preset = presets()["lund-smith"]
    path = tmp_path / "slim.fwt.jsonl"
    header = events.Header(t=0.0, program="fwtui test", created="2025-06-01T00:00:00Z")
    recorder = SlimRecorder.at(path, header)
    assert isinstance(recorder, SlimRecorder)
    recorder.preset = preset
    started = events.RunStarted(t=1.0, run=1, experiment=ask("staged-load", 64), title="", backend="cuda", phases=())
    theory = occupancy(t=1.1, threads=64, registers=9, shared_bytes=1024, blocks=1, warps=2, source="driver")
    kept: list[events.Event] = [started, theory, events.Sample(t=1.3, run=1, seconds=1.0, since=1.2)]
    dropped: list[events.Event] = [
        theory,
        events.Progress(t=1.4, run=1, stage="clean", done=0.5),
        events.Round(t=1.4, run=1, index=0, first=0, seconds=()),
        events.Sample(t=1.4, run=1, seconds=0.001, since=1.2),
        events.Stage(t=1.4, run=1, name="load"),
        events.Stage(t=1.4, run=1, name="verify", seconds=1.0),
    ]
    for event in (*kept, *dropped):
        recorder.write(as_line(event))
    recorder.close()
    loaded = load(path)
    assert loaded.complete and [line.event for line in loaded.lines][1:-1] == kept


def test_a_reading_of_every_long_run_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "slim.fwt.jsonl"
    header = events.Header(t=0.0, program="fwtui test", created="2025-06-01T00:00:00Z")
    recorder = SlimRecorder.at(path, header, telemetry_hz=TELEMETRY_HZ)
    for run, began in ((1, 1.0), (2, 6.0)):
        recorder.write(
            as_line(events.RunStarted(t=began, run=run, experiment=ask("naive", 8192), title="", backend="cuda", phases=()))
        )
        recorder.write(as_line(events.Telemetry(t=began + 0.5)))
        recorder.write(as_line(events.Stage(t=began + 1.0, run=run, name="clean")))
        for after in (1.1, 1.5, 2.5):
            recorder.write(as_line(events.Telemetry(t=began + after)))
        recorder.write(as_line(events.Stage(t=began + 3.0, run=run, name="clean", seconds=2.0)))
        recorder.write(as_line(events.Telemetry(t=began + 3.5)))
    recorder.close()
    kept = [line.event.t for line in load(path).lines if isinstance(line.event, events.Telemetry)]
    assert kept == [1.5, 2.5, 7.5], "the first one of the session, and one of each run's clean passes"


def test_rounding_keeps_six_digits() -> None:
    event = events.Sample(t=1.23456789, run=3, seconds=0.000123456789, since=0.0)
    assert rounded(event) == events.Sample(t=1.23457, run=3, seconds=0.000123457, since=0.0)
