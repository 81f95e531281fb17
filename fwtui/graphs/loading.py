"""Any graph file in, its arcs or its matrix out, before a number type is chosen for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from fwtui.common.text import clean
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.formats import read_suffixes, suffix_of
from fwtui.graphs.library_objects import Unseen, seen
from fwtui.graphs.limits import Demand, refused_for_room
from fwtui.graphs.number_lines import Source
from fwtui.graphs.opening import MAX_BYTES, opened

ANY = Demand()
_SHARE = 2  # a matrix in a file may take half of the free memory: the other half is for its distances


def load(path: str, demand: Demand = ANY) -> Adjacency:
    """The graph in a file, of the format that its suffix names. Only Refused leaves: it names file, line and way out."""
    return seen(load_unseen(path, demand))


def load_unseen(path: str, demand: Demand = ANY) -> Adjacency | Unseen:
    """As load, but arrays are not looked through before somebody asks; then Refused may leave as well."""
    name, suffix = clean(Path(path).name), suffix_of(path)
    form = read_suffixes()[suffix]
    most = _usable() if form.says("ARRAYS") else MAX_BYTES
    try:
        with opened(path, name, most) as (file, size):
            graph = replace(form.load().read(Source(file, name, size, most, suffix, demand)), name=name)
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


def _usable() -> int:
    """Bytes that a matrix in a file may take."""
    import psutil

    return max(MAX_BYTES, psutil.virtual_memory().available // _SHARE)
