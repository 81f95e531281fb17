"""Tables of `fwtui export`: the same rows in every format, and cells that are neither formulas nor markup."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from builders import header, write_session
from recorded_sessions import GOLDEN

from fwtui.__main__ import main
from fwtui.analysis import export
from fwtui.stream import events


class TestExport:
    def test_csv_of_telemetry_is_every_reading(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        out, looked_at, cell = io.StringIO(), list[Any](), export._csv_cell
        monkeypatch.setattr(export, "_csv_cell", lambda value: [looked_at.append(value), cell(value)][1])
        readings = [events.Telemetry(t=tick / 10, cpu_utilisation=0.5) for tick in range(80)]
        export.write_csv(export.read_rows(write_session(tmp_path / "s", [header(), *readings]), "telemetry")[0], out)
        rows = list(csv.DictReader(io.StringIO(out.getvalue())))
        assert [float(row["t"]) for row in rows] == [tick / 10 for tick in range(80)]
        assert {row["cpu_utilisation"] for row in rows} == {"0.5"} and {row["gpu_power_watts"] for row in rows} == {""}
        assert len(looked_at) <= 4 * len(rows), "most cells of a reading are empty and cost nothing"

    @pytest.mark.parametrize("table", export.TABLES)
    def test_every_table_has_the_same_rows_in_every_format(self, table: str) -> None:
        rows = [*export.read_rows(GOLDEN, table)[0]]
        assert rows or table == "counters"  # which version 1 did not have
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

    def test_numbers_of_a_report_have_units(self) -> None:
        out, row = (
            io.StringIO(),
            {"n": 4096, "seconds": 0.2528942, "share": 0.03243, "model_bytes_per_second": 4.3477e12, "x": 0.12345},
        )
        export.write_markdown([row], out)
        head, _, cells = out.getvalue().splitlines()
        assert head == "| n | seconds | share | model bytes per second | x |"
        assert cells == "| 4096 | 253 ms | 3.2 % | 4.35 TB/s | 0.12 |"
        export.write_markdown([{"counter": "seconds", "value": 3.1e-4}, {"counter": "dram_share", "value": 0.25}], out)
        assert out.getvalue().splitlines()[-2:] == [r"| seconds | 310 us |", r"| dram\_share | 25.0 % |"]


def test_export_to_a_file_and_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs.csv"
    assert main(["export", str(GOLDEN), "-o", str(out)]) == 0
    assert main(["export", str(GOLDEN)]) == 0
    assert capsys.readouterr().out == out.read_text()
    assert main(["export", str(GOLDEN), "-o", str(out)]) == 2
    assert "exists already and is not overwritten" in capsys.readouterr().err
    assert main(["export", str(GOLDEN), "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("| run | kernel | n |")
