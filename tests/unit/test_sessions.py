"""Session files that are whole: recorded, read, checked and listed."""

from __future__ import annotations

import io
import os
import re
import runpy
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fwtui import codec, events, units
from fwtui.errors import Refused
from fwtui.experiment import Experiment
from fwtui.sessions import folders, library, listing, recorder
from fwtui.sessions.check import check
from fwtui.sessions.reader import TooNew, load, open_session
from fwtui.sessions.recorder import Recorder, safe_slug
from fwtui.sessions.summary import summarise

DATA = Path(__file__).parents[1] / "data"
GOLDEN = DATA / "golden-v1.fwt.jsonl"
MADE = runpy.run_path(str(DATA / "make_golden.py"))
SOME = runpy.run_path(str(DATA / "strategies.py"))
HEADER = events.Header(t=0.0, program="fwtui test", created="2025-06-01T00:00:00Z", title="a test")


def notice(t: float, text: str = "x") -> codec.Line:
    return codec.as_line(events.Notice(t=t, text=text))


def started(t: float, run: int, kernel: str = "naive") -> codec.Line:
    experiment = Experiment(kernel=kernel)
    return codec.as_line(events.RunStarted(t=t, run=run, experiment=experiment, title=kernel, backend="cpu", phases=()))


def planned(t: float, run: int, n: int) -> codec.Line:
    return codec.as_line(events.Planned(t=t, run=run, n=n, padded=n, steps=n, relaxations=min(n**3, 2**60), device_bytes=0))


def done(t: float, run: int, median: float | None = 0.5) -> codec.Line:
    return codec.as_line(events.RunDone(t=t, run=run, outcome="done", median=median))


def verdict(t: float, run: int, word: str = "verified") -> codec.Line:
    return codec.as_line(events.Verdict(t=t, run=run, verdict=word, how=""))


def telemetry(t: float) -> codec.Line:
    return codec.as_line(events.Telemetry(t=t, cpu_utilisation=0.5))


def record(path: Path, *lines: codec.Line, header: events.Header = HEADER, close: bool = True) -> Path:
    session = Recorder.at(path, header)
    for line in lines:
        session.write(line)
    if close:
        session.close()
    return path


@pytest.fixture
def shelves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Folders for shipped and own sessions, both empty."""
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    shipped.mkdir()
    own.mkdir()
    monkeypatch.setattr(library, "shipped_folder", lambda: shipped)
    monkeypatch.setattr(library, "own_folder", lambda: own)
    monkeypatch.setattr(listing, "own_folder", lambda: own)
    return shipped, own


class TestGolden:
    def test_the_bytes_of_version_1_still_say_the_same(self) -> None:
        loaded = load(GOLDEN)
        assert loaded.closed and loaded.complete
        assert (loaded.damaged, loaded.torn, loaded.dropped, loaded.duration, loaded.reason) == (0, False, 0, 0.9, "closed")
        assert len(loaded.lines) == len(MADE["EVENTS"])
        for line, expected in zip(loaded.lines, MADE["EVENTS"], strict=True):
            if isinstance(expected, bytes) and b"heatmap" in expected:
                assert line.event == codec.Unknown(kind="heatmap", raw=line.raw, t=0.72)
            elif isinstance(expected, bytes):
                assert line.event == events.Notice(t=0.73, text="a field from later")
            else:
                assert line.event == expected

    def test_it_holds_every_kind(self) -> None:
        came_later = {events.Counters, events.Limits, events.Answers}
        assert {type(line.event) for line in load(GOLDEN).lines} == {*events.ALL, codec.Unknown} - came_later

    def test_a_rewrite_keeps_every_byte(self, tmp_path: Path) -> None:
        loaded = load(GOLDEN)
        assert b"".join(line.raw + b"\n" for line in loaded.lines) == GOLDEN.read_bytes()
        copy = record(tmp_path / "copy", *loaded.lines, header=loaded.header)
        *lines, end = copy.read_bytes().splitlines()
        assert lines == GOLDEN.read_bytes().splitlines()[:-1]
        assert codec.decode(end) == events.End(t=0.8, reason="closed", events=21)


class TestRecorder:
    def test_a_name_with_time_and_slug_in_a_new_folder(self, tmp_path: Path) -> None:
        session = Recorder.create(tmp_path / "a" / "b", "Katz & Kider/../n=4096 \x1b[0m", HEADER)
        session.close()
        assert session.path.parent == tmp_path / "a" / "b"
        assert re.fullmatch(r"\d{8}-\d{6}-katz-kider-n-4096-0m\.fwt\.jsonl", session.path.name)
        assert stat.S_IMODE(session.path.stat().st_mode) & 0o111 == 0

    def test_the_default_folder_is_the_users_own(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder, "own_folder", lambda: tmp_path / "own")
        session = Recorder.create(None, "", HEADER)
        session.close()
        assert session.path.parent == tmp_path / "own"
        assert session.path.name.endswith("-session.fwt.jsonl")

    @given(st.text(max_size=200))
    @settings(max_examples=200)
    def test_any_text_makes_a_safe_slug(self, text: str) -> None:
        assert re.fullmatch(r"[a-z0-9-]{1,60}", safe_slug(text))

    def test_many_in_the_same_second_do_not_collide(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder, "_stamp", lambda: "20250601-000000")
        with ThreadPoolExecutor(8) as pool:
            sessions = list(pool.map(lambda _: Recorder.create(tmp_path, "same", HEADER), range(50)))
        for session in sessions:
            session.close()
        names = {session.path.name for session in sessions}
        assert len(names) == len(list(tmp_path.iterdir())) == 50
        assert {"20250601-000000-same.fwt.jsonl", "20250601-000000-same-2.fwt.jsonl"} < names
        assert all(load(session.path).closed for session in sessions)

    def test_each_line_is_in_the_file_at_once(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        for count in range(1, 5):
            session.write(notice(count))
            assert len(load(session.path).lines) == session.events == count + 1
            assert session.path.stat().st_size == session.bytes
        assert not load(session.path).closed
        session.close()

    def test_the_end_counts_what_is_before_it(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER, preface=[notice(1.0)])
        session.write(notice(7.5))
        session.close("signal", dropped=3)
        session.close("again")
        session.write(notice(9.0))
        loaded = load(session.path)
        assert loaded.lines[-1].event == events.End(t=7.5, reason="signal", events=3, dropped=3)
        assert loaded.closed and not loaded.complete
        assert (loaded.dropped, loaded.reason, loaded.duration) == (3, "signal", 7.5)
        assert session.failure is None

    def test_the_end_has_the_time_it_is_given_but_never_goes_back(self, tmp_path: Path) -> None:
        for name, given_time, expected in (("a", 20.0, 20.0), ("b", 1.0, 7.5)):
            session = Recorder.at(tmp_path / name, HEADER)
            session.write(notice(7.5))
            session.close(t=given_time)
            assert load(session.path).lines[-1].event.t == expected

    def test_headers_and_ends_of_others_are_left_out(self, tmp_path: Path) -> None:
        end = codec.as_line(events.End(t=0, reason="closed", events=1))
        path = record(tmp_path / "s", codec.as_line(HEADER), notice(1), end, notice(2))
        assert load(path).closed
        assert len(load(path).lines) == 4

    @pytest.mark.parametrize(("hz", "kept"), [(None, 100), (1.0, 10), (2.5, 25), (1000.0, 100), (0.05, 1)])
    def test_telemetry_is_thinned_and_nothing_else(self, tmp_path: Path, hz: float | None, kept: int) -> None:
        session = Recorder.at(tmp_path / "s", HEADER, telemetry_hz=hz)
        for tick in range(100):
            session.write(telemetry(tick / 10))
            session.write(notice(tick / 10))
        session.close()
        loaded = load(session.path)
        kinds = [type(line.event) for line in loaded.lines]
        assert kinds.count(events.Telemetry) == kept
        assert kinds.count(events.Notice) == 100
        assert loaded.complete

    def test_it_reaches_the_disk_after_each_run_and_at_the_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        for name in ("s", "link"):
            with pytest.raises(Refused, match="exists already and is not overwritten; choose"):
                Recorder.at(tmp_path / name, HEADER)
        assert path.read_text() == "mine"
        assert not (tmp_path / "elsewhere").exists()

    @given(st.lists(SOME["any_event"](), max_size=12))
    @settings(max_examples=60, deadline=None)
    def test_any_events_come_back_equal(self, tmp_path_factory: pytest.TempPathFactory, some: list[events.Event]) -> None:
        lines = [codec.as_line(event) for event in some if not isinstance(event, (events.Header, events.End))]
        loaded = load(record(tmp_path_factory.mktemp("session") / "s", *lines))
        assert loaded.lines[1:-1] == lines
        assert loaded.complete and loaded.header == HEADER


class TestReader:
    def test_a_newer_version_is_refused_with_its_header(self, tmp_path: Path) -> None:
        newer = events.Header(t=0, program="fwtui 9.0", created="2031-01-01T00:00:00Z", version=2, title="from later")
        path = record(tmp_path / "s", header=newer)
        with pytest.raises(TooNew, match=r"has format version 2 and this fwtui reads up to 1; open it with a newer") as refusal:
            load(path)
        assert refusal.value.header == newer
        out = io.StringIO()
        assert check(path, out) == 2
        assert "from later: recorded 2031-01-01T00:00:00Z by fwtui 9.0" in out.getvalue()

    def test_a_newer_minor_version_is_read(self, tmp_path: Path) -> None:
        newer = events.Header(t=0, program="fwtui 1.5", created="", minor=7)
        assert load(record(tmp_path / "s", header=newer)).complete

    @pytest.mark.parametrize("missing", ["format", "version", "program", "created"])
    def test_a_header_must_say_what_it_is(self, tmp_path: Path, missing: str) -> None:
        whole = {"kind": "header", "t": 0, "format": events.FORMAT, "version": 1, "program": "p", "created": "c"}
        del whole[missing]
        path = tmp_path / "s"
        path.write_bytes(codec.seal(str(whole).replace("'", '"').encode()))
        with pytest.raises(Refused, match="is not a fwtui session"):
            open_session(path)

    def test_reading_goes_no_further_than_the_size_at_opening(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        session.write(notice(1))
        with open_session(session.path) as reading:
            session.write(notice(2))
            assert len(list(reading.lines())) == 2
            assert len(list(reading.lines())) == 2
        session.close()

    def test_sessions_longer_than_a_chunk(self, tmp_path: Path) -> None:
        lines = [notice(i, "y" * (37 * i % 1900)) for i in range(500)]
        path = record(tmp_path / "s", *lines)
        assert path.stat().st_size > 5 * 65536
        assert load(path).lines[1:-1] == lines

    def test_too_many_lines_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fwtui.sessions.reader.MAX_LINES", 5)
        assert len(load(record(tmp_path / "a", *[notice(i) for i in range(3)])).lines) == 5
        with pytest.raises(Refused, match="more than 5 lines, the limit; record less"):
            load(record(tmp_path / "b", *[notice(i) for i in range(4)]))

    def test_closing_twice(self) -> None:
        session = open_session(GOLDEN)
        session.close()
        session.close()


class TestSummary:
    def test_runs_kernels_sizes_and_gpu(self, tmp_path: Path) -> None:
        device = codec.as_line(events.Device(t=0, name="A GPU"))
        runs = [started(run, run, kernel) for run, kernel in enumerate(("naive", "blocked", "naive"), 1)]
        path = record(tmp_path / "s", device, *runs, planned(4, 1, 64), planned(4, 2, 64), planned(4, 3, 128))
        with open_session(path) as session:
            summary = summarise(session)
        assert (summary.runs, summary.kernels, summary.sizes, summary.gpu) == (3, ["naive", "blocked"], [64, 128], "A GPU")
        assert summary.best_rate is None

    @pytest.mark.parametrize(
        ("lines", "best"),
        [
            ([started(1, 1), planned(1, 1, 100), done(2, 1, 0.5), verdict(3, 1)], 2e6),
            ([started(1, 1), planned(1, 1, 100), verdict(2, 1), done(3, 1, 0.5)], 2e6),
            ([started(1, 1), planned(1, 1, 100), verdict(2, 1, "wrong"), done(3, 1, 0.5)], None),
            ([started(1, 1), planned(1, 1, 100), done(3, 1, 0.5)], None),
            ([started(1, 1), planned(1, 1, 100), verdict(2, 1), done(3, 1, None)], None),
            ([started(1, 1), planned(1, 1, 100), verdict(2, 1), done(3, 1, 0.0)], None),
            ([started(1, 1), planned(1, 1, 2**60), verdict(2, 1), done(3, 1, 5e-324)], None),
            ([verdict(2, 1), done(3, 1, 0.5)], None),
            ([started(1, 1), planned(1, 1, 10), verdict(2, 1), started(3, 1), done(4, 1, 0.5)], None),
            ([planned(1, r, 100) for r in (1, 2)] + [verdict(2, r) for r in (1, 2)] + [done(3, 1, 0.5), done(4, 2, 0.25)], 4e6),
        ],
    )
    def test_only_verified_runs_have_a_rate(self, tmp_path: Path, lines: list[codec.Line], best: float | None) -> None:
        with open_session(record(tmp_path / "s", *lines)) as session:
            assert summarise(session).best_rate == best


class TestCheck:
    def test_a_whole_session(self) -> None:
        out = io.StringIO()
        assert check(GOLDEN, out) == 0
        assert out.getvalue().splitlines() == [
            "synthetic golden session: recorded 2025-01-02T03:04:05Z by fwtui 0.1.0 on Linux 6.1, Synthetic CPU.",
            "22 events, 1 run on Synthetic GPU, 900 ms.",
            "Whole and closed.",
        ]

    @pytest.mark.parametrize(
        ("change", "code", "words"),
        [
            (lambda lines: lines[:-1], 1, ["there is no end", "4 events can be replayed"]),
            (lambda lines: [*lines[:-1], lines[-1][:-1]], 1, ["last line is torn", "there is no end"]),
            (lambda lines: [*lines, b'{"kind"'], 1, ["Not whole: the last line is torn and left out. 5 events"]),
            (lambda lines: [lines[0], b"junk\n", *lines[1:]], 1, ["1 damaged line left out", "5 events can be replayed"]),
            (lambda lines: [lines[0], *lines[2:]], 1, ["the end counts 4 events before it and 3 are here"]),
            (lambda lines: [*lines, lines[1]], 1, ["1 damaged line left out", "5 events can be replayed"]),
            (lambda lines: lines * 2, 1, ["5 damaged lines left out"]),
            (lambda lines: [*lines[:3], *lines], 1, ["1 damaged line left out", "the end counts 4 events before it and 6 are"]),
            (lambda lines: lines[1:], 2, ["is not a fwtui session"]),
            (lambda lines: [], 2, ["is not a fwtui session"]),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, change: Any, code: int, words: list[str]) -> None:
        path = record(tmp_path / "s", notice(1), notice(2), notice(3))
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
        out = io.StringIO()
        assert check(path, out) == code
        assert all(word in out.getvalue() for word in words), out.getvalue()

    def test_lost_events_and_other_ends_are_said(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        session.close("signal", dropped=12)
        out = io.StringIO()
        assert check(session.path, out) == 0
        assert "Whole and closed (ended by signal). 12 events had been lost before." in out.getvalue()


class TestLibrary:
    def test_shipped_and_own_newest_first_and_broken_ones_too(self, shelves: tuple[Path, Path]) -> None:
        shipped, own = shelves
        lines = [
            codec.as_line(events.Device(t=0, name="A GPU")),
            started(1, 1),
            planned(1, 1, 100),
            verdict(2, 1),
            done(3, 1, 0.5),
        ]
        record(shipped / "old.fwt.jsonl", *lines)
        later = events.Header(t=0, program="p", created="2026-01-01T00:00:00Z")
        record(own / "new.fwt.jsonl", *lines, header=later, close=False)
        record(own / "future.fwt.jsonl", header=events.Header(t=0, program="p", created="2020", version=3))
        (own / "broken\x1b[31m.fwt.jsonl").write_text("no session")
        (own / "lost.fwt.jsonl").symlink_to(own / "nowhere")
        os.mkfifo(own / "pipe.fwt.jsonl")
        (own / "notes.txt").write_text("not listed")
        entries = library.find()
        assert [entry.name for entry in entries] == ["new", "old", "future", "pipe", "lost", "broken[31m"]
        new, old, future, pipe, lost, broken = entries
        assert (old.origin, old.complete, old.problem, old.runs, old.kernels) == ("shipped", True, "", 1, ("naive",))
        assert (old.sizes, old.best_rate, old.duration, old.gpu) == ((100,), 2e6, 3.0, "A GPU")
        assert old.size == old.path.stat().st_size
        assert (new.origin, new.complete, new.problem) == ("own", False, "incomplete")
        assert future.header and future.problem == "format version 3 needs a newer fwtui"
        assert "not a regular file" in pipe.problem
        assert "no such file" in lost.problem
        assert "not a fwtui session" in broken.problem
        out = io.StringIO()
        listing.print_list(out)
        table = out.getvalue().splitlines()
        assert len(table) == 7
        assert "\x1b" not in out.getvalue()
        column = table[0].index("KERNELS")
        assert table[1][column:].startswith("naive") and table[2][column:].startswith("naive")
        assert units.rate(2e6) in table[2]

    def test_an_empty_library_is_one_sentence(self, shelves: tuple[Path, Path]) -> None:
        shelves[1].rmdir()
        out = io.StringIO()
        listing.print_list(out)
        assert out.getvalue().startswith("There are no sessions yet; recordings go to ")
        with pytest.raises(Refused, match=r"there is no session 'x', and none in .*; give the path"):
            library.resolve("x")

    def test_names_become_paths(self, shelves: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shipped, own = shelves
        for path in (shipped / "naive-4096.fwt.jsonl", own / "naive-8192.fwt.jsonl", own / "blocked.fwt.jsonl"):
            record(path)
        record(own / "blocked-two.fwt.jsonl")
        assert library.resolve("blocked") == own / "blocked.fwt.jsonl"
        assert library.resolve("naive-8192.fwt.jsonl") == own / "naive-8192.fwt.jsonl"
        assert library.resolve("naive-4") == shipped / "naive-4096.fwt.jsonl"
        assert library.resolve("some/where") == Path("some/where")
        monkeypatch.chdir(own)
        assert library.resolve("blocked-two.fwt.jsonl") == Path("blocked-two.fwt.jsonl")
        with pytest.raises(Refused, match=r"'naive' begins the names of 2 sessions; choose one of naive-4096, naive-8192"):
            library.resolve("naive")
        for absent in ("nothing", "", "\x00", "\x1b[0m"):
            with pytest.raises(Refused, match=r"there is no session .*; give a path or choose one of naive-8192, naive-4096"):
                library.resolve(absent)

    def test_the_shipped_folder_is_beside_the_package_or_in_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        package = tmp_path / "fwtui"
        monkeypatch.setattr(folders, "_PACKAGE", package)
        assert folders.shipped_folder() == tmp_path / "sessions"
        (package / "_sessions").mkdir(parents=True)
        assert folders.shipped_folder() == package / "_sessions"
