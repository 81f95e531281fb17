"""The library: sessions found by name, and their entries in the list."""

import os
from pathlib import Path

import pytest
from builders import header
from pretending import Pretend
from session_lines import done, planned, record, started, verdict

from fwtui.__main__ import main
from fwtui.common import units
from fwtui.common.errors import Refused
from fwtui.sessions import folders, library
from fwtui.sessions.library import summarise
from fwtui.sessions.reader import open_session
from fwtui.stream import codec, events


@pytest.fixture
def shelves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> tuple[Path, Path]:
    """Return empty folders for shipped and own sessions."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    shipped, own = tmp_path / "shipped", folders.own_folder()
    shipped.mkdir()
    own.mkdir(parents=True)
    pretend.shipped(shipped)
    return shipped, own


class TestSummary:
    def test_kernels_and_sizes_are_in_order_of_appearance(self, tmp_path: Path) -> None:
        lines = list[codec.Line]()
        for run in range(1, 51):
            lines += [started(run, run, "naive" if run != 7 else "blocked"), planned(run, run, 100 if run < 30 else 200)]
            lines += [done(run, run, 0.25 if run == 2 else 0.5)]
            if run > 3:
                lines += [verdict(run, run - 3)]  # of one before the latest
        with open_session(record(tmp_path / "s", *lines, started(51, 50))) as session:
            summary = summarise(session)
        assert (summary.runs, summary.kernels, summary.sizes) == (50, ("naive", "blocked"), (100, 200))
        assert summary.best_rate == 1.6e7

    @pytest.mark.parametrize(
        ("verdicts", "median", "best"),
        [
            (["verified"], 0.5, 2e6),
            (["wrong"], 0.5, None),
            ([], 0.5, None),
            *((["verified"], time, None) for time in (None, 0.0)),
        ],
    )
    def test_only_verified_runs_have_a_rate(
        self, tmp_path: Path, verdicts: list[str], median: float | None, best: float | None
    ) -> None:
        told = (verdict(2, 1, word) for word in verdicts)
        with open_session(record(tmp_path / "s", started(1, 1), planned(1, 1, 100), *told, done(3, 1, median))) as session:
            assert summarise(session).best_rate == best


class TestLibrary:
    def test_all_newest_first_and_broken_ones_too(self, shelves: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
        shipped, own = shelves
        run = started(1, 1), planned(1, 1, 100), verdict(2, 1), done(3, 1, 0.5)
        lines = [codec.as_line(events.Device(t=0, name="A GPU")), *run]
        record(shipped / "old.fwt.jsonl", *lines)
        later = header(created="2026-01-01T00:00:00Z")
        record(own / "new.fwt.jsonl", *lines, header=later, close=False)
        os.utime(own / "new.fwt.jsonl", ns=(2**63 + 1, 2**63 + 1))  # the year 2262, beyond 64 bits of nanoseconds
        record(own / "future.fwt.jsonl", header=header(created="2020", version=3))
        (own / "broken\x1b[31m.fwt.jsonl").write_text("no session")
        (own / "lost.fwt.jsonl").symlink_to(own / "nowhere")
        os.mkfifo(own / "pipe.fwt.jsonl")
        (own / "notes.txt").write_text("not listed")
        entries = library.find()
        assert [entry.name for entry in entries] == ["new", "old", "future", "pipe", "lost", "broken[31m"]
        new, old, future, pipe, lost, broken = entries
        assert (old.origin, old.complete, old.problem, old.runs, old.kernels) == ("shipped", True, "", 1, ("naive",))
        assert (old.sizes, old.best_rate, old.condition.duration, old.gpu) == ((100,), 2e6, 3.0, "A GPU")
        assert old.size == old.path.stat().st_size
        assert (new.origin, new.complete, new.problem) == ("own", False, "incomplete")
        assert future.header and future.problem == "format version 3 needs a newer fwtui"
        assert "not a regular file" in pipe.problem
        assert "no such file" in lost.problem
        assert "not a fwtui session" in broken.problem
        assert main(["list"]) == 0
        out = capsys.readouterr().out
        table = out.splitlines()
        assert len(table) == 7
        assert "\x1b" not in out
        column = table[0].index("kernels")
        assert table[1][column:].startswith("naive") and table[2][column:].startswith("naive")
        assert units.rate(2e6) in table[2]

    def test_a_session_that_grows_is_known_once(self, shelves: tuple[Path, Path]) -> None:
        known: library.EntryCache = {}
        path = record(shelves[1].parent / "growing", started(1, 1), close=False)
        (shelves[1] / "growing.fwt.jsonl").symlink_to(path)
        for run in range(2, 5):
            with path.open("ab") as file:
                file.write(started(run, run).raw + b"\n")
            (entry,) = library.find(known)
            assert entry.runs == run and len(known) == 1 and library.find(known)[0] is entry

    def test_an_empty_library_is_one_sentence(self, shelves: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
        shelves[1].rmdir()
        assert main(["list"]) == 0
        assert capsys.readouterr().out.startswith("There are no sessions yet; recordings are stored in ")
        with pytest.raises(Refused, match=r"there is no session 'x', and none in .*; pass the path"):
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
        (tmp_path / "talk.fwt.jsonl").touch()
        monkeypatch.chdir(tmp_path)
        assert library.resolve("talk") == Path("talk.fwt.jsonl"), "a session in the current folder"
        with pytest.raises(Refused, match=r"'naive' is the beginning of 2 session names; choose one of naive-4096, naive-8192"):
            library.resolve("naive")
        for absent in ("nothing", "", "\x00", "\x1b[0m"):
            with pytest.raises(Refused, match=r"there is no session .*; pass a path or choose one of naive-8192, naive-4096"):
                library.resolve(absent)

    def test_the_shipped_folder_is_beside_the_package_or_in_it(self, tmp_path: Path) -> None:
        package = tmp_path / "fwtui"
        assert folders.shipped_folder(package) == tmp_path / "sessions"
        (package / "_sessions").mkdir(parents=True)
        assert folders.shipped_folder(package) == package / "_sessions"
