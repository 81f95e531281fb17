"""The binary format of a course on parallel programming: int32 numbers, little-endian.

A graph is its number of vertices, its number of edges, and for each edge source, target (from 0) and weight.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency, Arcs, graph_of_arcs
from fwtui.graphs.arc_lines import arc_count, arcs_of
from fwtui.graphs.graph import GraphInput
from fwtui.graphs.text_rows import GraphFile, present

FAR = 2**30 - 1  # the distance of the course for no path
_WORD, _HEAD, _EDGE = np.dtype("<i4"), 8, 12  # bytes of the counts, and of an edge


def read(source: GraphFile) -> Adjacency:
    """Read the edges. Raises Refused if the counts do not fit the size, or an edge has an unknown vertex."""
    name = source.name
    source.weight.check_unused(name)
    data = source.file.read()
    n, edges = np.frombuffer(data[:_HEAD].ljust(_HEAD, b"\0"), _WORD).tolist()
    if len(data) < _HEAD or edges < 0 or len(data) != _HEAD + edges * _EDGE:
        counts = f"{n:,} vertices and {edges:,} edges" if len(data) >= _HEAD else "no counts"
        raise Refused(f"{name} has {len(data):,} bytes, which do not fit its {counts} as int32; if it is text, name it .txt")
    source.limits.check_size(n, name, "declares")
    triples = np.frombuffer(data, _WORD, offset=_HEAD).reshape(-1, 3)
    ends = triples[:, :2].astype(np.int64)
    wrong = np.flatnonzero(((ends < 0) | (ends >= n)).any(axis=1))
    if len(wrong):
        source_end, target = ends[wrong[0]].tolist()
        raise Refused(f"{name}, edge {wrong[0]} leads from {source_end} to {target}, outside 0 to {n - 1}; correct it")
    arcs = Arcs(ends[:, 0].copy(), ends[:, 1].copy(), triples[:, 2].astype(np.float64))
    return graph_of_arcs(n, range(n), present(source, arcs), notes=("weights from the third number of each edge",))


def write(graph: GraphInput, file: IO[bytes], suffix: str) -> None:
    """Write vertices as numbers from 0. Raises Refused for a weight that does not fit int32."""
    if graph.largest_weight >= 2**31:
        raise Refused(f"weights up to {graph.high:g} do not fit int32; choose .npz")
    file.write(np.array([graph.n, arc_count(graph)], _WORD).tobytes())
    for arcs in arcs_of(graph):
        file.write(np.stack(arcs, axis=1).astype(_WORD).tobytes())


def write_distances(distances: np.ndarray, file: IO[bytes], name: str) -> None:
    """Write (n, n) distances as int32, row by row, with 2^30 - 1 for no path. Raises Refused for those that do not fit."""
    reached = np.isfinite(distances)
    finite = distances[reached]
    if (finite != np.rint(finite)).any() or (np.abs(finite) >= FAR).any():
        raise Refused(f"{name} stores only integer distances below {FAR:,}, but others occur; choose .npy")
    cells = np.full(distances.shape, FAR, _WORD)
    cells[reached] = finite
    file.write(cells.tobytes())
