"""Export, trim, merge and the shelf: what they write is what was there, and nothing is ever lost on the way."""

import csv
import errno
import io
import json
import os
import sys
import tracemalloc
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from session_lines import GOLDEN, HEADER, done, notice, planned, record, started, telemetry, verdict

from fwtui.__main__ import main
from fwtui.analysis import export
from fwtui.analysis.report import result
from fwtui.common.errors import Refused
from fwtui.sessions import edit_sessions
from fwtui.sessions.edit_sessions import Shelf
from fwtui.sessions.folders import SUFFIX
from fwtui.sessions.library import model_of
from fwtui.sessions.reader import load
from fwtui.sessions.rewrite import SessionCut, merge, trim
from fwtui.stream import codec, events
from fwtui.stream.model import Model

LATER = codec.seal(b'{"kind":"heatmap","t":2.5,"run":1,"cells":[1,2,{"a":18446744073709551615}]}')[:-1]
LATER_LINE = codec.Line(LATER, codec.decode(LATER))


def marker(t: float, text: str) -> codec.Line:
    return codec.as_line(events.Marker(t=t, text=text))


def two_runs(path: Path, **more: Any) -> Path:
    """Run 1 from 1 to 3 s, run 2 from 5 to 7 s, ten readings a second throughout, an event of a later kind at 2.5 s."""
    first = [started(1, 1), planned(1.1, 1, 64), LATER_LINE, done(3, 1)]
    second = [started(5, 2, "blocked"), planned(5.1, 2, 128), verdict(6, 2), done(7, 2, 0.25)]
    others = [codec.as_line(events.Device(t=0.1, name="A GPU")), marker(4, "between"), notice(7.5, "after")]
    readings = [telemetry(tick / 10) for tick in range(80)]
    return record(path, *sorted([*first, *second, *others, *readings], key=lambda line: line.t), **more)


def alone(model: Model, run: int) -> dict[str, Any]:
    """The result of a run but for what the other runs of its session decide."""
    return {name: value for name, value in result(model, model.runs[run]).items() if name not in OF_OTHERS}


class TestTrim:
    def test_a_stretch_keeps_the_bytes_and_the_run_that_was_going(self, tmp_path: Path) -> None:
        whole = load(two_runs(tmp_path / "whole"))
        written = trim(tmp_path / "whole", SessionCut(start=2.0, stop=4.5), tmp_path / "part")
        part = load(tmp_path / "part")
        assert part.complete and written.complete and written.events == len(part.lines)
        assert all(line in whole.lines for line in part.lines[:-1])
        assert part.lines[0] == whole.lines[0] and LATER_LINE in part.lines
        times = [line.event.t for line in part.lines if isinstance(line.event, events.Telemetry)]
        assert (times[0], times[-1], len(times)) == (2.0, 4.5, 26)
        model = model_of(part)
        assert list(model.runs) == [1] and model.runs[1].n == 64 and model.runs[1].state == "done"
        assert model.gpu is not None and [m.text for m in model.markers] == ["between"]

    def test_chosen_runs_with_what_happened_during_them(self, tmp_path: Path) -> None:
        two_runs(tmp_path / "whole")
        trim(tmp_path / "whole", SessionCut(runs=frozenset({2})), tmp_path / "part")
        model = model_of(load(tmp_path / "part"))
        assert list(model.runs) == [2] and not model.markers and not model.log and not model.unknown
        assert {5.0, 7.0} == {model.telemetry[0].t, model.telemetry[-1].t}
        assert alone(model, 2) == alone(model_of(load(tmp_path / "whole")), 2)

    def test_less_telemetry_and_everything_else(self, tmp_path: Path) -> None:
        whole = load(two_runs(tmp_path / "whole"))
        trim(tmp_path / "whole", SessionCut(hz=2.0), tmp_path / "part")
        part = load(tmp_path / "part")
        before, after = ([line for line in one.lines[:-1] if line.kind is not events.Telemetry] for one in (whole, part))
        assert before == after and sum(line.kind is events.Telemetry for line in part.lines) == 16

    def test_without_what_only_passes_by(self, tmp_path: Path) -> None:
        two_runs(tmp_path / "whole")
        gone = (events.Round, events.Progress)
        assert all(any(isinstance(line.event, kind) for line in load(GOLDEN).lines) for kind in gone)
        for name in ("whole", GOLDEN):
            source = load(tmp_path / name)
            trim(tmp_path / name, SessionCut(without=frozenset({"rounds", "progress"})), tmp_path / "part")
            part = load(tmp_path / "part")
            assert part.lines[:-1] == [line for line in source.lines[:-1] if not isinstance(line.event, gone)]
            (tmp_path / "part").unlink()

    def test_what_is_copied_is_copied_as_it_is(self, tmp_path: Path) -> None:
        trim(GOLDEN, SessionCut(stop=1e9), tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes().splitlines()[:-1] == GOLDEN.read_bytes().splitlines()[:-1]
        later = codec.seal(codec.encode(HEADER)[: -len(',"crc":"00000000"}\n')] + b',"mood":"fine","minor":9}')
        (tmp_path / "s").write_bytes(later + notice(1).raw + b"\n")
        trim(tmp_path / "s", SessionCut(stop=2), tmp_path / "out")
        assert (tmp_path / "out").read_bytes().splitlines()[0] + b"\n" == later

    def test_a_lossy_source_never_becomes_a_whole_session(self, tmp_path: Path) -> None:
        for name, change in (
            ("no-end", lambda whole: whole[:-1]),
            ("damaged", lambda whole: [*whole[:5], b"junk\n", *whole[5:]]),
            ("torn", lambda whole: [*whole[:-1], whole[-1][:-9]]),
        ):
            source = tmp_path / name
            source.write_bytes(b"".join(change(two_runs(tmp_path / f"{name}-whole").read_bytes().splitlines(keepends=True))))
            written = trim(source, SessionCut(hz=1.0), tmp_path / f"{name}-out")
            assert trim(source, SessionCut(hz=1000.0), tmp_path / f"{name}-all")[:2] == (len(load(source).lines),) * 2
            loaded = load(tmp_path / f"{name}-out")
            assert not written.complete and not loaded.complete
            assert loaded.closed and loaded.dropped >= 1 and loaded.end and loaded.end.reason == "incomplete source"

    def test_what_leaves_nothing_or_does_not_exist_is_refused(self, tmp_path: Path) -> None:
        two_runs(tmp_path / "whole")
        (tmp_path / "mine").write_text("mine")
        for cut, out, words in (
            (SessionCut(start=100.0), "part", r"nothing is left between 100 s and the end of 7.9 s"),
            (SessionCut(runs=frozenset({1, 7})), "part", r"there is no run 7 in this session; its runs are 1, 2"),
            (SessionCut(hz=1.0), "mine", "mine exists already and is not overwritten; choose"),
            (SessionCut(hz=1.0), "absent/part", "cannot be recorded to: no such file"),
        ):
            with pytest.raises(Refused, match=words):
                trim(tmp_path / "whole", cut, tmp_path / out)
        assert (tmp_path / "mine").read_text() == "mine" and not (tmp_path / "part").exists()
        record(tmp_path / "many", *(started(run, run) for run in range(1, 100)))
        with pytest.raises(Refused, match=r"its runs are 1, 2, 3, .*, 12, …$"):
            trim(tmp_path / "many", SessionCut(runs=frozenset({0})), tmp_path / "part")


OF_OTHERS = ("baseline", "speedup", "because")


class TestLongSessions:
    """Sessions are copied line by line: work and memory follow what is kept, not the length of the file."""

    @pytest.mark.parametrize(
        "words",
        [
            ("trim", "IN", "--hz", "1", "-o", "OUT"),
            ("merge", "IN", "IN", "-o", "OUT"),
            ("mark", "IN", "--at", "1s", "here", "--at", "run 9 end", "there", "-o", "OUT"),
            ("mark", "IN", "--to", "OUT"),
        ],
        ids=lambda words: " ".join(words[:3]),
    )
    def test_no_tool_holds_one_in_memory(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        lines = [codec.encode(HEADER)]
        for run in range(1, 10):
            lines += [started(run, run).raw + b"\n", marker(run, "here").raw + b"\n"]
            lines += [notice(run, "words " * 300).raw + b"\n"] * 200
            lines += [done(run, run).raw + b"\n"]
        whole = b"".join([*lines, codec.encode(events.End(t=9, reason="closed", events=len(lines)))])
        (tmp_path / "IN").write_bytes(whole)
        import_module(f"fwtui.commands.{words[0]}")  # compiling it takes memory as well
        tracemalloc.start()
        code = main([str(tmp_path / word) if word.isupper() else word for word in words])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert code == 0 and peak < len(whole) / 3

    def test_a_disk_that_fills_up_leaves_no_copy(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        two_runs(tmp_path / "whole")
        monkeypatch.setattr(os, "fsync", full)
        said = "copy cannot be recorded to: no space left on device; free some space or choose another place"
        with pytest.raises(Refused, match=said):
            trim(tmp_path / "whole", SessionCut(hz=1.0), tmp_path / "copy")
        assert not (tmp_path / "copy").exists()


class TestMerge:
    def test_one_after_the_other_with_all_their_results(self, tmp_path: Path) -> None:
        two_runs(tmp_path / "a")
        two_runs(tmp_path / "b")
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c", "both")
        loaded = load(tmp_path / "c")
        model, single = model_of(loaded), model_of(load(tmp_path / "a"))
        assert loaded.complete and loaded.header.title == "both" and list(model.runs) == [1, 2, 3, 4]
        for run in (1, 2):
            for copy in (run, run + 2):
                assert {**alone(model, copy), "run": run} == alone(single, run)
        assert [m.t for m in model.markers] == [0.0, 4.0, 7.9, 11.9]
        assert "a test, recorded 2025-06-01T00:00:00Z by fwtui test" in model.markers[2].text
        assert len(model.telemetry) == 160 and model.telemetry[-1].t == pytest.approx(15.8)
        unknown = [json.loads(line.raw) for line in loaded.lines if isinstance(line.event, codec.Unknown)]
        assert [(u["t"], u["run"], u["cells"][2]["a"]) for u in unknown] == [(2.5, 1, 2**64 - 1), (10.4, 3, 2**64 - 1)]

    def test_what_was_timed_stays_as_long(self, tmp_path: Path) -> None:
        record(tmp_path / "a", started(1, 1), codec.as_line(events.Sample(t=2.0, run=1, seconds=0.5, since=1.5)))
        merge([tmp_path / "a"] * 2, tmp_path / "c")
        told = [line.event for line in load(tmp_path / "c").lines if isinstance(line.event, events.Sample)]
        assert [(sample.t, sample.since) for sample in told] == [(2.0, 1.5), (4.0, 3.5)]

    def test_sessions_that_do_not_go_together_are_not_one(self, tmp_path: Path) -> None:
        two_runs(tmp_path / "a")
        record(tmp_path / "b", codec.as_line(events.Device(t=0, name="Another GPU")), started(1, 1))
        with pytest.raises(Refused, match=r"a was recorded on .* with A GPU and b on .* with Another GPU; only sessions of one"):
            merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
        assert not (tmp_path / "c").exists()
        record(tmp_path / "far", started(9e8, 2**31))
        with pytest.raises(Refused, match="do not fit one after the other"):
            merge([tmp_path / "far"] * 2, tmp_path / "c")
        assert not (tmp_path / "c").exists()

    def test_what_cannot_be_read_is_copied_as_it_is(self, tmp_path: Path) -> None:
        odd = codec.seal(b'{"kind":"later","t":1,"x":1e999}')[:-1]
        record(tmp_path / "a", notice(5), codec.Line(odd, codec.decode(odd)))
        merge([tmp_path / "a", tmp_path / "a"], tmp_path / "c")
        assert (tmp_path / "c").read_bytes().count(odd + b"\n") == 2


class TestExport:
    def test_csv_of_telemetry_is_every_reading(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        out, looked_at, cell = io.StringIO(), list[Any](), export._csv_cell
        monkeypatch.setattr(export, "_csv_cell", lambda value: [looked_at.append(value), cell(value)][1])
        export.write_csv(export.read_rows(two_runs(tmp_path / "s"), "telemetry")[0], out)
        rows = list(csv.DictReader(io.StringIO(out.getvalue())))
        assert [float(row["t"]) for row in rows] == [tick / 10 for tick in range(80)]
        assert {row["cpu_utilisation"] for row in rows} == {"0.5"} and {row["gpu_power_watts"] for row in rows} == {""}
        assert len(looked_at) <= 4 * len(rows), "most cells of a reading are empty and cost nothing"

    @pytest.mark.parametrize("table", export.TABLES)
    def test_every_table_has_the_same_rows_in_every_format(self, table: str) -> None:
        rows = [*export.read_rows(GOLDEN, table)[0]]
        assert rows or table in ("counters", "answers", "histogram")  # which version 1 did not have
        as_csv, as_json, as_markdown = io.StringIO(), io.StringIO(), io.StringIO()
        export.write_csv(rows, as_csv)
        export.write_json_lines(rows, as_json)
        export.write_markdown(rows, as_markdown)
        assert [json.loads(line) for line in as_json.getvalue().splitlines()] == json.loads(json.dumps(rows))
        assert len(list(csv.DictReader(io.StringIO(as_csv.getvalue())))) == len(rows)
        assert as_markdown.getvalue().count("\n") == len(rows) + 2

    def test_nothing_is_a_formula_or_markup(self) -> None:
        rows = [{"a": "=cmd|' /C calc'!A0", "b": "x | <script> `y` \\ [l](u) ~s~ &lt;", "c": -1.5, "d": None, "e": True}]
        rows[0] |= {"notes": ("=1", "two"), "none": ()}
        out = io.StringIO()
        export.write_csv(rows, out)
        assert next(csv.DictReader(io.StringIO(out.getvalue()))) == {
            **{"a": "'=cmd|' /C calc'!A0", "b": rows[0]["b"], "c": "-1.5", "d": "", "e": "true"},
            **{"notes": "'=1\ntwo", "none": ""},
        }
        out = io.StringIO()
        export.write_markdown(rows, out)
        cells = out.getvalue().splitlines()[2]
        assert cells.endswith("| =1 two |  |")
        assert r"x \| &lt;script&gt; \`y\` \\ \[l\](u) \~s\~ &amp;lt;" in cells and "<" not in cells

    def test_parquet_uses_what_is_installed_or_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written: list[Any] = []
        for name in ("pyarrow", "pyarrow.parquet", "pandas"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(Refused, match=r"Parquet needs pyarrow, which is not installed here; install it, or export .csv"):
            export.parquet_writer()
        frame = SimpleNamespace(from_records=lambda rows: SimpleNamespace(to_parquet=lambda path: written.append((rows, path))))
        monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
        file = io.BytesIO()
        export.parquet_writer()([{"a": 1}], file)
        assert written == [([{"a": 1}], file)]

    def test_a_full_disk_is_one_sentence_for_parquet_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def write(rows: object, file: object) -> None:
            raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28]")

        monkeypatch.setattr(export, "parquet_writer", lambda: write)
        assert main(["export", str(GOLDEN), "-o", str(tmp_path / "x.parquet")]) == 2
        assert capsys.readouterr().err == "fwtui: x.parquet cannot be written: no space left on device; choose another place\n"
        assert not list(tmp_path.iterdir())

    def test_parquet_really(self, tmp_path: Path) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        assert main(["export", str(GOLDEN), "telemetry", "-o", str(tmp_path / "t.parquet")]) == 0
        assert parquet.read_table(tmp_path / "t.parquet").num_rows == len([*export.read_rows(GOLDEN, "telemetry")[0]])


class TestCommands:
    def test_export_to_a_file_and_to_standard_output(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "runs.csv"
        assert main(["export", str(GOLDEN), "-o", str(out)]) == 0
        assert main(["export", str(GOLDEN)]) == 0
        assert capsys.readouterr().out == out.read_text()
        assert main(["export", str(GOLDEN), "-o", str(out)]) == 2
        assert "exists already and is not overwritten" in capsys.readouterr().err
        assert main(["export", str(GOLDEN), "--format", "md"]) == 0
        assert capsys.readouterr().out.startswith("| run | kernel | n |")

    def test_trim_and_merge_say_what_they_kept(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        two_runs(tmp_path / "a")
        assert main(["trim", str(tmp_path / "a"), "--runs", "1", "--hz", "5", "-o", str(tmp_path / "b")]) == 0
        assert f"18 of 93 events are in {tmp_path / 'b'}" in capsys.readouterr().err
        assert main(["merge", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "c")]) == 0
        assert f"109 of 109 events are in {tmp_path / 'c'}" in capsys.readouterr().err
        assert main(["check", str(tmp_path / "c")]) == 0


class TestShelf:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Shelf:
        two_runs(tmp_path / f"a{SUFFIX}")
        return Shelf(tmp_path)

    def test_names_come_back_and_only_the_last_twenty_deletions(self, own: Shelf) -> None:
        path, whole = own.folder / f"a{SUFFIX}", (own.folder / f"a{SUFFIX}").read_bytes()
        renamed = own.rename(path, " katz and kider ")
        assert renamed.name == f"katz and kider{SUFFIX}" and renamed.read_bytes() == whole and not path.exists()
        assert own.undo() == ("katz and kider is called a again", path)
        assert path.read_bytes() == whole and not renamed.exists() and not own.can_undo
        own = Shelf(own.folder, most_deleted=3)
        for number in range(5):
            path = record(own.folder / f"x{SUFFIX}", notice(number))
            own.delete(path)
        assert len(list((own.folder / edit_sessions.BIN).iterdir())) == 3
        own.undo()
        assert load(own.folder / f"x{SUFFIX}").lines[1].event == events.Notice(t=4, text="x")

    def test_a_title_changes_the_header_and_nothing_else(self, own: Shelf) -> None:
        path = own.folder / f"a{SUFFIX}"
        damaged = path.read_bytes() + b"junk\ntorn"
        path.write_bytes(damaged)
        path.chmod(0o640)
        own.annotate(path, "the one \x1b[31mfor the talk")
        _, rest = path.read_bytes().split(b"\n", 1)
        assert load(path).header.title == "the one [31mfor the talk" and rest == damaged.split(b"\n", 1)[1]
        assert path.stat().st_mode & 0o777 == 0o640
        own.undo()
        assert json.loads(path.read_bytes().split(b"\n", 1)[0]) == json.loads(damaged.split(b"\n", 1)[0])
        assert [file.name for file in own.folder.iterdir()] == [path.name]

    def test_what_was_kept_by_itself_becomes_ones_own_by_a_name(self, tmp_path: Path) -> None:
        folder, kept = tmp_path / "sessions", tmp_path / "kept" / f"a{SUFFIX}"
        kept.parent.mkdir()
        two_runs(kept)
        own, whole = Shelf(folder), kept.read_bytes()
        own.annotate(kept, "a title")
        own.undo()
        own.delete(kept)
        assert not kept.exists() and own.undo() == ("a is back", kept) and kept.read_bytes() == whole
        assert own.rename(kept, "mine") == folder / f"mine{SUFFIX}" and not kept.exists()
        assert own.undo() == ("mine is called a again", kept) and kept.read_bytes() == whole

    def test_nothing_is_overwritten_by_a_name_or_by_an_undo(self, own: Shelf) -> None:
        path, other = own.folder / f"a{SUFFIX}", record(own.folder / f"b{SUFFIX}", notice(1))
        whole = other.read_bytes()
        with pytest.raises(Refused, match="b exists already and is not overwritten; choose"):
            own.rename(path, "b")
        own.delete(path)
        record(path, notice(2))
        with pytest.raises(Refused, match="a exists already"):
            own.undo()
        assert other.read_bytes() == whole and len(load(path).lines) == 3

    def test_without_links_it_takes_two_steps(self, own: Shelf) -> None:
        def no_links(*_: object, **__: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        own = Shelf(own.folder, link=no_links)
        record(own.folder / f"b{SUFFIX}", notice(1))
        with pytest.raises(Refused, match="b exists already"):
            own.rename(own.folder / f"a{SUFFIX}", "b")
        assert own.rename(own.folder / f"a{SUFFIX}", "c").exists()

    def test_a_name_that_cannot_be_taken_away_is_said(self, own: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
        def not_permitted(path: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "unlink", not_permitted)
        with pytest.raises(Refused, match="a cannot be moved: operation not permitted; look at its folder"):
            own.rename(own.folder / f"a{SUFFIX}", "b")

    @pytest.mark.parametrize("name", ["", "  ", "../x", ".hidden", "a/b", "x" * 300, "a\x1b[0m", "null\0"])
    def test_what_is_no_name(self, own: Shelf, name: str) -> None:
        with pytest.raises(Refused, match="is not a session name; give something like"):
            own.rename(own.folder / f"a{SUFFIX}", name)

    def test_other_peoples_sessions_are_left_alone_and_what_is_gone_is_said(self, own: Shelf) -> None:
        for act in (own.delete, lambda p: own.rename(p, "x"), lambda p: own.annotate(p, "x")):
            with pytest.raises(Refused, match="is not one of your own sessions"):
                act(GOLDEN)
            with pytest.raises(Refused, match="no such file or directory"):
                act(own.folder / f"gone{SUFFIX}")
        with pytest.raises(Refused, match="there is nothing to undo"):
            own.undo()
