"""Recordings: every line is written at once, nothing is overwritten, and the end counts the lines before it."""

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import environment
from session_lines import HEADER, done, notice, record, started

from fwtui.common.errors import Refused
from fwtui.common.signals import Stopped, on_signals, restore_handlers, stop
from fwtui.sessions.reader import load
from fwtui.sessions.recorder import Recorder, safe_slug
from fwtui.stream import codec, events


class TestRecorder:
    def test_names_in_a_new_folder_and_in_the_users_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        session = Recorder.at(None, HEADER, folder=tmp_path / "a" / "b", slug="Katz & Kider/../n=4096 \x1b[0m")
        session.close()
        assert session.path.parent == tmp_path / "a" / "b"
        assert re.fullmatch(r"\d{8}-\d{6}-katz-kider-n-4096-0m\.fwt\.jsonl", session.path.name)
        assert stat.S_IMODE(session.path.stat().st_mode) & 0o111 == 0
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        session = Recorder.at(None, HEADER, folder=None, slug="")
        session.close()
        assert session.path.parent == tmp_path / "fwtui" / "sessions"
        assert session.path.name.endswith("-session.fwt.jsonl")

    def test_a_preface_that_cannot_be_read_leaves_no_file(self, tmp_path: Path) -> None:
        def preface() -> Iterator[codec.Line]:
            yield notice(1.0)
            raise Refused("the disk is gone")

        with pytest.raises(Refused, match="the disk is gone"):
            Recorder.at(tmp_path / "s", HEADER, preface())
        assert not [*tmp_path.iterdir()]

    def test_many_in_the_same_second_do_not_collide(self, tmp_path: Path) -> None:
        with ThreadPoolExecutor(8) as pool:
            sessions = list(pool.map(lambda _: Recorder.at(None, HEADER, folder=tmp_path, slug="same"), range(50)))
        for session in sessions:
            session.close()
        names = {session.path.name for session in sessions}
        assert len(names) == len(list(tmp_path.iterdir())) == 50
        assert all(re.fullmatch(r"\d{8}-\d{6}-same(-\d+)?\.fwt\.jsonl", name) for name in names)
        assert any("-same-2." in name for name in names)
        assert all(load(session.path).closed for session in sessions)

    def test_each_line_is_in_the_file_at_once(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        for count in range(1, 5):
            session.write(notice(count))
            assert len(load(session.path).lines) == session.events == count + 1
            assert session.path.stat().st_size == session.bytes
        assert not load(session.path).closed
        session.close()

    def test_the_end_counts_what_is_before_it_and_never_goes_back(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER, preface=[notice(1.0)])
        session.write(notice(7.5))
        session.close("signal", dropped=3)
        session.close("again")
        session.write(notice(9.0))
        loaded = load(session.path)
        assert loaded.lines[-1].event == events.End(t=7.5, reason="signal", events=3, dropped=3)
        assert loaded.closed and not loaded.complete
        assert loaded.end and (loaded.dropped, loaded.end.reason, loaded.duration) == (3, "signal", 7.5)
        assert session.failure is None
        for name, given_time, expected in (("a", 20.0, 20.0), ("b", 1.0, 7.5)):
            session = Recorder.at(tmp_path / name, HEADER)
            session.write(notice(7.5))
            session.close(t=given_time)
            assert load(session.path).lines[-1].event.t == expected
        end = codec.as_line(events.End(t=0, reason="closed", events=1))
        path = record(tmp_path / "others", codec.as_line(HEADER), notice(1), end, notice(2))
        assert load(path).closed
        assert len(load(path).lines) == 4

    def test_a_recording_is_synced_after_each_run_and_at_the_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        session = Recorder.at(tmp_path / "s", HEADER)
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(session.events))
        for line in (started(1, 1), notice(2), done(3, 1), notice(4)):
            session.write(line)
        session.close()
        assert synced == [4, 6]

    def test_an_existing_file_is_never_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "s"
        path.write_text("mine")
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        for name, said in (
            ("s", "exists already and is not overwritten; choose"),
            ("link", "is a link to a file that does not exist; remove the link, or choose another name"),
        ):
            with pytest.raises(Refused, match=said):
                Recorder.at(tmp_path / name, HEADER)
        assert path.read_text() == "mine"
        assert not (tmp_path / "elsewhere").exists()


def test_a_signal_inside_a_line_leaves_the_whole_line_and_a_true_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, write = Recorder.at(tmp_path / "s", HEADER), os.write

    def part(descriptor: int, data: memoryview) -> int:
        signal.raise_signal(signal.SIGTERM)
        return write(descriptor, data[:100])

    long = notice(1, "z" * 1000)
    with restore_handlers(), monkeypatch.context() as patch:
        patch.setattr(os, "write", part)
        on_signals(stop)
        with pytest.raises(Stopped) as stopped:
            session.write(long)
    assert stopped.value.signum == signal.SIGTERM
    session.write(notice(2))
    session.close("signal")
    loaded = load(session.path)
    assert loaded.lines[1:-1] == [long, notice(2)] and loaded.closed and loaded.end == events.End(t=2, reason="signal", events=3)


SIGNALLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from fwtui.common.signals import Stopped, on_signals, stop
from fwtui.experiment.experiment import Experiment
from fwtui.live.protocols import finish
from fwtui.live.session import Live

fsync, synced = os.fsync, []

def signalled(descriptor):
    synced.append(descriptor)
    if len(synced) == 1:
        signal.raise_signal(signal.SIGTERM)
    fsync(descriptor)

live = Live(telemetry_hz=0)
on_signals(stop)
try:
    recorder = live.record(path=Path(sys.argv[1]))
    live.start(live.settled(Experiment(kernel="scipy", n=16, repeats=2)))
    os.fsync = signalled
    finish(live)
except Stopped:
    print("stopped")
finally:
    live.close("signal")
assert synced and recorder.failure is None
"""


def test_a_signal_while_a_runs_end_is_written_leaves_one_end(tmp_path: Path) -> None:
    # in a process of its own: a signal to this one could end the whole suite
    command = [sys.executable, "-c", SIGNALLED_WHILE_WRITING, str(tmp_path / "s")]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, timeout=120, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
    ends = [line.event for line in load(tmp_path / "s").lines if isinstance(line.event, events.RunDone)]
    assert [end.outcome for end in ends] == ["done"]


@pytest.mark.parametrize("text", ["", "-", "Ä/../b", "漢字", "\x1b[0m\0", "A b" * 60, "İ\u2028ﬁ", "../.."])
def test_any_text_makes_a_safe_slug(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9-]{1,60}", safe_slug(text))
