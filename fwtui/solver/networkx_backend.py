"""The NetworkX backend `fwtui`: algorithms over all pairs, with NetworkX's names, arguments, results and errors.

Unsupported input raises NotImplementedError, and NetworkX computes the result: weights that are functions, infinite or not
numbers, integers that float64 cannot hold, and negative weights if NetworkX runs Dijkstra's algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from math import inf
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from fwtui.common.errors import Refused
from fwtui.graphs.adjacency import Adjacency, Arcs, merge_parallel
from fwtui.graphs.library_objects import edges_of_networkx
from fwtui.solver.costs import check_room
from fwtui.solver.solve import solve_in_float64

MIN_NODES = 100  # nodes from which it pays to convert a graph
_EXACT = 2**53  # float64 holds every integer up to this
# arguments with which NetworkX does less than all pairs, or nothing that takes long
_LEFT_TO_NETWORKX = ("cutoff", "e", "source", "sp", "target", "usebounds", "v")
_PLAIN = {bool, int, float, np.int64, np.float64}
_NEGATIVE_CYCLE = "Negative cycle detected."


class WeightReading(NamedTuple):
    """A NetworkX graph converted with one attribute as weight."""

    nodes: list[Hashable]
    graph: Adjacency
    whole: bool  # all weights have integer types
    complete: bool  # every edge has the weight


class NetworkxGraph:
    """A NetworkX graph, converted once for each attribute that an algorithm uses as weight."""

    __networkx_backend__ = "fwtui"

    def __init__(self, origin: Any):
        self.origin = origin
        self._readings: dict[Hashable | None, WeightReading] = {}

    def reading(self, weight: Hashable | None) -> WeightReading:
        """The nodes and arcs; without a weight each edge counts 1. Raises NotImplementedError for weights other than numbers."""
        if weight not in self._readings:
            self._readings[weight] = _read(self.origin, weight)
        return self._readings[weight]

    def is_directed(self) -> bool:
        return self.origin.is_directed()

    def is_multigraph(self) -> bool:
        return self.origin.is_multigraph()

    def __len__(self) -> int:
        return len(self.origin)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.origin)

    def __contains__(self, node: object) -> bool:
        return node in self.origin


def _read(origin: Any, weight: Hashable | None) -> WeightReading:
    missing = 1 if weight is None else object()
    nodes, ends, weights_read = edges_of_networkx(origin, weight, missing)
    values = [1 if w is missing else w for w in weights_read]
    types = set(map(type, values))
    whole = types.isdisjoint((float, np.float64))
    if not types <= _PLAIN:
        raise NotImplementedError(f"{weight!r} has values that are not of Python's types of numbers")
    if whole and max(map(abs, values), default=0) * max(len(nodes), 1) >= _EXACT:
        raise NotImplementedError(f"{weight!r} has values so large that float64 cannot hold their sums")
    weights = np.array(values, dtype=np.float64)
    if not np.isfinite(weights).all():
        raise NotImplementedError(f"{weight!r} has values that are not finite")
    graph = Adjacency(len(nodes), nodes, arcs=Arcs(*ends, weights))
    if nx.is_frozen(origin) and not origin.is_directed():
        arcs = graph.all_arcs()
        if not all(map(np.array_equal, merge_parallel(arcs), merge_parallel(arcs.reversed()))):
            raise NotImplementedError("the graph is a view of a directed one, whose edges have two weights")
    complete = weight is None or missing not in weights_read
    return WeightReading(nodes, graph, whole, complete)


def convert_from_nx(graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any) -> NetworkxGraph:
    """Convert the graph with each of these attributes as weight; another attribute is converted when an algorithm uses it."""
    converted = NetworkxGraph(graph)
    for weight in edge_attrs or (None,):
        converted.reading(weight)
    return converted


def convert_to_nx(result: Any, **_: Any) -> Any:
    return result.origin if isinstance(result, NetworkxGraph) else result


def can_run(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool | str:
    try:
        arguments = signature(globals()[name]).bind(*args, **kwargs).arguments
    except TypeError as error:
        return str(error)
    for word in _LEFT_TO_NETWORKX:
        if arguments.get(word) is not None and arguments[word] is not False:
            return f"with {word}, NetworkX has less to do"
    if callable(arguments.get("weight")):
        return "weights are given by a function"
    try:
        check_room(len(arguments["G"]), "float32", "path" in name or name in ("all_pairs_dijkstra", "johnson"))
    except Refused as refusal:
        return str(refusal)
    return True


def should_run(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool | str:
    if name == "all_pairs_shortest_path" or (name == "shortest_path" and kwargs.get("weight") is None):
        return "NetworkX writes paths down while it searches, which is faster without weights"
    graph = args[0] if args else kwargs["G"]
    return True if len(graph) >= MIN_NODES else f"graphs of fewer than {MIN_NODES} nodes are done sooner than converted"


@dataclass(frozen=True)
class DistanceView:
    """Distances between all pairs, as numbers of the types that NetworkX returns."""

    nodes: list[Hashable]
    distances: np.ndarray
    before: np.ndarray | None
    whole: bool

    @cached_property
    def connected(self) -> bool:
        return bool(np.isfinite(self.distances).all())

    def numbers(self, row: np.ndarray) -> list[Any]:
        """Finite distances as Python's numbers."""
        return (row.astype(np.int64) if self.whole else row.astype(np.float64)).tolist()

    def order(self, row: np.ndarray, source: int) -> np.ndarray:
        """The nodes with a path, nearest first like in NetworkX, and the source before all others."""
        reached = np.flatnonzero(np.isfinite(row))
        near = row[reached]
        near[reached == source] = -np.inf
        return reached[np.argsort(near, kind="stable")]

    def lengths(self, source: int) -> dict[Hashable, Any]:
        row = self.distances[source]
        order = self.order(row, source)
        return dict(zip([self.nodes[v] for v in order.tolist()], [0, *self.numbers(row[order[1:]])], strict=True))

    def paths(self, source: int) -> dict[Hashable, list[Hashable]]:
        assert self.before is not None
        nodes, before = self.nodes, self.before[source].tolist()
        order = self.order(self.distances[source], source).tolist()
        paths = {source: [nodes[source]]}
        for target in order:
            behind = []
            while target not in paths:  # a path with weights of 0 or less may visit a node that is later in the order
                behind.append(target)
                target = before[target]
            for v in reversed(behind):
                paths[v] = [*paths[before[v]], nodes[v]]
        return {nodes[v]: paths[v] for v in order}


def _checked(G: NetworkxGraph, weight: Hashable | None, method: str) -> WeightReading:
    """Read the graph. Raises NotImplementedError for negative weights, if NetworkX would run Dijkstra's algorithm."""
    reading = G.reading(weight)
    if method == "D" and not reading.graph.facts.nonnegative:
        raise NotImplementedError("negative weights are left to NetworkX's Dijkstra")
    return reading


def _found(G: NetworkxGraph, weight: Hashable | None, method: str = "D", predecessors: bool = False) -> DistanceView:
    """Solve by method D (Dijkstra), BF (Bellman-Ford) or FW. Raises NotImplementedError if memory is short."""
    nodes, graph, whole, complete = _checked(G, weight, method)
    # SciPy's method of the same name adds in NetworkX's order, so that rounded sums agree to the last bit
    by = "FW" if method == "FW" or not graph.facts.nonnegative else "D"
    try:
        distances, before = solve_in_float64(graph, predecessors, by) if nodes else (np.zeros((0, 0)), np.zeros((0, 0)))
    except Refused as refusal:
        raise NotImplementedError(str(refusal)) from None
    # a missing weight counts 1.0 in NetworkX's Floyd-Warshall, and 1 elsewhere
    return DistanceView(nodes, distances, before, whole and (complete or method != "FW"))


def _negative_cycle() -> type[Exception]:
    from scipy.sparse.csgraph import NegativeCycleError

    return NegativeCycleError


def _each(
    G: NetworkxGraph, weight: Hashable | None, method: str, what: Callable[[DistanceView, int], Any], original: Any
) -> Iterator[tuple[Hashable, Any]]:
    """Return a generator over the nodes, which computes everything at its first item; `original` is NetworkX's function."""
    _checked(G, weight, method)

    def each() -> Iterator[tuple[Hashable, Any]]:
        try:
            distances = _found(G, weight, method, predecessors=what is not DistanceView.lengths)
        except (NotImplementedError, _negative_cycle()):
            # NetworkX answers for the nodes before which no negative cycle is reached, and raises its error there
            yield from original(G.origin, **({} if weight is None else {"weight": weight}), backend="networkx")
            return
        for place, node in enumerate(distances.nodes):
            yield node, what(distances, place)

    return each()


def all_pairs_shortest_path_length(G, cutoff=None):
    return _each(G, None, "D", DistanceView.lengths, nx.all_pairs_shortest_path_length)


def all_pairs_shortest_path(G, cutoff=None):
    return _each(G, None, "D", DistanceView.paths, nx.all_pairs_shortest_path)


def all_pairs_dijkstra(G, cutoff=None, weight="weight"):
    def both(distances: DistanceView, source: int) -> tuple[dict, dict]:
        return distances.lengths(source), distances.paths(source)

    return _each(G, weight, "D", both, nx.all_pairs_dijkstra)


def all_pairs_dijkstra_path_length(G, cutoff=None, weight="weight"):
    return _each(G, weight, "D", DistanceView.lengths, nx.all_pairs_dijkstra_path_length)


def all_pairs_dijkstra_path(G, cutoff=None, weight="weight"):
    return _each(G, weight, "D", DistanceView.paths, nx.all_pairs_dijkstra_path)


def all_pairs_bellman_ford_path_length(G, weight="weight"):
    return _each(G, weight, "BF", DistanceView.lengths, nx.all_pairs_bellman_ford_path_length)


def all_pairs_bellman_ford_path(G, weight="weight"):
    return _each(G, weight, "BF", DistanceView.paths, nx.all_pairs_bellman_ford_path)


def shortest_path(G, source=None, target=None, weight=None, method="dijkstra"):
    by = _dijkstra_or_bellman_ford(method, weight)
    return _each(G, weight, by, DistanceView.paths, partial(nx.shortest_path, method=method))


def shortest_path_length(G, source=None, target=None, weight=None, method="dijkstra"):
    by = _dijkstra_or_bellman_ford(method, weight)
    return _each(G, weight, by, DistanceView.lengths, partial(nx.shortest_path_length, method=method))


def _dijkstra_or_bellman_ford(method: str, weight: Hashable | None) -> str:
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    return "BF" if weight is not None and method == "bellman-ford" else "D"


def johnson(G, weight="weight"):
    try:
        distances = _found(G, weight, "BF", True)
    except _negative_cycle():
        raise nx.NetworkXUnbounded(_NEGATIVE_CYCLE) from None
    return {node: distances.paths(place) for place, node in enumerate(distances.nodes)}


def _by_floyd_warshall(G: NetworkxGraph, weight: Hashable | None, predecessors: bool = False) -> DistanceView:
    try:
        return _found(G, weight, "FW", predecessors)
    except _negative_cycle():
        raise NotImplementedError("with a negative cycle, NetworkX returns what its own loops arrive at") from None


def floyd_warshall(G, weight="weight"):
    return _dictionaries(_by_floyd_warshall(G, weight))


def _dictionaries(found: DistanceView) -> dict[Hashable, dict[Hashable, Any]]:
    distances = {}
    for source, row in enumerate(found.distances):
        reached = np.isfinite(row)
        numbers = found.numbers(np.where(reached, row, 0))
        for v in np.flatnonzero(~reached).tolist():
            numbers[v] = inf
        numbers[source] = 0
        distances[found.nodes[source]] = dict(zip(found.nodes, numbers, strict=True))
    return distances


def floyd_warshall_predecessor_and_distance(G, weight="weight"):
    distances = _by_floyd_warshall(G, weight, True)
    assert distances.before is not None
    loops = {u for u, v in nx.selfloop_edges(G.origin)}
    before = {}
    for source, row in enumerate(distances.before):
        node = distances.nodes[source]
        reached = np.flatnonzero(row >= 0)
        last = [distances.nodes[v] for v in row[reached].tolist()]
        into = dict(zip([distances.nodes[v] for v in reached.tolist()], last, strict=True))
        if node in loops:
            into[node] = node
        if into:
            before[node] = into
    return before, _dictionaries(distances)


def floyd_warshall_numpy(G, nodelist=None, weight="weight"):
    if nodelist is not None:
        if not (len(nodelist) == len(G) == len(set(nodelist))):
            raise nx.NetworkXError(
                "nodelist must contain every node in G with no repeats.If you wanted a subgraph of G use G.subgraph(nodelist)"
            )
        if strangers := set(nodelist) - set(G):
            raise nx.NetworkXError(f"Nodes {strangers} in nodelist is not in G")
    found = _by_floyd_warshall(G, weight)
    distances = found.distances.astype(np.float64, copy=False)
    if nodelist is None:
        return distances
    at = {node: place for place, node in enumerate(found.nodes)}
    order = [at[node] for node in nodelist]
    return distances[np.ix_(order, order)]


def eccentricity(G, v=None, sp=None, weight=None):
    distances = _found(G, weight)
    if not distances.connected:
        kind = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {kind}")
    # the distance of a single node is the integer 0
    farthest = distances.numbers(distances.distances.max(axis=1)) if len(G) > 1 else [0] * len(G)
    return dict(zip(distances.nodes, farthest, strict=True))


def diameter(G, e=None, usebounds=False, weight=None):
    return max(eccentricity(G, weight=weight).values())


def radius(G, e=None, usebounds=False, weight=None):
    return min(eccentricity(G, weight=weight).values())
