"""Export and markers: what they write is what was there, and nothing is lost on the way."""

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
from recorded_sessions import GOLDEN
from session_lines import HEADER, done, notice, planned, record, started, telemetry, verdict

from fwtui.__main__ import main
from fwtui.analysis import export
from fwtui.common.errors import Refused
from fwtui.sessions.markers import Mark, mark
from fwtui.sessions.reader import load
from fwtui.stream import codec, events

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


MARKED = [(Mark(seconds=1.0), events.Marker(t=0.0, text="here"))]


class TestLongSessions:
    """Sessions are copied line by line: work and memory follow what is kept, not the length of the file."""

    @pytest.mark.parametrize(
        "words",
        [("mark", "IN", "--at", "1s", "here", "--at", "run 9 end", "there", "-o", "OUT"), ("mark", "IN", "--to", "OUT")],
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
            mark(tmp_path / "whole", MARKED, tmp_path / "copy")
        assert not (tmp_path / "copy").exists()

    def test_what_is_copied_is_copied_as_it_is(self, tmp_path: Path) -> None:
        later = codec.seal(codec.encode(HEADER)[: -len(',"crc":"00000000"}\n')] + b',"mood":"fine","minor":9}')
        odd = codec.seal(b'{"kind":"later","t":1,"x":1e999}')
        (tmp_path / "s").write_bytes(later + notice(1).raw + b"\n" + odd)
        mark(tmp_path / "s", MARKED, tmp_path / "out")
        assert (tmp_path / "out").read_bytes().splitlines()[:3] == [later[:-1], notice(1).raw, odd[:-1]]

    def test_a_lossy_source_never_becomes_a_whole_session(self, tmp_path: Path) -> None:
        for name, change in (
            ("no-end", lambda whole: whole[:-1]),
            ("damaged", lambda whole: [*whole[:5], b"junk\n", *whole[5:]]),
            ("torn", lambda whole: [*whole[:-1], whole[-1][:-9]]),
        ):
            source = tmp_path / name
            source.write_bytes(b"".join(change(two_runs(tmp_path / f"{name}-whole").read_bytes().splitlines(keepends=True))))
            complete = mark(source, MARKED, tmp_path / f"{name}-out")
            loaded = load(tmp_path / f"{name}-out")
            assert not complete and not loaded.complete
            assert loaded.closed and loaded.dropped >= 1 and loaded.end and loaded.end.reason == "incomplete source"


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
