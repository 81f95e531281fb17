"""Session files, plain or compressed by gzip: read, checked, and as the specification of the format says."""

import gzip
import io
import random
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from builders import header
from pretending import Pretend
from processes import DATA
from recorded_sessions import GOLDEN
from session_lines import HEADER, notice, record

from fwtui.__main__ import main
from fwtui.commands.check import check
from fwtui.common.errors import Refused
from fwtui.sessions import reader
from fwtui.sessions.folders import PACKED, SUFFIX, files_in, own_folder, shipped_folder
from fwtui.sessions.library import delete, model_of
from fwtui.sessions.reader import WATCHED, Condition, SessionFile, TooNew, load, open_session
from fwtui.sessions.recorder import Recorder
from fwtui.stream import codec, events

MADE = runpy.run_path(str(GOLDEN.with_name("make_golden.py")))


def test_the_bytes_of_version_1_still_say_the_same(tmp_path: Path) -> None:
    loaded = load(GOLDEN)
    assert loaded.closed and loaded.complete
    assert (loaded.damaged, loaded.torn, loaded.dropped, loaded.duration) == (0, False, 0, 0.9)
    assert loaded.end and loaded.end.reason == "closed"
    assert len(loaded.lines) == len(MADE["EVENTS"])
    for line, expected in zip(loaded.lines, MADE["EVENTS"], strict=True):
        if isinstance(expected, bytes) and b"heatmap" in expected:
            assert line.event == codec.Unknown(kind="heatmap", raw=line.raw, t=0.72)
        elif isinstance(expected, bytes):
            assert line.event == events.Notice(t=0.73, text="a field from later")
        else:
            assert line.event == expected
    came_later = {events.Counters, events.Limits, events.Plan, events.Source, events.RankPhases}
    came_later |= {events.WarpSamples, events.CodeText, events.CodeSamples, events.Sampled}
    came_later |= {events.CpuUse, events.CpuLoop, events.Ordered}
    assert {type(line.event) for line in load(GOLDEN).lines} == {*events.ALL, codec.Unknown} - came_later
    assert b"".join(line.raw + b"\n" for line in loaded.lines) == GOLDEN.read_bytes()
    copy = record(tmp_path / "copy", *loaded.lines, header=loaded.header)
    *lines, end = copy.read_bytes().splitlines()
    assert lines == GOLDEN.read_bytes().splitlines()[:-1]
    assert codec.decode(end) == events.End(t=0.8, reason="closed", events=21)


class TestReader:
    def test_a_newer_version_is_refused_with_its_header_and_a_newer_minor_one_is_read(self, tmp_path: Path) -> None:
        newer = header(program="fwtui 9.0", created="2031-01-01T00:00:00Z", version=2, title="from later")
        path = record(tmp_path / "s", header=newer)
        with pytest.raises(TooNew, match=r"has format version 2 but this fwtui reads at most 1; open it with a newer") as refusal:
            load(path)
        assert refusal.value.header == newer
        out = io.StringIO()
        assert check(path, out) == 2
        assert "from later: recorded 2031-01-01T00:00:00Z by fwtui 9.0" in out.getvalue()
        newer = header(minor=7)
        assert load(record(tmp_path / "minor", header=newer)).complete

    @pytest.mark.parametrize("missing", ["format", "version", "program", "created"])
    def test_a_header_without_a_required_field_is_refused(self, tmp_path: Path, missing: str) -> None:
        whole = {"kind": "header", "t": 0, "format": events.FORMAT, "version": 1, "program": "p", "created": "c"}
        del whole[missing]
        path = tmp_path / "s"
        path.write_bytes(codec.seal(str(whole).replace("'", '"').encode()))
        with pytest.raises(Refused, match=f"{path.name} is not a fwtui session"), open_session(path):
            pass

    def test_long_sessions_are_read_part_by_part_and_no_further_than_the_size_at_opening(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        session.write(notice(1))
        with open_session(session.path) as reading:
            session.write(notice(2))
            assert len([*reading.lines()]) == 2
            assert len([*reading.lines()]) == 2
        session.close()
        lines = [notice(i, "y" * (37 * i % 1900)) for i in range(500)]
        path = record(tmp_path / "long", *lines)
        assert path.stat().st_size > 5 * 65536
        assert load(path).lines[1:-1] == lines
        shares = list[float]()
        load(record(tmp_path / "watched", *(notice(i, "x" * 100) for i in range(2 * WATCHED))), shares.append)
        assert len(shares) == 3 and shares == sorted(shares) and 0.3 < shares[0] < 0.8 and shares[-1] == 1

    def test_a_packed_session_of_the_maximum_size_is_read_and_no_larger_one(self, tmp_path: Path) -> None:
        path, packed = record(tmp_path / "s", notice(1)), tmp_path / "p"
        whole = path.read_bytes()
        packed.write_bytes(gzip.compress(whole))
        with packed.open("rb") as file:
            session = SessionFile("p", file.fileno(), len(whole))
            assert (session.size, session.torn, len([*session.lines()])) == (len(whole), False, 3)
        with (
            packed.open("rb") as file,
            pytest.raises(Refused, match=f"p holds more than {len(whole) - 1} bytes, the limit for a"),
        ):
            SessionFile("p", file.fileno(), len(whole) - 1)

    def test_a_long_session_is_packed_line_by_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, packed, whole = record(tmp_path / "s", *map(notice, range(50))), codec.Line.packed, Condition.whole_lines
        loose: list[int] = [0]  # lines that are read and not yet packed, at each time

        def read(*given: Any) -> Iterator[codec.Line]:
            for line in whole(*given):
                loose.append(loose[-1] + 1)
                yield line

        monkeypatch.setattr(Condition, "whole_lines", read)
        monkeypatch.setattr(codec.Line, "packed", lambda line: [loose.append(loose[-1] - 1), packed(line)][1])
        assert len(load(path, for_screen=True).lines) == 52
        assert max(loose) == 1 and loose[-1] == 0

    @pytest.mark.parametrize("content", [codec.seal(b'{"kind":"x"}'), b"\n"])
    def test_more_lines_than_its_size_allows_are_left_out(self, content: bytes, tmp_path: Path, pretend: Pretend) -> None:
        path = record(tmp_path / "s")
        pretend.limits("fwtui.sessions.reader", FEW_LINES=5)
        header, end = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(header + 3 * content)
        assert not load(path).cut
        path.write_bytes(header + 50 * content + end)
        loaded = load(path)
        assert loaded.cut and not loaded.closed and loaded.whole + loaded.damaged == max(5, path.stat().st_size // 100)
        assert "it has more than" in loaded.missing and "lines, the limit for its size; the rest is skipped" in loaded.missing
        assert len(load(record(tmp_path / "t", *[notice(i, 200 * "x") for i in range(9)])).lines) == 11


class TestCheck:
    def test_a_whole_session(self) -> None:
        out = io.StringIO()
        assert check(GOLDEN, out) == 0 == check("lecture-tiles", io.StringIO())
        assert out.getvalue().splitlines() == [
            "synthetic golden session: recorded 2025-01-02T03:04:05Z by fwtui 0.1.0 on Linux 6.1, Synthetic CPU.",
            "22 events, 1 run on Synthetic GPU, 900 ms.",
            "Complete.",
        ]

    @pytest.mark.parametrize(
        ("change", "code", "words"),
        [
            (lambda lines: lines[:-1], 1, ["there is no end", "4 events can be replayed"]),
            (lambda lines: [*lines[:-1], lines[-1][:-1]], 1, ["last line is incomplete", "there is no end"]),
            (lambda lines: [*lines, b'{"kind"'], 1, ["Incomplete: the last line is incomplete and skipped. 5 events"]),
            (lambda lines: [lines[0], b"junk\n", *lines[1:]], 1, ["1 damaged line skipped", "5 events can be replayed"]),
            (lambda lines: [lines[0], *lines[2:]], 1, ["the end counts 4 events before it, but 3 are present"]),
            (lambda lines: [*lines, lines[1]], 1, ["1 damaged line skipped", "5 events can be replayed"]),
            (lambda lines: lines * 2, 1, ["5 damaged lines skipped"]),
            (lambda lines: [*lines[:3], *lines], 1, ["1 damaged line skipped", "the end counts 4 events before it, but 6 are"]),
            (lambda lines: lines[1:], 2, ["is not a fwtui session"]),
            (lambda lines: [], 2, ["is not a fwtui session"]),
        ],
    )
    def test_check_reports_what_is_missing_or_damaged(
        self, tmp_path: Path, change: Any, code: int, words: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = record(tmp_path / "s", notice(1), notice(2), notice(3))
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
        out = io.StringIO()
        assert check(path, out) == code
        said = out.getvalue() + capsys.readouterr().err
        assert all(word in said for word in words) and bool(out.getvalue()) == (code == 1), said
        for command in (["replay", "--json"], ["export"], ["render", "-o", str(tmp_path / "x.txt")]):
            assert main([command[0], str(path), *command[1:]]) == code, command
            assert "`fwtui check` lists the missing parts" in (said := capsys.readouterr().err) or code == 2, said

    def test_lost_events_and_other_ends_are_reported(self, tmp_path: Path) -> None:
        session = Recorder.at(tmp_path / "s", HEADER)
        session.close("signal", dropped=12)
        out = io.StringIO()
        assert check(session.path, out) == 1
        assert (
            "Incomplete (ended by signal): 12 events were lost before they were recorded. 2 events can be replayed."
            in out.getvalue()
        )

    def test_each_file_is_named_and_the_worst_one_decides(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        whole, cut, none = record(tmp_path / "a", notice(1)), record(tmp_path / "b", notice(1), close=False), tmp_path / "c"
        assert [main(["check", *map(str, paths)]) for paths in ((cut, whole), (cut, none, whole))] == [1, 2]
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line.startswith(f"{tmp_path}")] == [
            f"{path}:" for path in (cut, whole, cut, none, whole)
        ]
        at = lines.index(f"{none}:")
        assert "there is no end" in lines[at - 1] and lines[-1] == "Complete."


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the oldest session, compressed, in the user's folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    own_folder().mkdir(parents=True)
    path = own_folder() / f"old{PACKED}"
    path.write_bytes(gzip.compress(GOLDEN.read_bytes()))
    return path


def test_own_sessions_can_be_deleted_and_shipped_ones_cannot(packed: Path) -> None:
    delete(packed)
    assert files_in(own_folder()) == []
    with pytest.raises(Refused, match="old cannot be deleted: no such file or directory; check the permissions of its folder"):
        delete(packed)
    with pytest.raises(Refused, match="is not in your data folder and cannot be deleted here; delete its file"):
        delete(GOLDEN)
    assert GOLDEN.exists()


def test_a_damaged_archive_is_one_sentence(packed: Path) -> None:
    whole = packed.read_bytes()
    dice = random.Random(1)
    for broken in (whole[:60] + dice.randbytes(60) + whole[120:], whole[:-4] + b"\0\0\0\0"):
        packed.write_bytes(broken)
        with pytest.raises(Refused, match=r"cannot be unpacked: .*; copy it from its source again"):
            reader.load(packed)


@pytest.mark.parametrize("kept", [0.4, 0.7, -9], ids=["its begin", "most of it", "all but its checksum"])
def test_a_truncated_packed_session_is_read_as_far_as_it_unpacks(packed: Path, kept: float) -> None:
    whole, lines = packed.read_bytes(), len(reader.load(packed).lines)
    packed.write_bytes(whole[: int(kept * len(whole)) if kept > 0 else int(kept)])
    loaded = reader.load(packed)
    assert (loaded.complete, len(loaded.lines) == lines) == ((False, False) if kept > 0 else (True, True))
    assert main(["check", str(packed)]) == (1 if kept > 0 else 0)


@pytest.mark.parametrize("kept", [2, 11, 60])
def test_a_packed_session_without_a_header_is_not_a_session(packed: Path, kept: int) -> None:
    packed.write_bytes(packed.read_bytes()[:kept])
    with pytest.raises(Refused, match="is not a fwtui session"):
        reader.load(packed)


def test_every_version_has_its_golden_file() -> None:
    names = {path.name for path in DATA.glob(f"golden-v*{SUFFIX}")}
    assert {f"golden-v{version}{SUFFIX}" for version in range(1, events.VERSION + 1)} <= names
    for name in names:
        assert load(DATA / name).complete


@pytest.mark.parametrize("pandas", ["pandas", ""], ids=["pandas", "what stands for it"])
def test_the_readme_reads_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pandas: str) -> None:
    pd = pytest.importorskip(pandas) if pandas else MagicMock()
    (block,) = re.findall(r"```python\n(.*?)```", (shipped_folder() / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(block.splitlines()) <= 12
    path = shipped_folder() / f"lecture-tiles{PACKED}"
    (tmp_path / "a.fwt.jsonl").write_bytes(gzip.decompress(path.read_bytes()) + b'{"kind":"torn')
    monkeypatch.chdir(tmp_path)
    printed: list[Any] = []
    exec(block.replace("import pandas as pd\n", ""), {"pd": pd, "print": printed.append})  # noqa: S102  (our own README)
    runs = model_of(load(path).lines).runs.values()
    if pandas:
        assert dict(printed[0]) == {run.id: run.n**3 / run.done.median for run in runs if run.done and run.done.median}
    else:
        planned, done, phases, *_ = (call.args[0] for call in pd.DataFrame.call_args_list)
        assert [(row["run"], row["n"]) for row in planned] == [(run.id, run.n) for run in runs]
        assert [row["median"] for row in done] == [run.done.median for run in runs if run.done]
        assert [(row["run"], row["phase"], row["seconds"]) for row in phases] == [
            (run.id, part.key, part.seconds) for run in runs for part in run.phases
        ]
