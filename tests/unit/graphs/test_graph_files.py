"""Graph files of every format: read as SciPy reads them, and details that no round trip shows."""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, save_npz
from test_graph_writers import of

from fwtui.common.errors import Refused
from fwtui.graphs import formats, graph_file, library_objects
from fwtui.graphs.adjacency import Adjacency, ArcCollector, Arcs, LazyGraph
from fwtui.graphs.formats import npz
from fwtui.graphs.graph_limits import GraphLimits
from fwtui.graphs.graph_loader import load, load_lazily, read
from fwtui.graphs.writers import write
from fwtui_kernels.plan import NO_EDGE

FAR = NO_EDGE["int32"]


def gr(folder: Path, text: str, name: str = "graph.gr") -> str:
    path = folder / name
    path.write_bytes(text.encode("latin1"))
    return str(path)


def test_gr_with_comments_over_several_chunks_and_in_float32(tmp_path: Path) -> None:
    text = "c roads\n\nc of nowhere\np sp 3 6\na 1 2 7\nc in between\na 1 2 4\r\n\na 1 2 9\na 2 2 5\na 3 3 -1\na 2 3 0"
    graph = read(gr(tmp_path, text), "int32")
    assert graph.matrix.tolist() == [[0, 4, FAR], [FAR, 0, 0], [FAR, FAR, -1]]
    assert (graph.edges, graph.low, graph.high, graph.integer, graph.drift) == (2, -1, 4, True, 2)
    assert graph.name == "graph.gr" and "4 of 6" in graph.note
    grid = read(gr(tmp_path, "p sp 2 2\na 1 2 1.5\na 2 1 -0.25\n"), "float32")
    assert grid.matrix.tolist() == [[0, 1.5], [-0.25, 0]]
    assert (grid.integer, grid.exact_sums, grid.drift, grid.negative_share) == (False, True, 0.25, 0.5)
    assert not read(gr(tmp_path, "p sp 2 1\na 1 2 0.1\n"), "float32").exact_sums
    whole = read(gr(tmp_path, "p sp 2 1\na 1 2 16777216\n"), "float32")
    assert whole.integer and np.isposinf(whole.matrix[1, 0])
    small = GraphLimits(chunk=64)
    rng = np.random.default_rng(3)
    arcs = np.column_stack([rng.integers(1, 9, 300), rng.integers(1, 9, 300), rng.integers(0, 99, 300)]).tolist()
    lines = "".join(f"a {u} {v} {w}\n" for u, v, w in arcs)
    matrix = np.empty((8, 8), np.int32)
    load(gr(tmp_path, "p sp 8 300\n" + lines), small).fill(matrix)
    least = np.full((8, 8), FAR)
    np.minimum.at(least, tuple(np.array(arcs).T[:2] - 1), [w for *_, w in arcs])
    np.fill_diagonal(least, 0)
    assert (matrix == least).all()
    with pytest.raises(Refused, match="line 302: 'b 1 2 3'"):
        load(gr(tmp_path, "p sp 8 301\n" + lines + "b 1 2 3\n"), small)
    with pytest.raises(Refused, match="line of more than 64 bytes"):
        load(gr(tmp_path, "p sp 8 1\na 1 2 " + "3" * 200 + "\n"), small)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize(("n", "dense"), [(1, False), (7, False), (7, True)])
def test_mtx_as_scipy_reads_it(tmp_path: Path, symmetry: str, n: int, dense: bool) -> None:
    values = np.random.default_rng(n).integers(-4, 9, (n, n)).astype(float)
    if symmetry == "symmetric":
        values += values.T.copy()
    if symmetry == "skew-symmetric":
        values -= values.T.copy()
    path = str(tmp_path / "graph.mtx")
    scipy.io.mmwrite(path, values if dense else coo_array(values), symmetry=symmetry)
    back = coo_array(scipy.io.mmread(path)).toarray()
    expected = np.where(back != 0, back, FAR)
    np.fill_diagonal(expected, np.minimum(back.diagonal(), 0))
    assert (read(path, "int32").matrix == expected).all()


def test_mtx_details(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate "
    zero = gr(tmp_path, head + "integer symmetric\n% words\n\n2 2 2\n2 1 0\n2 2 3\n", "zero.mtx")
    assert read(zero, "int32").matrix.tolist() == [[0, 0], [0, 0]]
    pattern = gr(tmp_path, head + "pattern general\n3 3 2\n1 2\n3 1\n", "pattern.mtx")
    assert read(pattern, "int32").matrix.tolist() == [[0, 1, FAR], [FAR, 0, FAR], [1, FAR, 0]]


@pytest.mark.parametrize("weight", ["1073741823", "-1073741823"])
def test_a_weight_that_does_not_fit_is_named_with_its_line(tmp_path: Path, weight: str) -> None:
    with pytest.raises(Refused, match=f"line 2: weight {weight} does not fit int32"):
        read(gr(tmp_path, f"p sp 2 1\na 1 2 {weight}\n"), "int32")


ARCS = [(1, 2, 7), (2, 3, 4), (3, 1, 0), (1, 2, 9), (3, 3, 5), (4, 1, 2)]


def written(folder: Path, name: str, arcs: Sequence[tuple[int, int, float]] = ARCS) -> str:
    """Write a graph of four vertices in the format of the suffix."""
    path, suffix = folder / name, Path(name.removesuffix(".gz")).suffix
    arcs = [arc for arc in arcs if suffix != ".mtx" or arc[2] != 9]  # whose duplicates add up
    matrix = np.full((4, 4), np.inf)
    np.fill_diagonal(matrix, 0)
    for u, v, w in arcs:
        if u != v:
            matrix[u - 1, v - 1] = min(matrix[u - 1, v - 1], w)
    if suffix == ".npy":
        np.save(path, matrix)
    elif suffix == ".npz":
        np.savez_compressed(path, matrix)
    else:
        between = {".csv": ",", ".tsv": "\t"}.get(suffix, " ")
        mtx = f"%%MatrixMarket matrix coordinate real general\n4 4 {len(arcs)}\n"
        head = {".gr": f"p sp 4 {len(arcs)}\n", ".mtx": mtx}.get(suffix, "")
        tag = "a " if suffix == ".gr" else ""
        text = head + "".join(f"{tag}{u}{between}{v}{between}{w}\n" for u, v, w in arcs)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


EVERY = ("g.gr", "g.mtx", "g.txt", "g.snap", "g.csv", "g.tsv", "g.npy", "g.npz", "g.gr.gz", "g.csv.gz")


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
@pytest.mark.parametrize("name", EVERY)
def test_every_format_gives_kernels_the_same_matrix(tmp_path: Path, name: str, dtype: str) -> None:
    graph, usual = read(written(tmp_path, name), dtype), read(written(tmp_path, "usual.gr"), dtype)
    assert graph.matrix.dtype == dtype and (graph.matrix == usual.matrix).all()
    for fact in ("integer", "edges", "low", "high", "negative_share", "drift", "exact_sums"):
        assert getattr(graph, fact) == getattr(usual, fact), fact
    assert graph.name == name and graph.vertices is not None
    assert graph.vertices.name(3) == ("3" if ".np" in name else "4")


@pytest.mark.parametrize("name", EVERY)
def test_every_format_refuses_what_the_type_or_the_kernel_does_not_take(tmp_path: Path, name: str) -> None:
    for weight, dtype, said in (
        (0.5, "int32", r"weight 0.5 is not an integer, which int32 needs; choose float32 or float64"),
        (-3, "int16", r"weight -3 is negative, which int16 does not support; choose int32 or float32"),
        (16383, "int16", r"weight 16383 does not fit int16, which ends at 16382; choose int32"),
        (16777217, "float32", r"integer weights beyond 16,777,216, which float32 cannot hold exactly; choose int32"),
    ):
        with pytest.raises(Refused, match=said) as refusal:
            read(written(tmp_path, name, [*ARCS, (2, 4, weight)]), dtype)
        assert name in str(refusal.value)
    with pytest.raises(Refused, match=r"(has|declares) 4 vertices, outside 1 to 3; choose another graph"):
        read(written(tmp_path, name), "int32", max_vertices=3)
    with pytest.raises(Refused, match=r"GiB for 4 vertices in int32, but only .* is free; choose a smaller graph or a narrower"):
        read(written(tmp_path, name), "int32", free_bytes=383)


def test_the_formats_that_are_read_are_those_that_are_offered() -> None:
    for form in formats.FORMATS:
        assert (hasattr(form.load(), "read"), hasattr(form.load(), "write")) == (form.reads, form.writes), form
        assert form.suffixes and form.title and (form.reads or form.writes)
    assert tuple(graph_file._UNPACK) == formats.PACKED


PIECES = st.sampled_from(
    [
        *("p sp 3 2", "a 1 2 3", "a 3 1 -2", "a", "c", "3 3 2", "3 3", "1 2 3", "1 2", "7"),
        *("%%MatrixMarket matrix coordinate real general", "%%MatrixMarket matrix array real symmetric"),
        *("nan", "1_0", "\0", "\r", "9" * 30, "\xff", "1e400", "#"),
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(
    st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=8),
    st.sampled_from(["\n", " ", "\r\n"]),
    st.sampled_from([".gr", ".mtx"]),
)
def test_only_refusals_leave_for_any_bytes(tmp_path: Path, pieces: list[str], between: str, suffix: str) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(between.join(pieces).encode("utf-8", "replace"))
    for dtype in ("int32", "float32", "int16"):
        try:
            graph = read(str(path), dtype)
        except Refused as refusal:
            assert "\n" not in str(refusal)
        else:
            assert graph.matrix.shape == (graph.n, graph.n) and not np.isnan(graph.matrix).any()


def test_far_numbers_are_merged_too() -> None:
    gathered = ArcCollector(3)
    ends = np.array([2**52, 1, 2**52, 1])
    gathered.add(Arcs(ends, ends[::-1], np.array([4.0, 3.0, 2.0, 5.0])))
    assert [part.tolist() for part in gathered.all()] == [[1, 2**52], [2**52, 1], [3.0, 2.0]]


NONE = NO_EDGE["int32"]
INF = np.inf


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
def test_npy_has_the_narrowest_floats_and_its_diagonal_shows_zeros(tmp_path: Path, cells: Any, dtype: str, written: Any) -> None:
    matrix = np.array(cells, np.float32 if any(isinstance(w, float) for row in cells for w in row) else np.int32)
    write(of(matrix), tmp_path / "g.npy")
    found = np.load(tmp_path / "g.npy")
    assert found.dtype == dtype and found.tolist() == written
    matrix = np.random.default_rng(1).integers(1, 99, (600, 600), np.int32)  # two blocks
    write(of(matrix), tmp_path / "g.npy")
    assert (np.load(tmp_path / "g.npy") == np.where(np.eye(600), 0, matrix)).all()


def named(graph: Adjacency) -> list[str]:
    return [graph.vertices.name(vertex) for vertex in range(graph.n)]


@pytest.mark.parametrize("form", [coo_array, csr_array, csc_array])
def test_sparse_matrices_of_npz(tmp_path: Path, form: Any) -> None:
    save_npz(tmp_path / "g.npz", form(np.array([[0, 2.5, 0], [0, 0, 3], [4, 0, 0]])))
    graph = load_lazily(str(tmp_path / "g.npz"))
    assert isinstance(graph, LazyGraph) == (form is not csc_array)
    arcs = graph.adjacency.all_arcs()
    assert sorted(zip(*(part.tolist() for part in arcs), strict=True)) == [(0, 1, 2.5), (1, 2, 3), (2, 0, 4)]


def test_duplicate_entries_add_up_beyond_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[Any] = []
    for module in (library_objects, npz):
        monkeypatch.setattr(module, "check_sparse", checks.append)
    for weights, total in ((np.full(2, 100, np.int8), 200), (np.array([1 << 24, 1], np.float32), (1 << 24) + 1)):
        matrix = coo_array((weights, ([0, 0], [1, 1])), shape=(2, 2))
        save_npz(tmp_path / "g.npz", matrix)
        lazy = library_objects.lazy_of_object(matrix)
        checks.clear()
        given = load_lazily(str(tmp_path / "g.npz"))
        assert isinstance(given, LazyGraph) and len(checks) == 1 and "1 duplicate entry: duplicates add up" in given.notes
        for graph in (lazy, library_objects.of_object(matrix), given):
            assert graph is not None and graph.adjacency.all_arcs().weights.tolist() == [total]
    with pytest.raises(Refused, match="weights of type complex128 are not supported"):
        library_objects.graph_of(coo_array(([1j], ([0], [1])), shape=(2, 2)))


@pytest.mark.parametrize(("kind", "held"), [("i2", "f4"), ("i4", "f8"), ("f4", "f4")])
def test_the_own_form_of_npz_holds_every_weight(tmp_path: Path, kind: str, held: str) -> None:
    np.savez(tmp_path / "g.npz", weights=np.array([[0, 3, 4], [5, 0, 9], [1, 2, 0]], kind), no_edge=np.array(9, kind))
    graph = load(str(tmp_path / "g.npz"))
    assert graph.dense is not None and graph.dense.dtype == held and graph.dense[1].tolist() == [5, 0, INF]
    assert named(graph) == ["0", "1", "2"]


def test_texts_have_exactly_this_form(tmp_path: Path) -> None:
    for name, whole, real in (
        ("g.csv", "source,target,weight\n0,1,7\n", "source,target,weight\n0,1,0.5\n"),
        ("g.tsv", "source\ttarget\tweight\n0\t1\t7\n", "source\ttarget\tweight\n0\t1\t0.5\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate integer general\n", "%%MatrixMarket matrix coordinate real general\n"),
    ):
        for cells, dtype, text in (([[0, 7], [NONE, 0]], np.int32, whole), ([[0, 0.5], [INF, 0]], np.float32, real)):
            write(of(np.array(cells, dtype)), tmp_path / name)
            assert text in (tmp_path / name).read_text()


def test_numbers_of_vertices_are_kept_in_an_edge_list_and_names_are_not(tmp_path: Path) -> None:
    for text, expected in (("0 5 7\n", "0 5 7\n"), ("a,b,7\n", "0 1 7\n")):
        source = tmp_path / ("g.txt" if text[0] == "0" else "g.csv")
        source.write_text(text)
        write(read(str(source), "int32"), tmp_path / "out.txt")
        assert (tmp_path / "out.txt").read_text().endswith(f"\n{expected}")
    (tmp_path / "g.txt").write_text("3 4 100\n4 5 100\n5 3 1\n")
    assert named(load(str(tmp_path / "g.txt"))) == ["3", "4", "5"]


def test_half_of_a_skew_symmetric_matrix_and_an_array_in_pieces(tmp_path: Path) -> None:
    lines = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n" + "1\n2\n3\n"
    (tmp_path / "g.mtx").write_text(lines)
    for chunk in (1 << 20, 4):
        arcs = load(str(tmp_path / "g.mtx"), GraphLimits(chunk=chunk)).all_arcs()
        found = {(int(u), int(v)): float(w) for u, v, w in zip(*arcs, strict=True)}
        assert found == {(1, 0): 1, (2, 0): 2, (2, 1): 3, (0, 1): -1, (0, 2): -2, (1, 2): -3}
    with pytest.raises(Refused, match=r"half of its weights are negative, which int16 does not allow; choose int32 or float32$"):
        read(str(tmp_path / "g.mtx"), "int16")


def test_graphml_without_networkx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g.graphml").write_text("<graphml/>")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(Refused, match=r"^g\.graphml needs NetworkX to be read; run `python -m pip install networkx`$"):
        load(str(tmp_path / "g.graphml"))
