"""Kept sessions: automatic recording and naming; and the start of recordings."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import run_started
from msgspec.structs import replace
from pretending import Pretend

from fwtui.common.errors import Refused
from fwtui.live.session import Live
from fwtui.sessions import autosave, recorder
from fwtui.sessions.folders import kept_folder, own_folder
from fwtui.sessions.library import find, resolve
from fwtui.sessions.reader import load
from fwtui.stream import events


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def begin() -> Iterator[Callable[[], Live]]:
    """Return a function that starts kept live sessions without child processes."""
    begun: list[Live] = []

    def make() -> Live:
        begun.append(Live(telemetry_hz=0))
        begun[-1].keep()
        return begun[-1]

    yield make
    for live in begun:
        live.close()


def run(live: Live, number: int, end: str = "done") -> None:
    """Send a short run as a worker; `end` is its outcome, or "" for none."""
    t = live.now
    live.emit(run_started(t=t, run=number))
    live.emit(events.Sample(t=t, run=number, seconds=0.1, since=t))
    if end == "fault":
        live.emit(events.Fault(t=live.now, run=number, source="worker", code="died", message="it died"))
    elif end:
        live.emit(events.RunDone(t=live.now, run=number, outcome=end, median=0.1, count=1))


def killed(live: Live) -> Path:
    """Leave the file as kill -9 does."""
    keeper = live.keeper or live.recorder
    assert keeper is not None
    live.keeper = live.recorder = None
    keeper._release()
    return keeper.path


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_recordings_that_begin_late_or_in_a_run_are_timed_from_then(tmp_path: Path) -> None:
    live = Live(telemetry_hz=0)
    live.origin -= 7200.0
    before = datetime.now(UTC) - timedelta(hours=2)
    assert live.model.header is not None
    live.model.apply(replace(live.model.header, created=before.isoformat(timespec="seconds")))
    live.emit(events.Device(t=live.now, name="A GPU"))
    recorder = live.record(path=tmp_path / "s.fwt.jsonl")
    run(live, 1)
    live.close()
    loaded = load(recorder.path)
    assert loaded.complete and datetime.fromisoformat(loaded.header.created) - before > timedelta(hours=1.9)
    assert loaded.duration < 600 and loaded.lines[-1].event.t < 600
    (sample,) = (line.event for line in loaded.lines if isinstance(line.event, events.Sample))
    assert sample.since == sample.t < 600
    assert [type(line.event).__name__ for line in loaded.lines[:3]] == ["Header", "Device", "RunStarted"]
    live = Live(telemetry_hz=0)
    live.origin -= 3600.0
    t = live.now - 20
    live.emit(run_started(t=t))
    live.record(path=tmp_path / "late.fwt.jsonl")
    live.emit(events.Sample(t=t + 15, run=1, seconds=0.5, since=t + 14.5))
    live.close()
    times = [line.event.t for line in load(tmp_path / "late.fwt.jsonl").lines[:3]]
    assert times == [0.0, 0.0, pytest.approx(15)]


def test_a_session_is_kept_only_with_a_finished_run(begin: Callable[[], Live]) -> None:
    for end in ("", "cancelled", "failed"):
        live = begin()
        run(live, 1, end)
        assert len(files(kept_folder())) == 1
        live.close()
        assert files(kept_folder()) == []
    live = begin()
    run(live, 1)
    assert not [entry for entry in find() if entry.origin == "kept"], "not before it is over"
    live.close()
    (entry,) = [entry for entry in find() if entry.origin == "kept"]
    assert (entry.runs, entry.complete, entry.own) == (1, True, True)


def test_a_name_keeps_it_from_its_beginning_and_again_renames_it(begin: Callable[[], Live]) -> None:
    live = begin()
    run(live, 1)
    first = live.name("Tiles & cores")
    assert files(kept_folder()) == [] and files(own_folder()) == [first]
    assert first.name == "tiles-cores.fwt.jsonl" and live.recorder is not None and live.keeper is None
    run(live, 2)
    assert resolve("Tiles & cores") == resolve("tiles-cores") == first, "also as the user calls it"
    second = live.name("other")
    assert files(own_folder()) == [second]
    with pytest.raises(Refused, match="exists already"):
        live.name("other")
    run(live, 3)
    live.close()
    loaded = load(second)
    assert loaded.complete and loaded.header.title == "other"
    assert [line.event.run for line in loaded.lines if isinstance(line.event, events.RunDone)] == [1, 2, 3]


def test_only_the_last_twenty_and_what_had_a_finished_run_are_kept_and_none_that_is_in_use(begin: Callable[[], Live]) -> None:
    other = begin()  # another dashboard
    run(other, 1)
    assert other.keeper is not None
    aged(other.keeper.path, 10_000)
    for age in (500, 400, 300, 200):
        live = begin()
        run(live, 1)
        assert live.keeper is not None
        path = live.keeper.path
        live.close()
        aged(path, age)
    autosave.tidy(most=3)
    ages = [round(time.time() - path.stat().st_mtime, -2) for path in files(kept_folder())]
    assert sorted(ages) == [200, 300, 400, 10_000]
    autosave.tidy(most_bytes=1)
    assert files(kept_folder()) == [other.keeper.path]
    live = begin()
    assert live.keeper is not None
    path = killed(live)
    autosave.tidy()
    assert path.exists(), "it may be just beginning"
    aged(path, 2 * autosave.YOUNG)
    autosave.tidy()
    assert not path.exists()


@pytest.mark.parametrize("how", ["full", "limit"])
def test_a_full_disk_ends_the_keeping_and_not_the_session(
    begin: Callable[[], Live], monkeypatch: pytest.MonkeyPatch, pretend: Pretend, how: str
) -> None:
    live = begin()
    run(live, 1)
    assert live.keeper is not None
    path = live.keeper.path
    if how == "limit":
        live.keeper.most_bytes = live.keeper.bytes + 10
    else:
        monkeypatch.setattr(recorder, "os", SimpleNamespace(**{**vars(os), "write": lambda descriptor, data: 0}))
    run(live, 2)
    monkeypatch.undo()
    assert live.keeper is None and len(live.model.runs) == 2
    (told,) = live.model.log
    assert told.level == "error" and told.text.startswith("this session is no longer saved: ")
    assert load(path).damaged == 0 and len(load(path).lines) > 3


def test_a_copy_that_does_not_fit_leaves_what_there_was(begin: Callable[[], Live], monkeypatch: pytest.MonkeyPatch) -> None:
    live = begin()
    run(live, 1)
    written = list[int]()

    def full(descriptor: int, data: memoryview) -> int:
        written.append(descriptor)
        return len(data) if len(written) < 2 else 0

    with monkeypatch.context() as patch:
        patch.setattr(recorder, "os", SimpleNamespace(**{**vars(os), "write": full}))
        with pytest.raises(Refused, match="free some space"):
            live.name("too large")
    assert files(own_folder()) == [] and live.keeper is not None
    run(live, 2)
    path = live.keeper.path
    live.close()
    assert load(path).complete


def test_a_folder_that_takes_nothing_is_a_warning(data: Path) -> None:
    (data / "fwtui").write_text("no folder")
    live = Live(telemetry_hz=0)
    live.keep()
    live.close()
    assert [(told.level, told.text.partition(":")[0]) for told in live.model.log] == [("warning", "this session is not saved")]


def test_idle_telemetry_is_thinned_and_a_runs_is_not(begin: Callable[[], Live]) -> None:
    live = begin()
    for tick in range(60):
        t = tick / 10
        if tick == 20:
            live.emit(run_started(t=t))
        if tick == 40:
            live.emit(events.RunDone(t=t, run=1, outcome="done"))
        live.emit(events.Telemetry(t=t, cpu_utilisation=0.5))
    assert live.keeper is not None
    path = live.keeper.path
    live.close()
    times = [line.event.t for line in load(path).lines if isinstance(line.event, events.Telemetry)]
    assert len([t for t in times if 2 <= t < 4]) == 20 and [t for t in times if not 2 <= t < 4] == [0.0, 1.0, 4.0, 5.0]
