"""Graph files of every format with replaced pieces: each is read as a graph or refused in one sentence."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from attacking import attack
from hypothesis import strategies as st
from test_graph_loading import MTX, csr, npy, put  # pyright: ignore[reportMissingImports]

from fwtui.common.errors import Refused
from fwtui.graphs.graph_loader import load


def good(suffix: str) -> bytes:
    """Return the bytes of a valid file."""
    plain = {
        "gr": b"c x\np sp 3 2\na 1 2 7\na 3 1 0\n",
        "mtx": MTX.encode() + b"3 3 2\n1 2 7\n3 1 0\n",
        "txt": b"# Undirected graph\n10 20 7\n20 30 1.5\n",
        "csv": b'source,target,weight\na,"b",2.5\nb,c,-1\n',
        "npy": npy((2, 2), data=np.array([0, 3, np.inf, 0]).tobytes()),
        "npz": csr(),
        "graphml": b"<graphml xmlns='http://graphml.graphdrawing.org/xmlns'><graph edgedefault='directed'><node id='a'/>"
        b"<node id='b'/><edge source='a' target='b'/></graph></graphml>",
    }
    packed = {"txt.gz": gzip.compress, "csv.xz": lzma.compress, "gr.bz2": bz2.compress}
    return plain[suffix] if suffix in plain else packed[suffix](plain[suffix.split(".")[0]])


FUZZED = ("gr", "mtx", "txt", "csv", "npy", "npz", "graphml", "txt.gz", "csv.xz", "gr.bz2")
Spoiled = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 30),
        st.binary(max_size=12) | st.sampled_from([b"\n", b" 1e999 ", b"9" * 30, b'"', b","]),
    ),
    max_size=4,
)


def spoil(data: bytes, places: list[tuple[int, int, bytes]]) -> bytes:
    for at, length, instead in places:
        at %= len(data) + 1
        data = data[:at] + instead + data[at + length :]
    return data


def only_refusals_leave(folder: Path, suffix: str, data: bytes) -> None:
    path = put(folder, f"g.{suffix}", data)
    try:
        graph = load(path)
    except Refused as refusal:
        assert "g." in str(refusal) and "\n" not in str(refusal)
        return
    assert graph.n >= 1 and all(np.isfinite(arcs.weights).all() for arcs in graph.pieces())
    for arcs in graph.pieces():
        ends = np.concatenate([arcs.sources, arcs.targets])
        assert not len(ends) or (ends.min() >= 0 and ends.max() < graph.n)


CASES = {"suffix": st.sampled_from(FUZZED), "places": Spoiled, "anything": st.none() | st.binary(max_size=200)}


def spoiled(tmp_path: Path, suffix: str, places: list[tuple[int, int, bytes]], anything: bytes | None) -> None:
    only_refusals_leave(tmp_path, suffix, spoil(good(suffix), places) if anything is None else anything)


test_nothing_but_refusals_leaves = attack(250, **CASES)(spoiled)
test_nothing_but_refusals_leaves_for_a_hundred_thousand = pytest.mark.slow(attack(100_000, **CASES)(spoiled))
