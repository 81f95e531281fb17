"""Tables of edges from other libraries, and Parquet."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fwtui import solve
from fwtui.common.errors import Refused
from fwtui.graphs.edge_tables import of_table
from fwtui.graphs.graph_loader import load

ROADS = {"note": ["x", "y", "z"], "from": ["b", "a", "b"], "to": ["a", "c", "c"], "cost": [1.0, 2.0, 9.0]}


class Table:
    """The least dataframe: titles, columns for NumPy, and the dataframe protocol."""

    def __init__(self, columns: dict[str, Any]):
        self.columns = list(columns)
        self._data = columns

    def __getitem__(self, title: str) -> Any:
        return self._data[title]

    def __dataframe__(self) -> None: ...


def made_by(library: str, columns: dict[str, Any]) -> Any:
    if library == "columns":
        return Table(columns)
    if library in ("pyarrow", "stream"):
        made = pyarrow.table(columns)
        return made.to_reader() if library == "stream" else made
    return pytest.importorskip(library).DataFrame(columns)


@pytest.mark.parametrize("library", ["columns", "pandas", "polars", "pyarrow", "stream"])
def test_a_table_of_any_library(library: str) -> None:
    result = solve(made_by(library, ROADS))
    assert result.vertices.labels == ["b", "a", "c"]
    assert result.distances.tolist() == [[0, 1, 3], [np.inf, 0, 2], [np.inf, np.inf, 0]]
    numbered = of_table(made_by(library, {"source": [7, 5], "target": [5, 2**40]}))
    assert numbered.vertices.labels == [5, 7, 2**40] and numbered.all_arcs().weights.tolist() == [1, 1]
    with pytest.raises(Refused, match=r"the table, row 1 has the target '(nan|None)'; use text or an integer"):
        of_table(made_by(library, {"source": ["a", "b"], "target": ["b", None]}))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1], "b": [2], "c": [3]}, "has the columns a, b, c; rename the edge columns to source, target and weight"),
        ({"source": [], "target": []}, "has no rows"),
        ({"source": [1], "target": [2], "weight": ["far"]}, "a weight that is not a number"),
        ({"source": [1, 2], "target": [2, 3], "weight": [1, np.nan]}, "row 1 has the weight nan"),
        ({"source": [1.0, np.nan], "target": [2, 3]}, "row 1 has the source 'nan'"),
        ({"source": [0.5], "target": [2]}, "row 0 has the source '0.5'"),
    ],
)
def test_other_objects_are_not_tables_of_edges(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        solve(Table(columns))


def test_large_numbers_are_not_rounded_and_titles_stand_once(tmp_path: Path) -> None:
    large = 2**62 + 1
    table = Table({"source": np.array([large], np.uint64), "target": np.array([-large], np.int64)})
    assert of_table(table).vertices.labels == [-large, large]
    beyond = Table({"source": np.array([2**64 - 1], np.uint64), "target": np.array([-1], np.int64)})
    assert of_table(beyond).vertices.labels == [str(2**64 - 1), "-1"]
    twice = pyarrow.table([[1], [2], [3]], names=["source", "target", "target"])
    parquet.write_table(twice, tmp_path / "g.parquet")
    for found in (lambda: solve(twice), lambda: load(str(tmp_path / "g.parquet"))):
        with pytest.raises(Refused, match="more than one column 'target'; rename them"):
            found()


def test_without_pyarrow_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "g.parquet").write_bytes(b"PAR1")
    with pytest.raises(Refused, match=r"g.parquet is Parquet, which needs pyarrow; .* fwtui\[arrow\]"):
        load(str(tmp_path / "g.parquet"))


def packed(folder: Path) -> Path:
    parquet.write_table(pyarrow.table(ROADS), folder / "g.parquet")
    return folder / "g.parquet"


def test_parquet_is_a_table_of_edges(tmp_path: Path) -> None:
    result = solve(load(str(packed(tmp_path))))
    assert result.vertices.labels == ["b", "a", "c"] and result.distances[0].tolist() == [0, 1, 3]


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path)
    data = path.read_bytes()

    @settings(max_examples=40)
    @given(st.integers(0, len(data)), st.binary(max_size=12))
    def spoiled(at: int, instead: bytes) -> None:
        path.write_bytes(data[:at] + instead + data[at + len(instead) + 1 :])
        try:
            load(str(path))
        except Refused as refusal:
            assert "g.parquet" in str(refusal) and "\n" not in str(refusal)

    spoiled()
