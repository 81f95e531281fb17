"""Saved graphs: they are read back as the same matrix, other programs read them, and mistakes get one sentence."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pretending import Pretend

from fwtui.__main__ import main
from fwtui.common.errors import Refused
from fwtui.experiment import generate as room
from fwtui.experiment.experiment import Experiment
from fwtui.experiment.generate import generate
from fwtui.graphs.graph import GraphInput, graph_of
from fwtui.graphs.graph_loader import read
from fwtui.graphs.writers import picture, write
from fwtui.measure.save_graph import save
from fwtui_kernels.plan import DTYPES, NO_EDGE

SUFFIXES = ("gr", "mtx", "txt", "csv", "tsv", "npy", "npz")


def of(matrix: np.ndarray, integer: bool | None = None) -> GraphInput:
    whole = matrix.dtype.kind == "i" if integer is None else integer
    return replace(graph_of(matrix, whole, "made\nhere"), note="by hand")


def same(first: GraphInput, second: GraphInput) -> bool:
    return first.dtype == second.dtype and first.matrix.tobytes() == second.matrix.tobytes() and first.edges == second.edges


WEIGHTS = {
    "int32": st.integers(-(2**29), 2**30 - 2),
    "int16": st.integers(0, 0x3FFE),
    "float32": st.floats(-(2.0**40), 2.0**40, width=32) | st.integers(-(2**24), 2**24).map(float),
    "float64": st.floats(-1e15, 1e15) | st.integers(-(10**15), 10**15).map(float),  # as far as the reader takes
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=4)
@given(data=st.data())
def test_any_weights_come_back(tmp_path_factory: pytest.TempPathFactory, suffix: str, dtype: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 5))
    integers = st.integers(-(2**24), 2**24).map(float)  # the only weights of .gr
    weights = integers if suffix == "gr" and dtype.startswith("float") else WEIGHTS[dtype]
    cells = data.draw(st.lists(st.none() | weights, min_size=n * n, max_size=n * n))
    matrix = np.array([NO_EDGE[dtype] if w is None else w for w in cells], dtype=dtype).reshape(n, n) + np.dtype(dtype).type(0)
    loops = np.minimum(matrix.diagonal(), 0)  # a loop above 0 is never kept
    matrix[np.arange(n), np.arange(n)] = np.where(matrix.diagonal() == NO_EDGE[dtype], 0, loops)
    finite = matrix[np.isfinite(matrix)]
    whole = bool((finite % 1 == 0).all())
    assume(dtype != "float32" or not whole or np.abs(finite).max() <= 2**24)  # the reader refuses those in words
    assume(whole or suffix != "gr")  # and the writer these
    greatest = finite.max(initial=0)
    assume(greatest < 127 or np.count_nonzero(matrix == greatest) == 1)  # a common greatest weight may mean no edge
    graph = of(matrix, integer=whole)
    path = tmp_path_factory.mktemp("any") / f"g.{suffix}"
    complete = graph.edges == n * (n - 1)
    assume(suffix != "npy" or not complete or graph.matrix.all() or (graph.matrix.diagonal() >= 0).any())  # and .npy these
    assert write(graph, path) == path.stat().st_size
    again = read(str(path), dtype)
    assert same(again, graph)
    assert (again.low, again.high, again.negative_share) == (graph.low, graph.high, graph.negative_share)


def test_zeros_that_npy_cannot_tell_from_no_edge_which_npz_names(tmp_path: Path) -> None:
    graph = generate(Experiment(n=30, low=0))
    write(graph, tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as saved:  # allow_pickle is off
        assert set(saved) == {"weights", "no_edge"} and (saved["weights"] == graph.matrix).all()
        assert int((saved["weights"] != saved["no_edge"]).sum()) == graph.edges + 30
    with pytest.raises(Refused, match=r"weights of 0 would be read as no edge; choose .mtx"):
        write(of(np.array([[-1, 0], [0, -1]], dtype=np.float32), integer=True), tmp_path / "g.npy")


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_names_come_back(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "towns.csv").write_text('Aix,"Bern, ""B"" & <b>",3\n"Bern, ""B"" & <b>",Como,4\nDole,Dole,5\n')
    towns = read(str(tmp_path / "towns.csv"), "int32")
    write(towns, tmp_path / f"g.{suffix}")
    again = read(str(tmp_path / f"g.{suffix}"), "int32")
    assert towns.vertices is not None and again.vertices is not None
    assert again.vertices.labels == towns.vertices.labels and same(again, towns)


def test_other_programs_read_a_saved_graph(tmp_path: Path) -> None:
    graph = generate(Experiment(n=20, dtype="float32", real=True, low=0.5, high=2))
    write(graph, tmp_path / "g.mtx")
    theirs = scipy.io.mmread(tmp_path / "g.mtx").toarray()  # pyright: ignore[reportAttributeAccessIssue]
    ours = np.where(np.isinf(graph.matrix), 0, graph.matrix)
    assert (theirs == ours).all()
    lines = (tmp_path / "g.mtx").read_text().splitlines()
    assert lines[0] == "%%MatrixMarket matrix coordinate real general" and lines[2] == f"20 20 {graph.edges}"
    write(generate(Experiment(n=20)), tmp_path / "g.gr")
    assert all(re.fullmatch(r"c .*|p sp 20 \d+|a \d+ \d+ \d+", x) for x in (tmp_path / "g.gr").read_text().splitlines())


def test_a_drawing_of_a_small_graph(tmp_path: Path) -> None:
    far = NO_EDGE["int32"]
    matrix = np.array([[0, 3, far], [far, -1, 0], [far, far, 0]], dtype=np.int32)
    write(of(matrix), tmp_path / "g.dot")
    comment, *lines = (tmp_path / "g.dot").read_text().splitlines()
    assert comment == "// fwtui: made here; by hand", "a line break in a name does not end the comment"
    arrows = ['  0 -> 1 [label="3"];', '  1 -> 1 [label="-1"];', '  1 -> 2 [label="0"];']
    assert lines == ["digraph {", "  0;", "  1;", "  2;", *arrows, "}"]
    with pytest.raises(Refused, match=r"65 vertices, more than 64"):
        write(generate(Experiment(n=65)), tmp_path / "h.dot")


def test_a_small_matrix_as_aligned_numbers() -> None:
    far = NO_EDGE["int32"]
    assert picture(of(np.array([[0, -12], [far, 0]], dtype=np.int32)), 24) == ["   0    1", "0  0  -12", "1  .    0"]
    reals = np.array([[0, np.inf], [0.25, 0]], dtype=np.float32)
    assert picture(of(reals), 24) == ["      0  1", "0     0  .", "1  0.25  0"]
    with pytest.raises(Refused, match=r"25 vertices is too large to print \(at most 24\); name a file"):
        picture(generate(Experiment(n=25)), 24)


class TestRefused:
    def test_too_much_text(self, tmp_path: Path) -> None:
        graph = generate(Experiment(n=40, dtype="int32"))
        size = write(graph, tmp_path / "fits.gr")
        assert write(graph, tmp_path / "exactly.gr", size) == size
        (tmp_path / "over.gr").write_text("before")
        with pytest.raises(Refused, match=rf"over.gr would have more than {size - 1:,} bytes of text; choose .npz"):
            write(graph, tmp_path / "over.gr", size - 1)
        assert (tmp_path / "over.gr").read_text() == "before", "what was there stays"
        assert {p.name for p in tmp_path.iterdir()} == {"fits.gr", "exactly.gr", "over.gr"}

    def test_suffixes_and_places(self, tmp_path: Path) -> None:
        graph = generate(Experiment(n=3))
        for name, words in (("g.doc", "none of .gr, .mtx, .txt"), ("g", "none of"), ("nowhere/g.gr", "no such file")):
            with pytest.raises(Refused, match=words):
                write(graph, tmp_path / name)
        with pytest.raises(Refused, match="cannot be written"):
            write(graph, "nul\0byte.gr")
        assert not list(tmp_path.iterdir())


class TestCommand:
    def test_the_command_starts_a_process_that_saves(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "g.mtx"
        assert main(["graph", "-n", "50", "--dtype", "int16", "--exact", "yes", "-d", "10%", "-o", str(out)]) == 0
        graph = generate(Experiment(n=50, dtype="int16", exact=True, density=0.1))
        assert same(read(str(out), "int16"), graph)
        assert re.fullmatch(
            r"fwtui: g.mtx: 50 vertices, 245 edges, weights 1..16; generated in .*, .* written in .*\n", capfd.readouterr().err
        )

    def test_printing_and_mistakes(self, capsys: pytest.CaptureFixture[str]) -> None:
        save(Experiment(n=5, dtype="int32"), "")
        assert capsys.readouterr().out.splitlines() == picture(generate(Experiment(n=5, dtype="int32")), 24)
        for words, said in (("-n 10,20", "2 graphs"), ("-n 0", "outside 1"), ("--file g.doc", "ends in none of .gr, .mtx, .txt")):
            assert main(["graph", *words.split()]) == 2
            assert said in capsys.readouterr().err

    def test_the_input_is_not_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / "g.gr").write_text("p sp 2 1\na 1 2 7\nc ours\n")
        (tmp_path / "link.gr").symlink_to(tmp_path / "g.gr")
        with pytest.raises(Refused, match=r"link.gr is the input, and would be overwritten; choose another name"):
            save(Experiment(file=str(tmp_path / "g.gr")), str(tmp_path / "link.gr"))
        assert "ours" in (tmp_path / "link.gr").read_text()

    def test_mistakes_before_the_work(self, monkeypatch: pytest.MonkeyPatch, pretend: Pretend) -> None:
        monkeypatch.setattr("fwtui.measure.save_graph.generate", lambda *_: pytest.fail("it was generated first"))
        for asked, out, words in (
            (Experiment(n=25), "", "too large to print"),
            (Experiment(n=4), "g.png", "none of .gr"),
            (Experiment(n=4, real=True), "g.gr", "choose .mtx"),
            (Experiment(n=60000, dtype="int32", density=0.001), "g.gr", "needs 13.4 GiB of memory, but only 1.00 GiB is free"),
            (Experiment(n=65536), "g.npz", r"needs 16.0 GiB of memory, .*; choose n up to 16384"),
        ):
            free = 2**30 + room.RESERVED_MEMORY if "memory" in words else 2**60
            pretend.free_memory(free)
            with pytest.raises(Refused, match=words):
                save(asked, out)
