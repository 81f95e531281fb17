"""Any graph file in, its arcs or its matrix out, before a number type is chosen for it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs import arrays, csvtable, dimacs, edgelist, matrixmarket
from fwtui.graphs.adjacency import Adjacency, both_ways
from fwtui.graphs.graphml import read_graphml
from fwtui.graphs.library_objects import Unseen, seen
from fwtui.graphs.limits import Demand, refused_for_room
from fwtui.graphs.number_lines import Arcs, Layout, arcs_in
from fwtui.graphs.opening import MAX_BYTES, opened
from fwtui.graphs.suffixes import suffix_of
from fwtui.graphs.vertices import Vertices

Reader = Callable[[io.BufferedReader, str, int, Demand], Adjacency | Unseen]
ANY = Demand()
_SHARE = 2  # a matrix in a file may take half of the free memory: the other half is for its distances


def load(path: str, demand: Demand = ANY) -> Adjacency:
    """The graph in a file, of the format that its suffix names. Only Refused leaves: it names file, line and way out."""
    return seen(load_unseen(path, demand))


def load_unseen(path: str, demand: Demand = ANY) -> Adjacency | Unseen:
    """As load, but arrays are not looked through before somebody asks; then Refused may leave as well."""
    name = clean(Path(path).name)
    form = _FORMS[suffix_of(path)]
    most = _usable() if form in (_npy, _npz) else MAX_BYTES
    try:
        with opened(path, name, most) as (file, size):
            graph = replace(form(file, name, size, demand), name=name)
        demand.check_size(graph.n, name, "has")
        if isinstance(graph, Unseen):
            return replace(graph, look=partial(_checked, graph.look, name, demand))
        demand.check_weights(graph, name)
    except MemoryError:
        raise refused_for_room(name, demand.dtype) from None
    return graph


def _checked(look: Callable[[], Adjacency], name: str, demand: Demand) -> Adjacency:
    try:
        graph = replace(look(), name=name)
        demand.check_weights(graph, name)
    except MemoryError:
        raise refused_for_room(name, demand.dtype) from None
    return graph


def _numbered(layout: Callable[[io.BufferedReader, str, int], Layout]) -> Reader:
    """A reader of lines of numbers whose header says how many vertices there are."""

    def read(file: io.BufferedReader, name: str, size: int, demand: Demand) -> Adjacency:
        form = layout(file, name, size)
        demand.check_size(form.n, name, "declares")
        arcs = _joined(list(arcs_in(file, form, name, demand.unfit)))
        if demand.dtype == "int16" and (arcs.weights < 0).any():  # no line has such a weight
            way = "choose int32 or float32"
            raise Refused(f"{name} is skew-symmetric, so half its weights are negative, which int16 does not take; {way}")
        return Adjacency(form.n, Vertices(range(1, form.n + 1)), arcs=arcs)

    return read


def _edge_list(file: io.BufferedReader, name: str, size: int, demand: Demand) -> Adjacency:
    form, undirected = edgelist.layout(file, name)
    arcs = _joined(list(arcs_in(file, form, name, demand.unfit)))
    numbers, ends = np.unique(np.concatenate([arcs.sources, arcs.targets]), return_inverse=True)
    sources, targets = ends[: len(arcs.sources)], ends[len(arcs.sources) :]
    first, last = int(numbers[0]), int(numbers[-1])
    labels: Sequence[int] = range(first, last + 1) if last - first == len(numbers) - 1 else numbers.tolist()
    graph = Adjacency(len(numbers), Vertices(labels), arcs=Arcs(sources, targets, arcs.weights))
    return both_ways(graph) if undirected else graph


def _table(delimiter: str) -> Reader:
    def read(file: io.BufferedReader, name: str, size: int, demand: Demand) -> Adjacency:
        arcs, names = csvtable.read_table(file, name, delimiter)
        wrong = np.flatnonzero(~np.isfinite(arcs.weights))
        if len(wrong):
            arc = int(wrong[0])
            ends = " to ".join(clean(names[v])[:40] for v in (arcs.sources[arc], arcs.targets[arc]))
            raise Refused(f"{name}: the weight from {ends} is {arcs.weights[arc]}; remove the line, or give a finite number")
        return Adjacency(len(names), Vertices(names), arcs=arcs)

    return read


def _npy(file: io.BufferedReader, name: str, size: int, demand: Demand) -> Adjacency | Unseen:
    return arrays.read_npy(file, name, size, lambda n: demand.check_size(n, name, "declares"))


def _npz(file: io.BufferedReader, name: str, size: int, demand: Demand) -> Adjacency | Unseen:
    return arrays.read_npz(file, name, _usable())


def _usable() -> int:
    """Bytes that a matrix in a file may take."""
    import psutil

    return max(MAX_BYTES, psutil.virtual_memory().available // _SHARE)


def _graphml(file: io.BufferedReader, name: str, size: int, demand: Demand) -> Adjacency:
    return read_graphml(file, name)


def _joined(parts: list[Arcs]) -> Arcs:
    if not parts:
        return Arcs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return parts[0] if len(parts) == 1 else Arcs(*(np.concatenate(part) for part in zip(*parts, strict=True)))


_FORMS: dict[str, Reader] = {
    ".gr": _numbered(dimacs.layout),
    ".mtx": _numbered(matrixmarket.layout),
    **dict.fromkeys((".txt", ".edges", ".el", ".snap"), _edge_list),
    **{suffix: _table(delimiter) for suffix, delimiter in csvtable.DELIMITERS.items()},
    ".npy": _npy,
    ".npz": _npz,
    ".graphml": _graphml,
}
