"""Files that were once silently misread, and similar ones: each is read, or refused with the reason."""

import gzip
import io
import json
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow
import pytest
import scipy.io
import scipy.sparse
from processes import DATA
from pyarrow import parquet

from fwtui import Refused, solve
from fwtui.__main__ import main
from fwtui.graphs.file_options import AUTO, FileOptions
from fwtui.graphs.graph_loader import load_lazily

INPUTS = DATA / "inputs"


def length(path: str | Path, source: str, target: str, weight: str = AUTO, no_edge: float | str = "") -> float:
    """Return the distance between two vertices of a file."""
    graph = load_lazily(str(path), options=FileOptions(weight, str(no_edge)))
    result = solve(graph.adjacency)
    return float(result.distances[graph.vertices.index(source), graph.vertices.index(target)])


def notes(path: str | Path) -> str:
    return "; ".join(load_lazily(str(path)).notes)


@pytest.mark.parametrize(
    ("name", "source", "target", "expected", "vertices", "words"),
    [
        ("d3_value.csv", "A", "C", 12, 3, "weights from column 'value'"),
        ("weight_km.csv", "A", "C", 12, 3, "weights from column 'weight_km'"),
        ("value.parquet", "A", "C", 12, 3, "weights from column 'value'"),
        ("osm_length.graphml", "101", "103", 200.5, 3, "weights from attribute 'length'"),
        ("default.graphml", "a", "c", 99, 3, "an edge without it weighs 99,"),
        ("two_column_header.csv", "0", "1", 1, 4, "each edge counts 1"),
        ("comment2.csv", "A", "C", 2, 3, "each edge counts 1"),
        ("konect_bip.txt", "left 1", "left 2", 2, 4, "bipartite"),
        ("konect_time.txt", "3", "1", 12, 3, "ignored: column 4"),
        ("gephi_export.csv", "b", "a", 2, 3, "2 edges of 2 undirected by column 'Type'"),
        ("und3.txt", "2", "0", 2, 3, "undirected, as its comments declare"),
        ("semicolon_decimal_comma.csv", "A", "C", 4, 3, "weights from column 3"),
        ("matrix3.csv", "0", "2", 7, 3, "read as a matrix of 3 x 3 weights"),
        ("float_ids.csv", "1.0", "4", 15, 4, "weights from column 'weight'"),
        ("nr_one_percent.mtx", "1", "3", 2, 3, "each edge counts 1"),
        ("ctrlz.gr", "1", "3", 10, 3, "weights from the arc lines"),
        ("gplus.txt", "116374117927631468606", "112188647432305746617", 2, 3, "each edge counts 1"),
        ("count_line.txt", "0", "2", 2, 3, "line 1 contains the numbers of vertices and edges, 3 and 2"),
        ("coo_dup.npz", "0", "1", 8, 3, "weights from the entries of the sparse matrix; 1 duplicate entry: duplicates add up"),
    ],
)
def test_a_file_gives_the_answer_that_its_author_means_and_how_it_was_read(
    name: str, source: str, target: str, expected: float, vertices: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = ["--from", source, "--to", target]
    assert main(["solve", str(INPUTS / name), *ends, "--summary", "--json", "--device", "cpu"]) == 0
    printed = capsys.readouterr()
    path, solved = map(json.loads, printed.out.splitlines())
    assert (path["distance"], solved["vertices"]) == (expected, vertices)
    assert words in "; ".join(solved["notes"]) and words in printed.err


def test_a_file_that_is_not_clear_is_refused() -> None:
    for name, words in (
        ("part.graphml", "has 1 edge without 'weight', such as a to c"),
        ("inf30.npy", "the greatest weight, 1073741823, .* pass --no-edge 1073741823"),
    ):
        with pytest.raises(Refused, match=words):
            load_lazily(str(INPUTS / name))
        assert main(["solve", str(INPUTS / name)]) == 2


@pytest.mark.filterwarnings("ignore:the greatest weight")
def test_the_option_for_no_edge_chooses_its_value(tmp_path: Path) -> None:
    assert length(INPUTS / "inf30.npy", "0", "2", no_edge=2**30 - 1) == 7
    assert length(INPUTS / "inf30.npy", "2", "0", no_edge=np.inf) >= 2**30 - 1
    whole = load_lazily(str(INPUTS / "inf30.npy"), options=FileOptions(no_edge="inf"))
    assert whole.notes == whole.adjacency.notes and whole.notes[0].startswith("read as a matrix of ")
    array = np.load(INPUTS / "inf30.npy")
    with pytest.warns(UserWarning, match="1073741823, is in so many cells that it may mean no edge"):
        solve(array)
    for greatest in (2**31 - 1, 2**63 - 1, 10**9, 0x3F3F3F3F, 987654321, 2 * 10**9, 1 << 29, (1 << 61) - 1):
        np.save(tmp_path / "m.npy", np.where(array == 2**30 - 1, greatest, array.astype(np.int64)))
        text = "\n".join(",".join(map(str, row)) for row in np.load(tmp_path / "m.npy").tolist())
        (tmp_path / "m.csv").write_text(text)
        scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_array(np.load(tmp_path / "m.npy")))
        for name in ("m.npy", "m.csv", "m.npz"):
            with pytest.raises(Refused, match=f"the greatest weight, {str(greatest)[: 15 if greatest < 2**53 else 3]}"):
                load_lazily(str(tmp_path / name))
            assert length(tmp_path / name, "0", "2", no_edge=greatest) == 7
    (tmp_path / "pairs.txt").write_text("1 2 5\n2 3 -1\n3 4 -1\n")
    assert load_lazily(str(tmp_path / "pairs.txt"), options=FileOptions(no_edge="-1")).n == 4
    assert length(tmp_path / "pairs.txt", "1", "3", no_edge=-1) == np.inf
    (tmp_path / "zeros.csv").write_text("0,1,0,0\n1,0,2,0\n0,2,0,3\n0,0,3,0\n")
    assert length(tmp_path / "zeros.csv", "0", "3", no_edge=0) == 6
    with pytest.raises(Refused, match="may mean no edge"):
        load_lazily(str(tmp_path / "zeros.csv"))


BAND = "\n".join(" ".join("0" if i == j else "1" if abs(i - j) == 1 else "inf" for j in range(6)) for i in range(6))
SIBLINGS = [
    # weights under other names, titles over edges, comments
    ("g.csv", "from,to,Distance (km)\nA,B,10\nB,C,2\n", "A", "C", 12),
    ("g.csv", "name,travel_time,source,target\nx,10,A,B\ny,2,B,C\n", "A", "C", 12),
    ("g.tsv", "Node1\tNode2\tCost\nA\tB\t10\nB\tC\t2\n", "A", "C", 12),
    ("g.txt", "FromNodeId ToNodeId length\n1 2 10\n2 3 2\n", "1", "3", 12),
    ("g.csv", "#source,target,weight\nA,B,10\nB,C,2\n", "A", "C", 12),
    ("g.csv", "# made by hand\n\n% twice\nsource,target,weight\nA,B,10\n# later\nB,C,2\n", "A", "C", 12),
    ("g.csv", "person,friend\n1,2\n2,3\n", "1", "3", 2),
    # separators, decimal commas, names of numbers
    ("g.csv", "sep=;\nsource;target;weight\nA;B;1,5\nB;C;2\n", "A", "C", 3.5),
    ("g.csv", "A\tB\t1.5\nB\tC\t2\n", "A", "C", 3.5),
    ("g.txt", "1,2,1.5\n2,3,2\n", "1", "3", 3.5),
    ("g.txt", "1 2 1,5\n2 3 2,0\n", "1", "3", 3.5),
    ("g.csv", "007,7,1\n7,8,2\n", "007", "8", 3),
    ("g.csv", "1.0,2.0,5\n2.00,3,5\n", "1", "3", 10),
    ("g.txt", "1.0 2 5\n2.0 3 5\n", "1", "3", 10),
    ("g.txt", "0 1 5\n2 0 3\n1 2 0\n", "0", "2", 5),
    ("g.csv", "9007199254740993,9007199254740992,5\n9007199254740992,1,5\n", "9007199254740993", "1", 10),
    ("g.txt", "Aix Bern 5\nBern Como 2\n", "Aix", "Como", 7),
    # directions
    ("g.csv", "source,target,weight,directed\na,b,2,false\nb,c,3,true\n", "b", "a", 2),
    ("g.txt", "# Graph: undirected, 2 edges\n0 1 5\n1 2 5\n", "2", "0", 10),
    ("g.edges", "% sym unweighted\n1 2\n2 3\n", "3", "1", 2),
    ("g.txt", "% bip posweighted\n% 2 2 2\n1 1 5\n2 1 3\n", "left 2", "left 1", 8),
    # matrices
    ("g.csv", ",A,B,C\nA,0,3,9\nB,3,0,4\nC,9,4,0\n", "A", "C", 7),
    ("g.csv", "0;1,5;;\n1,5;0;2;\n;2;0;1\n;;1;0\n", "0", "3", 4.5),
    ("g.txt", BAND, "0", "5", 5),
    # counts, exponents, ends of files
    ("g.txt", "4 3\n0 1 2\n1 2 2\n2 3 2\n", "0", "3", 6),
    ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1.5D+01\n\x1a", "1", "2", 15),
    ("g.mtx", "%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 1.5\n", "1", "2", 1.5),
    ("g.csv", "source,target,weight\r\nA,B,5\r\nB,C,5\r\n\x1a", "A", "C", 10),
    ("g.txt", "# Directed graph (each unordered pair of nodes is saved once): web.txt\n0 1\n1 2\n", "2", "0", np.inf),
    ("g.txt", "# undirected: false\n0 1\n1 2\n", "2", "0", np.inf),
    ("g.txt", "# directed=no\n0 1\n1 2\n", "2", "0", 2),
    ("g.txt", "%bip\n1 1\n1 2\n2 2\n", "left 1", "left 2", 2),
    ("g.csv", "Source,Target,Type,Weight\na,b,Mutual,2\nb,c,Undirected,3\n", "c", "a", 5),
    ("g.csv", "source,target,undirected,weight\na,b,true,2\n", "b", "a", 2),
    ("g.csv", "source,target,directed,weight\na,b,0,2\n", "b", "a", 2),
    ("g.csv", ",0,1,2\n0,0,3,9\n1,3,0,4\n2,9,4,0\n", "0", "2", 7),
    ("g.csv", "0,1,2\n0,3,9\n3,0,4\n9,4,0\n", "0", "2", 7),
    ("g.csv", "A,B,C\n0,3,9\n3,0,4\n9,4,0\n", "A", "C", 7),
    ("g.csv", "1.000e+00,2.000e+00,5.0\n2.000e+00,3.000e+00,5.0\n", "1", "3", 10),
    ("g.csv", "1,0;2;5\n2,0;3;5\n", "1", "3", 10),
    ("g.csv", "1,0;1,5;4\n1;1,5;2\n", "1,0", "1,5", 4),
    ("g.csv", "A\u3000,B,3\nA,B,1\n", "A", "B", 1),
    ("g.csv", "3,2\nA,B\nB,C\n", "A", "C", 2),
]


@pytest.mark.parametrize(("name", "text", "source", "target", "expected"), SIBLINGS)
def test_files_of_the_same_kinds(name: str, text: str, source: str, target: str, expected: float, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert length(tmp_path / name, source, target) == expected


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("g.csv", "source,target,strength\nA,B,10\n", "numbers in columns that may or may not be weights: strength; "),
        ("g.csv", "source,target,time,distance\nA,B,1,2\n", "several columns that may be the weights: time, distance; "),
        ("g.csv", "0,2\n2,0\n", "may be a matrix of 2 x 2 weights or a list of 2 edges"),
        ("g.csv", "0,1,5\n2,0,3\n1,2,0\n", "may be a matrix of 3 x 3 weights or a list of 3 edges"),
        ("g.csv", "1,2,3,4,5\n6,7,8,9,10\n", "has 5 columns of weights and 2 rows, but a matrix is square"),
        ("g.csv", "#a,#b\n#b,#c\n", "'#a,#b' is a comment or an edge"),
        ("g.csv", "source,target,weight\nA,B,1,5\n", "line 2: 4 fields, but the first line has 3"),
        ("g.txt", "1 2\n116374117927631468606 1\n", "vertex 116374117927631468606 is not an .* name the file .csv"),
        ("g.txt", "0 3 9\n3 0 4\n9 4 0\n", "may be a matrix of 3 x 3 weights or a list of 3 edges"),
        ("g.csv", "A,B\n0,3\n3,0\n", "may be a matrix of 2 x 2 weights or a list of 2 edges"),
        ("g.csv", "A,B\n#in, between\nB,C\n", "line 2: '#in,between' is a comment or an edge"),
        ("g.csv", "1;2;1,5\n1;3;1.000\n", "line 2: '1.000' is not a number with a decimal comma"),
        ("g.csv", "source,target,type\na,b,directed\nb,c,\n", "has '' in column 'type'; write directed or undirected"),
    ],
)
def test_ambiguous_files_are_refused(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(Refused, match=words):
        load_lazily(str(tmp_path / name))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "2 3\n0 1\n1 2\n",
            "line 1 is read as the edge from 2 to 3; if it contains the numbers of vertices and edges, remove it",
        ),
        ("4 2\n0 1\n1 2\n", "line 1 is read as the edge from 4 to 2; if"),
        ("3 3 2\n0 1 5\n1 2 4\n", "line 1 is read as the edge from 3 to 3; if"),
        ("3 2 1\n0 1 5\n1 2 4\n", "line 1 is read as the edge from 3 to 2; if"),
        ("# a bipartite graph\n1 1\n1 2\n", "its comments mention a bipartite graph, but equal names are one vertex here"),
    ],
)
def test_an_unclear_line_is_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text(text)
    assert words in notes(tmp_path / "g.txt")


def test_defaults_and_graphs_of_graphml_that_networkx_loses(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    graph = '<graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph>'
    weight = '<key id="w" for="%s" attr.name="weight" attr.type="double"><default>99</default></key>'
    colour = '<key id="c" for="edge" attr.name="color" attr.type="string"><default>red</default></key>'
    for keys in (weight % "edge" + colour, weight % "all"):
        path.write_text(f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}{graph}</graphml>')
        assert length(path, "a", "b") == 99
    path.write_text(f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{graph}{graph}</graphml>')
    with pytest.raises(Refused, match="holds more than one graph; save each graph in a separate file"):
        load_lazily(str(path))


def test_one_rule_for_weights_in_every_container(tmp_path: Path) -> None:
    edges = [("A", "B", 10), ("B", "C", 2), ("A", "C", 50)]
    table = dict(zip(("source", "target", "strength"), map(list, zip(*edges, strict=True)), strict=True))
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(edges, weight="strength")
    parquet.write_table(pyarrow.table(table), tmp_path / "g.parquet")
    (tmp_path / "g.csv").write_text("\n".join(",".join(map(str, row)) for row in [("source", "target", "strength"), *edges]))
    nx.write_graphml(graph, tmp_path / "g.graphml")
    np.savez(tmp_path / "g.npz", **{key: np.array(value) for key, value in table.items()})  # type: ignore[arg-type]
    for path in ("g.parquet", "g.csv", "g.graphml", "g.npz"):
        assert length(tmp_path / path, "A", "C", "strength") == length(tmp_path / path, "A", "C", "STRENGTH") == 12
        assert length(tmp_path / path, "A", "C", "none") == 1
        with pytest.raises(Refused, match="that may or may not be weights: strength"):
            load_lazily(str(tmp_path / path))
        with pytest.raises(Refused, match=r"has no (column|attribute) 'far' for weights; its (column|attribute)s: strength"):
            load_lazily(str(tmp_path / path), options=FileOptions("far"))
    for given in (graph, pyarrow.table(table)):
        assert solve(given, weight="strength").distances[0, 2] == 12 and solve(given, weight=None).distances[0, 2] == 1
        with pytest.raises(Refused, match="strength; pass weight=NAME"):
            solve(given)
    for unnamed in (np.ones((2, 2)), scipy.sparse.eye_array(2, format="csr")):
        with pytest.raises(Refused, match="has no columns with names"):
            solve(unnamed, weight="strength")
    for wrong, message in ((["strength"], "not a name; pass one"), (len, "is not the name of an attribute")):
        with pytest.raises(Refused, match=message):
            solve(graph, weight=wrong)  # type: ignore[arg-type]
    graph.add_edge("C", "D")
    assert solve(graph, weight="strength").stats.notes[1] == "1 edge without 'strength', such as C to D, count 1"
    view = nx.DiGraph([("a", "b", {"weight": 5}), ("b", "a", {"weight": 1})]).to_undirected(as_view=True)
    assert solve(view).distances.tolist() == [[0, 5], [1, 0]]


def test_one_rule_for_duplicates(tmp_path: Path) -> None:
    matrix = scipy.sparse.load_npz(INPUTS / "coo_dup.npz")
    by_rows = scipy.sparse.csr_array((matrix.data, matrix.coords[1], [0, 2, 3, 3]), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "csr.npz", by_rows)
    for given in (matrix, by_rows.tocsc(), by_rows):
        assert solve(given).distances[0, 1] == 8 and solve(given).stats.notes == ("1 duplicate entry: duplicates add up",)
    assert length(tmp_path / "csr.npz", "0", "1") == 8
    several = nx.MultiGraph([("0", "1", {"weight": 3}), ("0", "1", {"weight": 5}), ("1", "2", {"weight": 1})])
    assert solve(several).distances[0, 1] == 3 and "1 parallel edge: the lightest counts" in solve(several).stats.notes
    parquet.write_table(pyarrow.table({"source": [0, 0, 1], "target": [1, 1, 2], "weight": [3, 5, 1]}), tmp_path / "g.parquet")
    (tmp_path / "g.csv").write_text("0,1,3\n0,1,5\n1,2,1\n")
    (tmp_path / "g.gr").write_text("p sp 3 3\na 1 2 3\na 1 2 5\na 2 3 1\n")
    for name, expected in (("g.parquet", 1), ("g.csv", 1), ("g.gr", 3)):
        assert length(tmp_path / name, "1", "2") == expected
        assert "1 parallel edge: the lightest counts" in notes(tmp_path / name)
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 2 3\n1 2 5\n2 3 1\n")
    assert length(tmp_path / "g.mtx", "1", "2") == 8 == solve(scipy.io.mmread(tmp_path / "g.mtx")).distances[0, 1]
    assert notes(tmp_path / "g.mtx") == "weights from the entries of the sparse matrix; 1 duplicate entry: duplicates add up"


@pytest.mark.parametrize("path", [path for path in sorted(INPUTS.iterdir()) if path.name != "s1.txt"], ids=lambda path: path.name)
def test_standard_input_is_read_as_files(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    packed = gzip.compress(path.read_bytes()) if path.suffix != ".npz" else path.read_bytes()  # .npz is packed itself
    for name, data in ((str(path), b""), ("-", path.read_bytes()), ("-", packed)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main(["solve", name, "--json", "--device", "cpu"])
        printed = capsys.readouterr()
        found = json.loads(printed.out) if printed.out else {}
        error = "" if found else printed.err.replace("standard input", path.name)
        told.append((code, error, {k: v for k, v in found.items() if k not in ("graph", "seconds")}))
    assert told[0] == told[1] == told[2]


def test_standard_input_that_is_closed_or_used_twice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["solve", "-"]) == 2 and "standard input has no edges; put 'from to weight' on" in capsys.readouterr().err
    assert main(["solve", "-", "--pairs", "-"]) == 2 and "standard input can be read only once" in capsys.readouterr().err


def test_every_command_reads_a_file_with_the_same_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "g.csv", tmp_path / "g.txt"
    path.write_text("from,to,strength,price\na,b,5,3\nb,c,2,99999\n")
    reading = ["--weight", "price", "--no-edge", "99999", "--undirected"]
    assert main(["graph", "--file", str(path), *reading, "-o", str(out)]) == 0
    assert out.read_text().splitlines()[1:] == ["0 1 3", "1 0 3", "2 2 0"]
    capsys.readouterr()
    assert main(["solve", str(path), *reading, "--json"]) == 0
    solved = json.loads(capsys.readouterr().out)
    assert main(["run", "-k", "serial", "--file", str(path), *reading, "--json", "--telemetry-hz", "0"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert (ran["n"], ran["edges"], ran["verified"]) == (solved["vertices"], solved["edges"], True) == (3, 2, True)
    assert solved["answers"]["reachable"] == 2
    assert {name: ran["experiment"][name] for name in ("weight", "no_edge", "undirected")} == {
        **{"weight": "price", "no_edge": "99999", "undirected": True}
    }
    for words, sentence in (
        (["graph", "--file", str(path)], "strength, price; pass --weight NAME, or --weight none to count each edge 1"),
        (["run", "-n", "8", "--no-edge", "9"], "--no-edge is for graph files; pass --file PATH too, or omit it"),
        (["graph", "--file", str(path), "--no-edge", "x"], "no-edge 'x' is not a number; pass a weight such as 1073741823"),
        (["graph", "--file", str(path), "--weight", "price", "-o", str(out)], "exists already and is not overwritten; choose"),
    ):
        assert main(words) == 2 and sentence in capsys.readouterr().err
    assert main(["graph", "--file", str(path), "--weight", "price", "-o", str(out), "--force"]) == 0
    assert out.read_text().splitlines()[1:] == ["0 1 3", "1 2 99999"]


def test_names_are_not_changed_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, text = "می\u200cخواهم", (INPUTS / "zwnj.csv").read_text()
    assert name in text
    assert main(["solve", str(INPUTS / "zwnj.csv"), "-o", str(tmp_path / "o.csv")]) == 0
    assert (tmp_path / "o.csv").read_text().splitlines()[1] == f"{name},B,3"
    assert main(["solve", str(INPUTS / "zwnj.csv"), "--from", name, "--to", "C", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == [name, "B", "C"]
    assert main(["graph", "--file", str(INPUTS / "zwnj.csv"), "-o", str(tmp_path / "g.tsv")]) == 0
    assert length(tmp_path / "g.tsv", name, "C") == 5


def test_columns_are_aligned_by_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(INPUTS / "wide.csv"), "--from", "東京", "--to", "München"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  from    to       weight  distance",
        "  東京    大阪市      403       403",
        "  大阪市  München   9,000     9,403",
    ]


@pytest.mark.parametrize(("name", "headline"), [("big32.gr", "3,000,000,002"), ("digits.txt", "1234567.892")])
def test_a_path_has_one_length(name: str, headline: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(INPUTS / name), "--from", "1", "--to", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"from 1 to 3: {headline} over" in lines[0] and lines[-1].endswith(f" {headline}")


def test_the_binary_format_of_the_course(tmp_path: Path) -> None:
    numbers = [4, 3, 0, 1, 7, 1, 2, 5, 0, 1, 9]
    for name in ("c.bin", "c.in"):
        np.array(numbers, "<i4").tofile(tmp_path / name)
        assert length(tmp_path / name, "0", "2") == 12 and "third number of each edge; 1 parallel edge" in notes(tmp_path / name)
    assert main(["solve", str(tmp_path / "c.in"), "-o", str(tmp_path / "d.bin")]) == 0
    far = 2**30 - 1
    expected = [[0, 7, 12, far], [far, 0, 5, far], [far, far, 0, far], [far, far, far, 0]]
    assert np.fromfile(tmp_path / "d.bin", "<i4").reshape(4, 4).tolist() == expected
    assert main(["graph", "--file", str(tmp_path / "c.in"), "-o", str(tmp_path / "again.bin")]) == 0
    assert np.fromfile(tmp_path / "again.bin", "<i4").tolist() == [4, 2, 0, 1, 7, 1, 2, 5]
    (tmp_path / "real.csv").write_text("a,b,0.5\n")
    assert main(["solve", str(tmp_path / "real.csv"), "-o", str(tmp_path / "r.bin")]) == 2
    for data, words in (
        (numbers[:-1], "40 bytes, which do not fit its 4 vertices and 3 edges as int32; if it is text, name it .txt"),
        ([2, 1, 0, 2, 1], "edge 0 leads from 0 to 2, outside 0 to 1"),
        ([0, 0], "declares 0 vertices"),
    ):
        np.array(data, "<i4").tofile(tmp_path / "wrong.bin")
        with pytest.raises(Refused, match=words):
            load_lazily(str(tmp_path / "wrong.bin"))


def test_a_result_as_a_dataframe() -> None:
    pandas = pytest.importorskip("pandas")
    frame = solve(nx.DiGraph([("b", "a", {"weight": 2}), ("a", "c", {"weight": 3})])).to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["source", "target", "distance"]
    assert frame.to_numpy().tolist() == [["b", "a", 2], ["b", "c", 5], ["a", "c", 3]]


def test_a_dataframe_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Refused, match="to_dataframe needs pandas; run `python -m pip install pandas`"):
        solve(np.array([[0, 1.0], [2.0, 0]])).to_dataframe()
