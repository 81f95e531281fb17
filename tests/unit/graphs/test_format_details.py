"""What no round trip shows of a format: the types, words and order of its files, and the sentences for what it refuses."""

import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretending import Pretend
from scipy.sparse import coo_array, csc_array, csr_array, save_npz
from test_graph_writers import of

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency, Arcs, LazyGraph
from fwtui.graphs.formats import graphml, npy, read_help, suffix_of, written_help
from fwtui.graphs.loading import load, load_lazily, read
from fwtui.graphs.writers import write
from fwtui_kernels.plan import NO_EDGE

NONE = NO_EDGE["int32"]
INF = np.inf


def test_what_is_read_and_written_is_told_in_full() -> None:
    assert read_help() == (
        "DIMACS .gr, Matrix Market .mtx, edge list .txt .edges .el .snap, table .csv .tsv, NumPy .npy, NumPy .npz, "
        "Parquet .parquet, GraphML .graphml; also with .gz, .bz2 or .xz"
    )
    assert written_help() == (
        "ends in .gr (DIMACS), .mtx (Matrix Market), .txt (edge list), .edges (edge list), .el (edge list), .snap (edge list), "
        ".csv (table), .tsv (table), .npy (NumPy), .npz (NumPy: weights, no_edge), .parquet (Parquet), .graphml (GraphML) "
        "or .dot (Graphviz)"
    )
    with pytest.raises(Refused, match=re.escape("(or those with .gz, .bz2, .xz); rename or convert it")):
        suffix_of("g.xyz")


@pytest.mark.parametrize(
    ("cells", "dtype", "written"),
    [
        ([[0, 1 << 24], [5, 0]], "<f4", [[0, 1 << 24], [5, 0]]),
        ([[0, (1 << 24) + 1], [5, 0]], "<f8", [[0, (1 << 24) + 1], [5, 0]]),
        ([[0, 0.5], [2.0**25, 0]], "<f4", [[0, 0.5], [2.0**25, 0]]),
        ([[0, 0], [5, 0]], "<f4", [[INF, 0], [5, INF]]),  # all cells finite: only the diagonal can say that 0 is a weight
        ([[0, 1], [5, 0]], "<f4", [[0, 1], [5, 0]]),
        ([[0, -3], [5, 0]], "<f4", [[INF, -3], [5, INF]]),
        ([[0, NONE, 1], [2, -1, NONE], [3, 0, -2]], "<f4", [[0, INF, 1], [2, -1, INF], [3, 0, -2]]),
    ],
)
def test_npy_has_the_narrowest_floats_and_a_diagonal_that_shows_zeros(
    tmp_path: Path, pretend: Pretend, cells: Any, dtype: str, written: Any
) -> None:
    pretend.limits("fwtui.graphs.graph", CELLS_AT_ONCE=3)
    matrix = np.array(cells, np.float32 if any(isinstance(w, float) for row in cells for w in row) else np.int32)
    write(of(matrix), tmp_path / "g.npy")
    found = np.load(tmp_path / "g.npy")
    assert found.dtype == dtype and found.tolist() == written


def named(graph: Adjacency) -> list[str]:
    return [graph.vertices.name(vertex) for vertex in range(graph.n)]


def saved(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


def test_an_array_is_as_it_was_saved_and_the_side_of_a_square_is_checked() -> None:
    sides: list[int] = []
    for shape in ((2, 2), (2, 3), (3, 2, 2), (0, 0), (1,) * 32):
        for version in ((1, 0), (2, 0), (3, 0)):
            array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
            data = saved(array, version)
            found = npy.array_in(io.BytesIO(data), "a", array.nbytes, sides.append)
            assert found.dtype == np.int16 and found.tolist() == array.tolist()
    assert sides == [2, 2, 2, 0, 0, 0]
    assert npy.array_in(io.BytesIO(saved(np.arange(6).reshape(2, 3).T)), "a", 999).tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(Refused, match=r"^a ends after 192 bytes of an array of 200; fetch it again$"):
        npy.array_in(io.BytesIO(saved(np.zeros((5, 5)))[:-8]), "a", 300)


@pytest.mark.parametrize("form", [coo_array, csr_array, csc_array])
def test_sparse_matrices_of_npz(tmp_path: Path, form: Any) -> None:
    save_npz(tmp_path / "g.npz", form(np.array([[0, 2.5, 0], [0, 0, 3], [4, 0, 0]])))
    graph = load_lazily(str(tmp_path / "g.npz"))
    assert isinstance(graph, LazyGraph) == (form is not csc_array)
    if isinstance(graph, LazyGraph):
        assert (type(graph.parts) is Arcs) == (form is coo_array)
    arcs = graph.adjacency.all_arcs()
    assert sorted(zip(*(part.tolist() for part in arcs), strict=True)) == [(0, 1, 2.5), (1, 2, 3), (2, 0, 4)]


@pytest.mark.parametrize(("kind", "held"), [("i2", "f4"), ("i4", "f8"), ("f4", "f4")])
def test_the_own_form_of_npz_holds_every_weight(tmp_path: Path, kind: str, held: str) -> None:
    np.savez(tmp_path / "g.npz", weights=np.array([[0, 3, 4], [5, 0, 9], [1, 2, 0]], kind), no_edge=np.array(9, kind))
    graph = load(str(tmp_path / "g.npz"))
    assert graph.dense is not None and graph.dense.dtype == held and graph.dense[1].tolist() == [5, 0, INF]
    assert named(graph) == ["0", "1", "2"]


TEXTS = {
    "g.csv": ("source,target,weight\n0,1,7\n", "source,target,weight\n0,1,0.5\n"),
    "g.tsv": ("source\ttarget\tweight\n0\t1\t7\n",) * 2,
    "g.mtx": ("%%MatrixMarket matrix coordinate integer general\n", "%%MatrixMarket matrix coordinate real general\n"),
    "g.graphml": (
        '<key id="weight" for="edge" attr.name="weight" attr.type="long"/>\n<graph edgedefault="directed">\n<node id="0"/>\n'
        '<node id="1"/>\n<edge source="0" target="1"><data key="weight">7</data></edge>\n</graph>\n</graphml>\n',
        'attr.type="double"/>',
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_to_the_letter(tmp_path: Path, name: str) -> None:
    for cells, text in zip(([[0, 7], [NONE, 0]], [[0.0, 7 if name == "g.tsv" else 0.5], [INF, 0]]), TEXTS[name], strict=True):
        write(of(np.array(cells, np.int32 if NONE in cells[1] else np.float32)), tmp_path / name)
        assert text in (tmp_path / name).read_text()


def test_numbers_of_vertices_are_kept_in_an_edge_list_and_names_are_not(tmp_path: Path) -> None:
    for given, expected in (("0 5 7\n", "0 5 7\n"), ("a,b,7\n", "0 1 7\n")):
        source = tmp_path / ("g.txt" if given[0] == "0" else "g.csv")
        source.write_text(given)
        write(read(str(source), "int32"), tmp_path / "out.txt")
        assert (tmp_path / "out.txt").read_text().endswith(f"\n{expected}")
    (tmp_path / "g.txt").write_text("3 4 100\n4 5 100\n5 3 1\n")
    assert named(load(str(tmp_path / "g.txt"))) == ["3", "4", "5"]


def test_half_of_a_skew_symmetric_matrix_and_an_array_in_pieces(tmp_path: Path, pretend: Pretend) -> None:
    lines = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n" + "1\n2\n3\n"
    (tmp_path / "g.mtx").write_text(lines)
    for most in (1 << 20, 4):  # bytes of text at a time
        pretend.limits("fwtui.graphs.number_lines", CHUNK=most) if most == 4 else None
        arcs = load(str(tmp_path / "g.mtx")).all_arcs()
        found = {(int(u), int(v)): float(w) for u, v, w in zip(*arcs, strict=True)}
        assert found == {(1, 0): 1, (2, 0): 2, (2, 1): 3, (0, 1): -1, (0, 2): -2, (1, 2): -3}
    with pytest.raises(Refused, match=r"half its weights are negative, which int16 does not take; choose int32 or float32$"):
        read(str(tmp_path / "g.mtx"), "int16")


def test_graphml_without_networkx_or_with_too_many_edges(
    tmp_path: Path, pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend.limits(graphml, _MOST_TAGS=5)
    edge, two = (np.array(cells, np.int32) for cells in ([[0, 7], [NONE, 0]], [[0, 7], [7, 0]]))
    write(of(edge), tmp_path / "g.graphml")
    with pytest.raises(Refused, match=r"^2 edges are too many for GraphML, which is read up to 1; choose \.npz or \.csv$"):
        write(of(two), tmp_path / "h.graphml")
    pretend.limits(graphml, _MOST_TAGS=14)
    assert isinstance(load(str(tmp_path / "g.graphml")), Adjacency)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(Refused, match=r"^g\.graphml needs NetworkX to be read; run `python -m pip install networkx`$"):
        load(str(tmp_path / "g.graphml"))
