"""The columns of a run: every table takes its own from one place."""

from __future__ import annotations

import pytest

from fwtui.analysis import columns
from fwtui.analysis.columns import BENCHED, COMPARED, PICKED, PRINTED, SWEPT, TUNED, Column, TableRow, head, line
from fwtui.machine.tuned import TunedTrial
from fwtui.stream.model import Model

TRIAL = TunedTrial(n=1000, dtype="int32", nonnegative=True, kernel="tiled-cpu", tile=64, options={"cores": 1}, seconds=0.5)


def test_a_new_column_is_one_line_and_its_tables_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(columns.COLUMNS) == len(columns.ALL), "each has a key of its own"
    row, tables = TableRow(Model(), TRIAL.run), (PRINTED, COMPARED, BENCHED, SWEPT, TUNED, PICKED)
    before = [(head(table), line(table, row)) for table in tables]
    added = Column("added", "vertices", lambda r: r.run.n, dict.fromkeys(tables[1:], 0), unit=lambda n: f"{n} in all")
    monkeypatch.setitem(columns.COLUMNS, "added", added)
    first, *others = [(head(table), line(table, row)) for table in tables]
    assert first == before[0], "it was not asked for there"
    assert others == [((*titles, "vertices"), (*texts, "1000 in all")) for titles, texts in before[1:]]


def test_a_trial_that_was_kept_has_the_columns_of_a_run() -> None:
    told = ("1000", "int32", "tiled-cpu", "tile 64, cores 1", "500 ms")
    assert line(PICKED, TableRow(Model(), TRIAL.run)) == (*told, "2.00 Grelax/s")
    failed = TunedTrial(n=8, dtype="int32", nonnegative=True, kernel="serial")
    assert line(TUNED, TableRow(Model(), failed.run, ended="it broke")) == ("8", "int32", "serial", "-", "n/a", "it broke")
