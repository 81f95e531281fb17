"""Graph files: valid ones are read as other programs read them, invalid ones are refused in one sentence."""

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from pretending import Pretend

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.formats import read_suffixes
from fwtui.graphs.graph_file import MAX_BYTES
from fwtui.graphs.graph_limits import GraphLimits
from fwtui.graphs.graph_loader import ANY, load
from fwtui.graphs.text_rows import GraphFile


def put(folder: Path, name: str, data: str | bytes) -> str:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def cells(graph: Adjacency) -> dict[tuple[str, str], float]:
    """Return the weight of each edge by the names of its ends."""
    found: dict[tuple[str, str], float] = {}
    for arcs in graph.pieces():
        for u, v, w in zip(*(part.tolist() for part in arcs), strict=True):
            key = (graph.vertices.name(u), graph.vertices.name(v))
            if u != v or w < 0:
                found[key] = min(w, found.get(key, np.inf))
    return found


AB = {("a", "b"): 2.5, ("b", "c"): -1.0}
NUMBERED = {("1", "2"): 7.0, ("3", "1"): 0.0}


class TestFormats:
    def test_numbers_begin_where_the_format_says_also_over_chunks(self, tmp_path: Path) -> None:
        assert cells(load(put(tmp_path, "g.gr", "c x\np sp 3 3\na 1 2 7\na 1 2 9\na 3 1 0\n"))) == NUMBERED
        banner = "%%MatrixMarket matrix coordinate real general\n"
        assert cells(load(put(tmp_path, "g.mtx", banner + "3 3 2\n1 2 7\n3 1 0\n"))) == NUMBERED
        assert load(put(tmp_path, "e.gr", "p sp 4 0\n")).n == 4
        path, small = put(tmp_path, "g.txt", "".join(f"{u} {u + 1} {u % 7}\n" for u in range(500))), GraphLimits(chunk=64)
        assert cells(load(path, small)) == {(str(u), str(u + 1)): u % 7 for u in range(500)}
        with pytest.raises(Refused, match="line 501: 'x y' is not of the form"):
            load(put(tmp_path, "g.txt", Path(path).read_text() + "x y\n"), small)

    @pytest.mark.parametrize("suffix", ["txt", "edges", "el", "snap"])
    def test_edge_lists_take_any_numbers(self, tmp_path: Path, suffix: str) -> None:
        graph = load(put(tmp_path, f"g.{suffix}", "# Directed graph\n# FromNodeId ToNodeId\n900\t5\n5\t17 # so\n\n17\t17\n"))
        assert graph.n == 3 and cells(graph) == {("900", "5"): 1, ("5", "17"): 1}
        dense = load(put(tmp_path, "d.txt", "0 1 2\n1 2 -3.5"))
        assert dense.vertices.numbered and cells(dense) == {("0", "1"): 2, ("1", "2"): -3.5}

    @pytest.mark.parametrize(
        "text",
        [
            "a,b,2.5\nb,c,-1\n",
            "source,target,weight\na,b,2.5\nb,c,-1",
            '"a", b,2.5\r\n\r\nb,"c",-1\r\n',
            "note,Weight,To,From\nx,2.5,b,a\n,-1,c,b\n",
            "\ufeffa,b,2.5\nb,c,-1\n",
        ],
    )
    def test_tables(self, tmp_path: Path, text: str) -> None:
        assert cells(load(put(tmp_path, "g.csv", text))) == AB
        assert cells(load(put(tmp_path, "g.tsv", text.replace(",", "\t")))) == AB

    def test_tables_without_weights_arrays_and_graphml(self, tmp_path: Path) -> None:
        graph = load(put(tmp_path, "g.csv", 'Köln,"St. Gallen, CH"\nKöln,東京\n'))
        assert cells(graph) == {("Köln", "St. Gallen, CH"): 1, ("Köln", "東京"): 1}
        assert graph.vertices.index("東京") == 2
        with pytest.raises(Refused, match="there is no vertex 'Bonn'; the first one is 'Köln', the last '東京'"):
            graph.vertices.index("Bonn")
        matrix = np.array([[0, 7, np.inf], [np.inf, 0, np.nan], [0, np.inf, 0]])
        expected = {("0", "1"): 7, ("2", "0"): 0}
        for given_ in (matrix, np.asfortranarray(matrix), matrix.astype(">f4")):
            np.save(tmp_path / "g.npy", given_)
            assert cells(load(str(tmp_path / "g.npy"))) == expected
            np.savez_compressed(tmp_path / "g.npz", anything=given_)
            assert cells(load(str(tmp_path / "g.npz"))) == expected
        graph = networkx.DiGraph()
        graph.add_weighted_edges_from([("a", "b", 2.5), ("b", "c", -1.0)])
        networkx.write_graphml(graph, tmp_path / "g.graphml")
        assert cells(load(str(tmp_path / "g.graphml"))) == AB

    @pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
    def test_packed(self, tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
        assert cells(load(put(tmp_path, f"g.csv.{suffix}", pack(b"a,b,2.5\nb,c,-1\n")))) == AB
        assert cells(load(put(tmp_path, f"g.gr.{suffix.upper()}", pack(b"p sp 3 2\na 1 2 7\na 3 1 0\n")))) == NUMBERED
        two = pack(b"a,b,2.5\n") + pack(b"b,c,-1\n")
        assert cells(load(put(tmp_path, f"two.csv.{suffix}", two))) == AB
        bomb = pack(b"1 2\n" * 1_000_000)
        with pytest.raises(Refused, match=r"unpacks to more than [\d,]+ bytes"):
            load(put(tmp_path, f"bomb.txt.{suffix}", bomb))


def npy(shape: object, dtype: str = "<f8", data: bytes = b"") -> bytes:
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def changed(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place:][1:]


def csr(**changes: object) -> bytes:
    parts = {"format": b"csr", "shape": [2, 2], "indptr": [0, 1, 1], "indices": [1], "data": [3.0], **changes}
    return npz(**{name: np.array(value) for name, value in parts.items() if value is not None})


def coo(**changes: object) -> bytes:
    return csr(**{"format": "coo", "row": [0, 1], "col": [1, 0], "data": [1.0, 2], "indptr": None, "indices": None, **changes})


MTX = "%%MatrixMarket matrix coordinate real general\n"
SQUARE = np.array([[0, 1.0], [1, 0]])
# what is wrong, and what is said about it
BAD: dict[str, list[tuple[str | bytes, str]]] = {
    "gr": [
        ("", "no line 'p sp vertices arcs'; put"),
        ("p sp 2 1\na 1 2\n", "line 2: 'a 1 2' is not of the form 'a from to weight'; correct"),
        ("p sp 2 1\na 1 9 1\n", "line 2: vertex 9 is not an integer from 1 to 2; correct"),
        ("p sp 2 1\na 1 2 1e16\n", r"line 2: weight 1e16 is beyond 1e\+15; scale"),
        ("p sp 2 2\na 1 2 1\n", "declares 2 entries and holds 1; fetch"),
        ("p sp 99999999 0\n", "declares 99,999,999 vertices, outside 1 to 1,048,576; choose"),
        ("p max 2 1\na 1 2 1\n", "line 1: 'p max 2 1' is where 'p sp vertices arcs' should be; put"),
        ("p sp 2 77777777\n", "line 1: 77,777,777 arcs do not fit into"),
        ("p sp x 3\na 1 2 3\n", "'p sp x 3' is where 'p sp vertices arcs' should be; put"),
        ("p sp 0 0\n", "0 vertices, outside 1 to"),
        ("p sp 2 1\na 1 2 3\na 1 2 3\n", "declares 1 entries and holds 2; fetch"),
        ("c\np sp 2 1\n\nab 1 2 3\n", "line 4: 'ab 1 2 3' is not of the form 'a from to weight'; correct"),
        ("p sp 2 2\na 1 2\na 3 4 5 6\n", "line 2: 'a 1 2' is not"),
        *((f"p sp 2 1\na {vertex} 1 3\n", f"line 2: vertex {vertex} is .*; correct") for vertex in ("0", "1.5", "nan")),
        *((f"p sp 2 1\na 1 2 {w}\n", f"line 2: weight {w} is not a finite number; remove") for w in ("nan", "-inf", "1e999")),
        ("p sp 2 1\na 1 2 \x1b[2J\n", r"line 2: '\[2J' is not a number; correct"),
    ],
    "mtx": [
        ("", "line 1 is not a Matrix Market banner; begin"),
        ("%%MatrixMarket matrix array real\n", "line 1 is not a Matrix Market banner; begin with '%%MatrixMarket matrix "),
        (MTX + "2 3 0\n", "is 2 x 3, and a graph's matrix is square; choose"),
        (MTX + "2 2 1\n1 2 x\n", "line 3: 'x' is not a number; correct"),
        (MTX + "2 2 1\n0 2 1\n", "line 3: vertex 0 is not an integer from 1 to 2; correct"),
        (MTX + "2 2 1\n1 2 inf\n", "line 3: weight inf is not a finite number; remove"),
        (MTX.replace("real", "complex") + "2 2 0\n", "convert it to real or double or integer or unsigned-integer or pattern$"),
        (MTX + "0 0 0\n", "declares 0 vertices, outside 1 to"),
        (MTX + "2 2\n", "line 2: coordinate takes 3 sizes, not 2; correct"),
        (MTX + "% no sizes\n", "no line with its sizes; put"),
        (MTX + "2 2 -1\n", "line 2: '2 2 -1' is where the sizes should be; correct"),
        (MTX + "2 2 99999999\n1 1 1\n", "line 2: 99,999,999 entries do not fit into"),
        (MTX + "2 2 1\n1 2\n", "line 3: '1 2' is not of the form 'from to weight'; correct"),
        (MTX.replace("general", "hermitian") + "1 1 0\n", "line 1: 'hermitian' matrices are not supported; convert"),
        (MTX.replace("coordinate real", "array pattern") + "1 1\n1\n", "line 1: a pattern cannot be array and general; convert"),
        (MTX.replace("real general", "pattern skew-symmetric") + "1 1 0\n", "a pattern cannot be coordinate and skew-symmetric;"),
        (MTX.replace("coordinate", "array") + "65536 65536\n1\n", "entries do not fit into"),
        (MTX.replace("coordinate", "array") + "1 1\n1\n2\n3\n", "declares 1 entries and holds 3; fetch"),
    ],
    "txt": [
        ("", "no edges; put 'from to weight' on each line"),
        ("# only words\n", "no edges; put"),
        ("1\n", "line 1 has 1 column without titles; keep only source, target and weight"),
        ("1 2 3 4\n", "line 1 has 4 columns without titles; keep only source, target and weight"),
        ("1 2\n1 2 3\n", "line 2: '1 2 3' is not of the form 'from to'; correct"),
        ("1 2\na b\n", "line 2: 'a' is not a number; correct"),
        ("1 2\n-1 2\n", "line 2: vertex -1 is not an integer from 0 to"),
        ("1 2\n1.5 2\n", "line 2: vertex 1.5 is not an integer from 0 to"),
        ("1 2\n1e300 2\n", "line 2: vertex 1e300 is not an integer from"),
        ("1 2 3\n1 2 inf\n", "line 2: weight inf is not a finite number; remove"),
        (b"1 2\n\xff\x00 2\n", "line 2"),
        (b"\r\xd0}", "line 1"),
    ],
    "csv": [
        ("", "no edges; put source,target,weight"),
        ("source,target,weight\n", "column titles and no edges; add"),
        (",", "has no edges; add"),
        ("a\n", "line 1 has 1 column without titles; keep"),
        (
            "a,b,1,2\n",
            "line 1 has 4 columns without titles; keep only source, target and weight, or add a first line with titles",
        ),
        ("from,b,c,d\n", "line 1 has 4 columns without titles; keep"),
        ("a,b,1\na,b\n", "line 2: 2 fields, but the first line has 3; correct"),
        ("a,b,1\na\n", "line 2: 1 field, but the first line has 3; correct"),
        ("a,b,1\na,,1\n", "line 2: no target; add"),
        ("from,to,w\n,b,1\n", "line 2: no source; add"),
        ("a,b,1\na,b,x\n", "line 2: 'x' is not a number; correct"),
        ("a,b,1\na,b,\n", "line 2: '' is not a number; correct"),
        ("a,b,1\na,b,inf\n", "the weight from a to b is inf; remove"),
        ("a,b,1\na,b,1e999\n", "the weight from a to b is inf; remove"),
        ('a,b,1\na,"b,1\n', "line 2: .*; correct the quotes"),
        (b"a,b,1\n\xff,b,1\n", "line 2 is not UTF-8; convert"),
        ("a,b,1\na,c,1_000\n", "line 2: '1_000' is not a number; correct"),
        ("a,b,\u0661\n", "line 1: '\u0661' is not a number; correct"),
        ("a,b,1e16\n", r"weight 1e\+16 is beyond 1e\+15; scale"),
    ],
    "tsv": [("a,b,1\n", "line 1 has 1 column without titles; keep")],
    "npy": [
        *((data, "is not a NumPy array of numbers .*; save") for data in (b"", b"\x93NUMPY\x01\x00\x05\x00{'a'}")),
        (npy((2, 3), data=bytes(48)), r"an array of shape \(2, 3\) is not a graph"),
        (npy((1 << 40, 1 << 40)), "is not a NumPy array of numbers .*; save"),
        (npy((1 << 25, 1 << 25)), "is not a NumPy array of numbers .*; save|does not fit into memory; choose a smaller graph"),
        (npy((-1, -1)), "is not a NumPy array of numbers .*; save"),
        (npy((3, 3), data=bytes(64)), "is not a NumPy array of numbers .*; save"),
        (npy((1,) * 200, data=bytes(8)), "is not a NumPy array of numbers .*; save"),
        (npy((1, 1), data=bytes(16)), r"has data after its array of shape '\(1, 1\)'; save"),
        (npy((0, 10**23)), "is not a NumPy array of numbers .*; save"),
        (npy((9, 9), "<U0"), "holds <U0, not numbers; save"),
        (npy((2, 2), "|O", bytes(32)), r"is not a NumPy array of numbers \(Object arrays cannot be loaded .*; save"),
        (npy((2, 2), "<c16", bytes(64)), "holds complex128, not numbers; save"),
        (npy((2, 2), "<U1", bytes(16)), "are not supported"),
        (npy((2, 2), "<i8", bytes(32)), "zeros off the diagonal may mean no edge or edges of weight 0; pass"),
        (npy((2, 2), data=np.array([0, -np.inf, 1, 0]).tobytes()), "-inf is not a weight; pass"),
    ],
    "npz": [
        (b"", "cannot be unpacked: file is not a zip file; save"),
        (npz(), "holds no array; save"),
        (npz(a=SQUARE, b=SQUARE), "holds the arrays a, b; save one square matrix"),
        (npz(weights=np.zeros((2, 3)), no_edge=np.array(-1)), "no square matrix 'weights' with one 'no_edge'; save"),
        (npz(weights=SQUARE, no_edge=np.array("x")), "'no_edge' is not a number; save"),
        (npz(a=np.zeros(3)), r"an array of shape \(3,\) is not a graph"),
        (changed(npz(a=SQUARE), 200), "cannot be unpacked: bad crc-32 for file 'a.npy'; save"),
        (npz(a=np.ones((2, 3))).replace(b"(2, 3)", b"(2, 2)"), "cannot be unpacked: bad crc-32 for file 'a.npy'; save"),
        (csr(format=b"dia", offsets=[0]), "sparse matrix of form 'dia'; save csr, csc or coo"),
        (csr(data=["x"]), "is not a sparse matrix: .*; save|weights of type .* are not supported"),
        (csr(data=[1j]), "weights of type complex128 are not supported"),
        (csr(indices=None), "is not a sparse matrix: .*indices is not a file in the archive.*; save"),
        (csr(shape=[2, 3]), r"has the shape \(2, 3\), and a graph's matrix is square; choose"),
        (csr(shape=[2], indptr=[0, 1], _is_array=True), r"has the shape \(2,\), and a graph's matrix is square; choose"),
        (csr(indices=[9]), "indices outside its shape: its arrays are damaged; build"),
        (csr(indptr=[0, 2, 1]), "indices outside its shape: its arrays are damaged; build"),
        (csr(indptr=[0]), "is not a sparse matrix: index pointer size 1 should be 3; save"),
        (coo(row=[0, 2]), "is not a sparse matrix: axis 0 index 2 exceeds matrix dimension 2; save"),
        (coo(data=np.ones((2, 1))), "is not a sparse matrix: .*; save"),
        (coo(format=["coo", "coo"]), "is not a sparse matrix: .*; save"),
        (coo(format="x" * 999), "is not a sparse matrix: .*; save"),
        (coo(shape=[0, 0]), "is not a sparse matrix: axis 0 index 1 exceeds matrix dimension 0; save"),
        (csr(data=[1.0, 2.0]), "is not a sparse matrix: indices and data should have the same size; save"),
        (csr(indices=[0.5]), "indices that are not integers; save it again with scipy"),
        (csr(data=[-np.inf]), "-inf is not a weight; pass"),
    ],
    "graphml": [
        *((text, "is not GraphML that NetworkX can read: .*; save") for text in ("", "<graphml>", "<graphml/>", "<html/>")),
        ("<graphml><graph></graphml>", "is not GraphML that NetworkX can read: mismatched tag: line 1, column 18; save"),
        ("<!DOCTYPE lolz [<!ENTITY a 'b'>]><graphml/>", "document type declaration, which GraphML does not need; remove"),
        ("<!DOCTYPE lolz [<!ENTITY a 'b'>]><graphml/>".encode("utf-16"), "document type declaration"),
        ("<graphml>" + "<a>" * 4_000_000, "4,000,001 tags, more than the limit of 4,000,000; save"),
    ],
    "gr.gz": [
        (b"p sp 2 1\n", "cannot be unpacked: not a gzipped file.*; fetch"),
        (changed(gzip.compress(b"p sp 2 1\na 1 2 3\n"), -8), "cannot be unpacked: crc check failed.*; fetch"),
        (gzip.compress(b"p sp 2 1\na 1 2 3\n")[:-9], "cannot be unpacked: .*; fetch"),
    ],
    "gr.xz": [
        (b"nothing", "cannot be unpacked: .*; fetch"),
        (lzma.compress(b"c\n") * 4200, "is packed in more than 4,096 pieces; unpack it"),
    ],
    "gr.bz2": [(b"nothing", "cannot be unpacked: .*; fetch")],
    "exe": [(b"MZ", "ends in none of .gr, .mtx, .*; rename or convert")],
}
KINDS = [(suffix, number) for suffix, cases in BAD.items() for number in range(len(cases))]


@pytest.mark.parametrize(("suffix", "number"), KINDS)
def test_wrong_files_are_refused_in_one_sentence(tmp_path: Path, suffix: str, number: int) -> None:
    data, words = BAD[suffix][number]
    with pytest.raises(Refused, match=words) as refusal:
        load(put(tmp_path, f"bad.{suffix}", data))
    said = str(refusal.value)
    assert "bad." in said and "\n" not in said and ";" in said, "it names the file, in one sentence, with a way out"
    assert not re.search(r"[\x00-\x1f]", said)


def test_only_regular_files_of_bearable_size_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gr")
    (tmp_path / "folder.csv").mkdir()
    with open(tmp_path / "huge.gr", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    for name, words in (
        ("none.gr", "none.gr cannot be read: No such file"),
        (".", "ends in none of"),
        ("pipe.gr", "is not a regular file"),
        ("folder.csv", "is not a regular file"),
        ("huge.gr", "more than 268,435,456"),
        ("nul\0byte.gr", "is not a path"),
    ):
        with pytest.raises(Refused, match=words):
            load(str(tmp_path / name))


@pytest.mark.parametrize(
    ("mebibytes", "free", "words"),
    [
        (1024, 4000, r"holds 1 arrays of 1.00 GiB, but only 256 MiB can be used; choose"),
        (300, 1 << 40, r"unpacks to 300 MiB, more than 200 times its .* B; save"),
    ],
)
def test_too_promising_archives_are_refused(mebibytes: int, free: int, words: str, tmp_path: Path, pretend: Pretend) -> None:
    pretend.free_memory(free)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"")
    data = bytearray(packed.getvalue())
    size = data.rindex(b"PK\1\2") + 24  # where the list of its files says how large this one is
    data[size : size + 4] = (mebibytes << 20).to_bytes(4, "little")
    with pytest.raises(Refused, match=words):
        load(put(tmp_path, "bomb.npz", bytes(data)))


def test_files_of_holes_are_refused(tmp_path: Path) -> None:
    with open(tmp_path / "holes.npy", "wb") as file:
        file.write(npy((20000, 20000)))
        file.truncate(file.tell() + 8 * 20000**2)
    with pytest.raises(Refused, match=r"3,200,000,128 bytes, of which only [\d,]+ are on the disk; fetch"):
        load(str(tmp_path / "holes.npy"))


class Endless(io.RawIOBase):
    """An endless file that counts the bytes read."""

    def __init__(self, begin: bytes, unit: bytes):
        self.given = 0
        self._begin, self._block = begin, unit * 65536

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._begin[: len(buffer)] or self._block[: len(buffer)]
        self._begin = self._begin[len(data) :]
        buffer[: len(data)] = data
        self.given += len(data)
        return len(data)


def read_from(stream: io.RawIOBase, suffix: str, limits: GraphLimits = ANY) -> Adjacency:
    size = 1 << 30
    source = GraphFile(io.BufferedReader(stream), f"g{suffix}", size, size, suffix, limits)
    return read_suffixes()[suffix].load().read(source)


class Chain(Endless):
    """An endless table of edges between ever new vertices."""

    def __init__(self):
        super().__init__(b"", b"")
        self._line, self._next = "v%d,v%d\n", 0

    def readinto(self, buffer: Any) -> int:
        self._begin += "".join(self._line % (v, v + 1) for v in range(self._next, self._next + 2000, 2)).encode()
        self._next += 2000
        return super().readinto(buffer)


def test_too_many_vertices_are_refused_before_all_of_them_are_read() -> None:
    stream = Chain()
    with pytest.raises(Refused, match=r"has at least [\d,]+ vertices, outside 1 to 3,000; choose"):
        read_from(stream, ".csv", GraphLimits(most=3000, chunk=1 << 14))
    assert stream.given < 1 << 21


@pytest.mark.parametrize("suffix", [".gr", ".mtx", ".txt", ".csv"])
def test_parallel_edges_are_merged_while_they_are_read(tmp_path: Path, suffix: str) -> None:
    edges = [(1 + u % 3, 1 + u % 2, 5 + u * 7 % 11) for u in range(1200)]
    between, tag = ("," if suffix == ".csv" else " "), ("a " if suffix == ".gr" else "")
    head = {".gr": "p sp 3 1200\n", ".mtx": MTX + "3 3 1200\n"}.get(suffix, "")
    path = put(tmp_path, f"g{suffix}", head + "".join(f"{tag}{u}{between}{v}{between}{w}\n" for u, v, w in edges))
    whole = load(path)
    merged = load(path, GraphLimits(chunk=256, max_unmerged=100))
    assert cells(merged) == cells(whole) and merged.notes == whole.notes
    assert merged.facts.edges == whole.facts.edges == (4 if suffix == ".mtx" else 800)
    assert len(merged.all_arcs().weights) < 200 < len(whole.all_arcs().weights) or suffix == ".mtx"


@pytest.mark.parametrize("name", ["g.gr", "g.gr.gz", "g.csv"])
def test_reading_reports_its_progress(tmp_path: Path, name: str) -> None:
    text = b"p sp 2 4000\n" + b"a 1 2 3\n" * 4000 if ".gr" in name else b"a,b,1\n" * 4000
    shares: list[float] = []
    load(put(tmp_path, name, gzip.compress(text) if name.endswith("gz") else text), progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1
