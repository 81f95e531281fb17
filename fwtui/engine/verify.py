"""Verification of distances; every result is verified before it is reported."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fwtui.common import units
from fwtui.graphs import bounds
from fwtui.graphs.canonical import NO_DISTANCE, NO_PATH, canonical_type, fletcher64, no_distance, no_path, reachable_pairs
from fwtui.graphs.cycles import cycle_or_potentials
from fwtui.graphs.graph import GraphInput, blocks
from fwtui_kernels.plan import FLOATS

SOURCES = 16  # rows of a sampled check
_SEED = 16807  # selects the random rows: the same rows for every kernel
_SPARSE = 20  # SciPy's Dijkstra is faster than its Floyd-Warshall with less than one edge in this many cells
_REFERENCES = 2
_GRAPHS = 64


class VerifierFinding(NamedTuple):
    """The verdict of a verification, with the values that events.Verdict stores."""

    verdict: str  # "verified" | "wrong" | "out of range" | "unverified" | "negative cycle"
    how: str
    cells: int = 0  # compared
    cycle: tuple[int, ...] = ()
    checksum: str = ""
    reachable: int | None = None  # ordered pairs i != j with a path
    seconds: float = 0


@dataclass
class _GraphFacts:
    """The reference results of one graph."""

    cycle: tuple[int, ...] | None = None  # None: not searched
    potentials: np.ndarray | None = None
    references: dict[bool, np.ndarray] = field(default_factory=dict)  # key: computed by Dijkstra
    checksums: dict[tuple[str, str], str] = field(default_factory=dict)  # key: kernel id and form


@dataclass
class _Verification:
    """A kernel's distances of one graph, and the settings of their verification."""

    graph: GraphInput
    facts: _GraphFacts
    distances: np.ndarray
    how: str
    full_limit: int
    whose: tuple[str, str]  # kernel id and form
    checksum: str = ""


class Verifier:
    """Checks distances; caches references and checksums of the last graphs. Equal keys must mean equal graphs."""

    def __init__(self) -> None:
        self._facts: OrderedDict[Hashable, _GraphFacts] = OrderedDict()

    def check(
        self, graph: GraphInput, key: Hashable, distances: np.ndarray, how: str, full_limit: int, kernel_id: str, form: str = ""
    ) -> VerifierFinding:
        """Verify canonical distances, of the shape of the graph's matrix.

        `how` is "full" (SciPy, every cell), "sample" (Dijkstra from 16 vertices, and the checksums of other kernels and of
        other forms of this one), "auto" (full up to full_limit vertices), or "off". A negative
        diagonal is always checked. `form` describes everything that changes the kernel's compiled code.
        """
        start = time.perf_counter()
        facts = self._recall(graph, key)
        checksum = fletcher64(distances)
        case = _Verification(graph, facts, distances, how, full_limit, (kernel_id, form), checksum)
        finding = self._one(case)
        if finding.verdict in ("verified", "unverified") and how != "off":
            facts.checksums[case.whose] = checksum
        reachable = None if finding.verdict == "negative cycle" else reachable_pairs(distances)
        return finding._replace(checksum=checksum, reachable=reachable, seconds=time.perf_counter() - start)

    def _one(self, case: _Verification) -> VerifierFinding:
        graph, facts, distances, how = case.graph, case.facts, case.distances, case.how
        if finding := self._negative_diagonal(graph, facts, distances):
            return finding
        if how == "off":
            return VerifierFinding("unverified", "verification is off")
        if cycle := self._cycle(graph, facts):
            reason = f"the graph has a negative cycle through {cycle[0]}, and no distance on the diagonal is negative"
            return VerifierFinding("wrong", reason)
        return self._full(case) if how == "full" or (how == "auto" and graph.n <= case.full_limit) else self._sample(case)

    def _recall(self, graph: GraphInput, key: Hashable) -> _GraphFacts:
        # a file may change under its name; the graph's facts then usually change too
        full_key = (key, graph.n, graph.edges, graph.low, graph.high, canonical_type(graph))
        facts = self._facts.setdefault(full_key, _GraphFacts())
        self._facts.move_to_end(full_key)
        while len(self._facts) > _GRAPHS:
            self._facts.popitem(last=False)
        for other in list(self._facts.values())[:-_REFERENCES]:
            other.references, other.potentials = {}, None
        return facts

    def _cycle(self, graph: GraphInput, facts: _GraphFacts) -> tuple[int, ...]:
        """Return a negative cycle of the input, or (); for (), set potentials for Dijkstra if weights are negative."""
        if not graph.may_have_negative_cycles:
            facts.potentials = graph.potentials
            return ()
        if facts.cycle is None or (not facts.cycle and facts.potentials is None):
            facts.cycle, facts.potentials = cycle_or_potentials(graph.matrix)
        return facts.cycle

    def _negative_diagonal(self, graph: GraphInput, facts: _GraphFacts, distances: np.ndarray) -> VerifierFinding | None:
        negative = np.flatnonzero(distances.diagonal() < 0)
        if not negative.size:
            return None
        vertex = int(negative[0])
        cycle = self._cycle(graph, facts)
        if cycle:
            how = f"vertex {vertex} has a negative distance to itself; Bellman-Ford finds a cycle of {len(cycle)} in the input"
            return VerifierFinding("negative cycle", how, cycle=cycle)
        if not graph.exact_sums:
            return None  # rounding around a cycle of weight 0: the comparison has a tolerance
        return VerifierFinding("wrong", f"{_wrong_diagonal(distances, vertex)}; the graph has no negative cycle")

    def _full(self, case: _Verification) -> VerifierFinding:
        graph, facts, distances = case.graph, case.facts, case.distances
        by_dijkstra = case.whose[0] == "scipy"  # SciPy is not checked against itself
        if by_dijkstra not in facts.references:
            facts.references[by_dijkstra] = scipy_distances(graph, facts.potentials, by_dijkstra)
        expected = facts.references[by_dijkstra]
        cells = distances.size
        if finding := _compared(graph, distances, expected, np.arange(graph.n)):
            return finding
        whose = "those of SciPy's Dijkstra" if by_dijkstra else "SciPy's"
        one = f"its only cell agrees with {whose.replace('those', 'that')}"
        how = f"all {cells:,} cells {_agreement(graph)} {whose}" if cells > 1 else one
        return VerifierFinding("verified", how, cells)

    def _sample(self, case: _Verification) -> VerifierFinding:
        from fwtui.engine.reference_distances import distances_from

        graph, facts, distances = case.graph, case.facts, case.distances
        sources = np.sort(np.random.default_rng(_SEED).permutation(graph.n)[:SOURCES])
        expected = to_canonical(distances_from(graph.matrix, sources, facts.potentials, graph.no_edge), graph)
        rows = distances[sources]
        if obvious := _obviously_wrong(graph, distances):
            return VerifierFinding("wrong", obvious, distances.size)
        if finding := _compared(graph, rows, expected, sources):
            return finding
        if trouble := _range_trouble(graph, distances):
            return VerifierFinding(*trouble, rows.size)
        how = f"{len(sources)} rows {_agreement(graph)} Dijkstra's"
        return self._compared_to_others(case, how, rows.size)

    def _compared_to_others(self, case: _Verification, how: str, cells: int) -> VerifierFinding:
        """Combine a sample's verdict with the checksums of other kernels and of other runs of this kernel."""
        if not case.graph.exact_sums:  # rounding depends on the order of additions, so checksums are not comparable
            return VerifierFinding("verified", how, cells)
        others = {other: theirs for other, theirs in case.facts.checksums.items() if other != case.whose}
        differing = [" ".join(filter(None, other)) for other, theirs in others.items() if theirs != case.checksum]
        if differing:
            return VerifierFinding("unverified", f"{how}, but the checksum differs from that of {', '.join(differing)}", cells)
        names = [*dict.fromkeys(name for name, _ in others if name != case.whose[0])]
        forms = sum(name == case.whose[0] for name, _ in others)
        names += [f"{units.counted(forms, 'other form')} of itself"] * (forms > 0)
        return VerifierFinding("verified", f"{how}; same checksum as {', '.join(names)}" if names else how, cells)


def _compared(graph: GraphInput, got: np.ndarray, expected: np.ndarray, sources: np.ndarray) -> VerifierFinding | None:
    """Return errors in the distances from these sources; None if there are none."""
    count, (row, column) = _differences(got, expected, graph)
    if not count:
        return None
    if _beyond_range(graph, got, expected):
        return VerifierFinding("out of range", _out_of_range(graph), got.size)
    came, right = (number_text(cells[row, column].item()) for cells in (got, expected))
    there = f"({sources[row]}, {column}): {came}, expected {right}"
    differing = "1 cell differs" if count == 1 else f"{count:,} cells differ"
    return VerifierFinding("wrong", f"wrong at {there}; {differing}", got.size)


def _differences(got: np.ndarray, expected: np.ndarray, graph: GraphInput) -> tuple[int, tuple[int, int]]:
    """Count the wrong cells and locate the first; NaN is wrong."""
    count, first = 0, (-1, -1)
    spread = 0.0
    if not graph.exact_sums and graph.low is not None and graph.low < 0:
        finite = expected[np.isfinite(expected)]
        spread = float(np.abs(finite).max(initial=0))  # sums of both signs may cancel, but their rounding errors do not
    for rows in blocks(got):
        right = got[rows] == expected[rows]
        if not graph.exact_sums:
            with np.errstate(invalid="ignore"):
                size = np.maximum(np.abs(expected[rows]), expected.dtype.type(spread))
                right |= np.abs(got[rows] - expected[rows]) <= graph.n * np.spacing(size)
        wrong = np.argwhere(~right)
        if len(wrong) and not count:
            first = (int(wrong[0][0]) + rows.start, int(wrong[0][1]))
        count += len(wrong)
    return count, first


def _obviously_wrong(graph: GraphInput, distances: np.ndarray) -> str | None:
    """Describe errors found without Dijkstra: cells that are not distances, and a nonzero diagonal."""
    for rows in blocks(distances):
        block = distances[rows]
        bad = no_distance(block)
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            return f"wrong at ({row + rows.start}, {column}): {number_text(block[row, column].item())}"
    off = np.flatnonzero(distances.diagonal() != 0)
    return _wrong_diagonal(distances, int(off[0])) if off.size and graph.exact_sums else None


def _wrong_diagonal(distances: np.ndarray, vertex: int) -> str:
    return f"wrong at ({vertex}, {vertex}): {number_text(distances[vertex, vertex].item())}, expected 0"


def _beyond_range(graph: GraphInput, got: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether every difference is a distance that overflowed the dtype."""
    most = bounds.limit(graph, graph.dtype)
    differ = got != expected
    return bool((expected[differ] >= most).all() and (got[differ] >= most).all() and not no_path(expected[differ]).any())


def _range_trouble(graph: GraphInput, distances: np.ndarray) -> tuple[str, str] | None:
    """Return verdict and reason if the type was too small, for graphs whose weights do not rule that out."""
    if bounds.proved_by_edges(graph, graph.dtype):
        return None
    if graph.dtype in FLOATS:
        most = bounds.limit(graph, graph.dtype)
        over = any(bool(((block := distances[rows]) >= most)[~no_path(block)].any()) for rows in blocks(distances))
        return ("out of range", _out_of_range(graph)) if over else None
    from fwtui.engine.reference_distances import unreachable_pairs

    expected = unreachable_pairs(graph.matrix, graph.no_edge)
    got = graph.n * (graph.n - 1) - reachable_pairs(distances)
    if got == expected:
        return None
    if got < expected:
        return "wrong", f"{got:,} pairs have no path, expected {expected:,}"
    return "out of range", f"{got:,} pairs have no path, expected {expected:,}: {_out_of_range(graph)}"


def _out_of_range(graph: GraphInput) -> str:
    return f"some distances reach {bounds.limit(graph, graph.dtype):,.6g}, beyond what {graph.dtype} can distinguish here"


def _agreement(graph: GraphInput) -> str:
    return "equal" if graph.exact_sums else f"are within {graph.n} units in the last place (weights off the 1/256 grid) of"


def number_text(number: int | float) -> str:
    if number == NO_DISTANCE:
        return "NaN, a fraction or an overflow"
    return "no path" if number in (NO_PATH, float("inf")) else f"{number:.9g}" if isinstance(number, float) else str(number)


def scipy_distances(graph: GraphInput, shifts: np.ndarray | None, by_dijkstra: bool = False) -> np.ndarray:
    """Return canonical distances (int32 with 2^31 - 1, or a floating type with +inf) of a graph without negative cycles.

    `shifts` are potentials, needed for Dijkstra if weights are negative.

    Raises scipy's NegativeCycleError if it still finds a negative cycle.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra, floyd_warshall

    present = graph.matrix != graph.no_edge
    np.fill_diagonal(present, False)
    rows, columns = np.nonzero(present)
    weights = graph.matrix[rows, columns].astype(np.float64)
    nonnegative = graph.nonnegative
    # sparse, because SciPy reads a zero in a dense matrix as no edge, but stores explicit zeros in a sparse one
    if (by_dijkstra or graph.edges * _SPARSE < graph.n**2) and (nonnegative or shifts is not None):
        if shifts is not None:
            weights += shifts[columns] - shifts[rows]
        distances = dijkstra(csr_array((weights, (rows, columns)), shape=present.shape))
        if shifts is not None:
            distances += shifts[:, None] - shifts[None, :]
    else:
        distances = floyd_warshall(csr_array((weights, (rows, columns)), shape=present.shape))
    return to_canonical(distances, graph)


def to_canonical(distances: np.ndarray, graph: GraphInput) -> np.ndarray:
    """Convert float64 distances with +inf for no path to the graph's canonical type; values beyond int32 become no path."""
    if canonical_type(graph) != np.int32:
        return distances.astype(canonical_type(graph), copy=False)
    result = np.empty(distances.shape, dtype=np.int32)
    for part in blocks(distances):
        result[part] = np.minimum(distances[part], NO_PATH)
    return result
