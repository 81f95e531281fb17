"""Any graph file in, its arcs or its matrix out, before a number type is chosen for it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fwtui.errors import Refused
from fwtui.graphs import arrays, csvtable, dimacs, edgelist, matrixmarket
from fwtui.graphs.adjacency import Adjacency, both_ways
from fwtui.graphs.files import MAX_BYTES, MAX_WEIGHT, arcs_in
from fwtui.graphs.graphml import read_graphml
from fwtui.graphs.lines import Arcs, Layout
from fwtui.graphs.opening import PACKED, opened, suffix_of
from fwtui.graphs.vertices import Vertices
from fwtui.text import clean

MOST_VERTICES = 1 << 20
_SHARE = 2  # a matrix in a file may take half of the free memory: the other half is for its distances


def load(path: str) -> Adjacency:
    """The graph in a file, of the format that its suffix names. Only Refused leaves: it names file, line and way out."""
    name = clean(Path(path).name)
    form = _FORMS.get(suffix_of(path))
    if form is None:
        raise Refused(f"{name!r} ends in none of {', '.join(_FORMS)} (or those with {', '.join(PACKED)}); rename or convert it")
    binary = form in (_npy, _npz)
    most = _usable() if binary else MAX_BYTES
    try:
        with opened(path, name, most) as (file, size):
            graph = replace(form(file, name, size), name=name)
    except MemoryError:
        raise Refused(f"{name} does not fit into memory; choose a smaller graph") from None
    if not 1 <= graph.n <= MOST_VERTICES:
        raise Refused(f"{name} has {graph.n:,} vertices, outside 1 to {MOST_VERTICES:,}; choose another graph")
    low, high = graph.low or 0, graph.high or 0
    if max(-low, high) > MAX_WEIGHT:
        raise Refused(f"{name} has a weight beyond {MAX_WEIGHT:g}; scale the weights down")
    return graph


def _numbered(layout: Callable[[io.BufferedReader, str, int], Layout]) -> Callable[[io.BufferedReader, str, int], Adjacency]:
    """A reader of lines of numbers whose header says how many vertices there are."""

    def read(file: io.BufferedReader, name: str, size: int) -> Adjacency:
        form = layout(file, name, size)
        if not 1 <= form.n <= MOST_VERTICES:
            raise Refused(f"{name} declares {form.n:,} vertices, outside 1 to {MOST_VERTICES:,}; choose another graph")
        return Adjacency(form.n, Vertices(range(1, form.n + 1)), arcs=_joined(list(arcs_in(file, form, name, _unfit))))

    return read


def _edge_list(file: io.BufferedReader, name: str, size: int) -> Adjacency:
    form, undirected = edgelist.layout(file, name)
    arcs = _joined(list(arcs_in(file, form, name, _unfit)))
    numbers, ends = np.unique(np.concatenate([arcs.sources, arcs.targets]), return_inverse=True)
    sources, targets = ends[: len(arcs.sources)], ends[len(arcs.sources) :]
    first, last = int(numbers[0]), int(numbers[-1])
    labels: Sequence[int] = range(first, last + 1) if last - first == len(numbers) - 1 else numbers.tolist()
    graph = Adjacency(len(numbers), Vertices(labels), arcs=Arcs(sources, targets, arcs.weights))
    return both_ways(graph) if undirected else graph


def _table(delimiter: str) -> Callable[[io.BufferedReader, str, int], Adjacency]:
    def read(file: io.BufferedReader, name: str, size: int) -> Adjacency:
        arcs, names = csvtable.read_table(file, name, delimiter)
        wrong = np.flatnonzero(~np.isfinite(arcs.weights))
        if len(wrong):
            arc = int(wrong[0])
            ends = " to ".join(clean(names[v])[:40] for v in (arcs.sources[arc], arcs.targets[arc]))
            raise Refused(f"{name}: the weight from {ends} is {arcs.weights[arc]}; remove the line, or give a finite number")
        return Adjacency(len(names), Vertices(names), arcs=arcs)

    return read


def _npy(file: io.BufferedReader, name: str, size: int) -> Adjacency:
    return arrays.read_npy(file, name, size)


def _npz(file: io.BufferedReader, name: str, size: int) -> Adjacency:
    return arrays.read_npz(file, name, _usable())


def _usable() -> int:
    """Bytes that a matrix in a file may take."""
    import psutil

    return max(MAX_BYTES, psutil.virtual_memory().available // _SHARE)


def _graphml(file: io.BufferedReader, name: str, size: int) -> Adjacency:
    return read_graphml(file, name)


def _unfit(weight: float) -> str | None:
    """Why a weight cannot be used, or None."""
    if not np.isfinite(weight):
        return "is not a finite number; remove the line"
    return f"is beyond {MAX_WEIGHT:g}; scale the weights down" if abs(weight) > MAX_WEIGHT else None


def _joined(parts: list[Arcs]) -> Arcs:
    if not parts:
        return Arcs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return parts[0] if len(parts) == 1 else Arcs(*(np.concatenate(part) for part in zip(*parts, strict=True)))


_FORMS: dict[str, Callable[[io.BufferedReader, str, int], Adjacency]] = {
    ".gr": _numbered(dimacs.layout),
    ".mtx": _numbered(matrixmarket.layout),
    **dict.fromkeys((".txt", ".edges", ".el", ".snap"), _edge_list),
    **{suffix: _table(delimiter) for suffix, delimiter in csvtable.DELIMITERS.items()},
    ".npy": _npy,
    ".npz": _npz,
    ".graphml": _graphml,
}
