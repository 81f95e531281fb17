"""The reader of text tables with any separator: edges or a matrix."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.common.units import counted
from fwtui.graphs.adjacency import Adjacency, ArcCollector, Arcs, graph_of_arcs
from fwtui.graphs.columns import both_ways_of
from fwtui.graphs.graph_limits import named
from fwtui.graphs.library_objects import of_array
from fwtui.graphs.text_heads import Head, read_head
from fwtui.graphs.text_rows import GraphFile, Rows, arc_of_each, present
from fwtui.graphs.vertex_numbers import NamedVertices, number_whole


def read_table(source: GraphFile, separator: str | None, by_appearance: bool) -> Adjacency:
    """Read the edges or the square matrix in a file; `separator` is that of the suffix, None for white space.

    Integer vertices are in ascending order unless `by_appearance`; all others are in order of first appearance. Raises
    Refused with file and line.
    """
    chunks = source.chunks(quotes=separator is not None)
    number, chunk = next(chunks, (1, b""))
    head = read_head(source, chunk, separator, whole=not source.file.peek(1))
    rest = chunk.split(b"\n", head.lines)[-1]
    pieces = chain([(number + head.lines, rest)], chunks)
    if head.matrix:
        return _matrix(source, head, pieces)
    return _Edges(source, head, by_appearance).read(pieces)


class _Edges:
    """The edges of a file, chunk by chunk: vertices are integers until a chunk has other names."""

    def __init__(self, source: GraphFile, head: Head, by_appearance: bool):
        self._source, self._head, self._by_appearance = source, head, by_appearance
        self._names: NamedVertices | None = None
        self._arcs = ArcCollector(source.limits.max_unmerged, self._check)
        self._mirrored = 0  # edges that lead both ways

    def read(self, chunks: Iterable[tuple[int, bytes]]) -> Adjacency:
        source, head = self._source, self._head
        edges = 0
        for line, chunk in chunks:
            rows = head.form.rows(chunk, line, source)
            edges += len(rows.weights)
            if not len(rows.weights):
                source.check_idle(len(chunk), line + chunk.count(b"\n") - 1)
            elif rows.sources:
                self._add_named(rows)
            else:
                self._add_numbers(rows)
        return self._graph(edges)

    def _add_numbers(self, rows: Rows) -> None:
        arcs = arc_of_each(rows, 0)
        if self._head.bipartite:
            arcs = arcs._replace(targets=-1 - arcs.targets)
        if self._names is not None:
            ends = self._names.add(*([str(end) for end in part.tolist()] for part in arcs[:2]))
            arcs = Arcs(ends[:, 0], ends[:, 1], arcs.weights)
        self._add(arcs)

    def _add(self, arcs: Arcs) -> None:
        """Add the arcs; an arc whose weight means no edge becomes self-loops of weight 0, which only name its vertices."""
        absent = self._source.is_no_edge(arcs.weights)
        self._arcs.add(present(self._source, arcs))
        if absent.any():
            ends = np.concatenate([arcs.sources[absent], arcs.targets[absent]])
            self._arcs.add(Arcs(ends, ends, np.zeros(len(ends))))

    def _add_named(self, rows: Rows) -> None:
        source, name = self._source, self._source.name
        weights = rows.weights[:, 0] if rows.weights.shape[1] else np.ones(len(rows.sources))
        skipped = source.is_no_edge(weights)
        wrong = np.flatnonzero(~(np.isfinite(weights) | skipped))
        if len(wrong):
            at = int(wrong[0])
            between = f"from {sanitise(rows.sources[at])[:40]} to {sanitise(rows.targets[at])[:40]}"
            raise Refused(f"{name}: the weight {between} is {weights[at]}; remove the line, or write a finite number")
        if self._names is None:
            self._names = self._renamed()
        elif len(self._names):  # before all vertices are read
            source.limits.check_size(len(self._names), name, "has at least")
        ends = self._names.add(rows.sources, rows.targets)
        arcs = Arcs(ends[:, 0], ends[:, 1], weights)
        if rows.directions:
            back = both_ways_of(rows.directions, self._head.direction, name)
            self._mirrored += int(np.count_nonzero(back))
            arcs = arcs.with_reverse(back)
        self._add(arcs)

    def _renamed(self) -> NamedVertices:
        """Switch the vertices read so far from numbers to names, and return the names."""
        arcs = self._arcs.all()
        if not len(arcs.weights):
            return NamedVertices()
        ends, values = number_whole(np.stack(arcs[:2], axis=1), True)
        again = ArcCollector(self._source.limits.max_unmerged, self._check)
        again.add(Arcs(ends[:, 0], ends[:, 1], arcs.weights))
        again.merged, self._arcs = self._arcs.merged, again
        return NamedVertices(map(str, values.tolist()))

    def _check(self, arcs: Arcs) -> None:
        limits = self._source.limits
        if self._names is None and len(arcs.weights) > limits.most // 2:  # fewer arcs cannot have too many ends
            ends = np.sort(np.concatenate(arcs[:2]))  # np.unique is 10x slower with few duplicates
            limits.check_size(1 + int(np.count_nonzero(ends[1:] != ends[:-1])), self._source.name, "has at least")

    def _graph(self, edges: int) -> Adjacency:
        head, notes = self._head, self._head.notes
        if not edges:
            raise Refused(f"{self._source.name} has no edges; add some")
        if head.counts:
            notes = (*notes, self._count_line(edges))
        arcs = self._arcs.all()
        if self._names is not None:
            number, labels = self._names.merged()
            arcs = Arcs(number[arcs.sources], number[arcs.targets], arcs.weights)
        else:
            in_pairs = int(self._by_appearance)  # only then the order matters; it takes longer
            ends, values = number_whole(np.stack(arcs[:2], axis=in_pairs), self._by_appearance)
            sources, targets = ends.T if in_pairs else ends
            arcs = Arcs(sources, targets, arcs.weights)
            labels = self._labels(values)
        if self._mirrored:
            which = f"{counted(self._mirrored, 'edge')} of {edges:,}"
            notes = (*notes, f"{which} undirected by column {quoted(head.direction)}")
        if head.undirected and not head.bipartite:
            notes = (*notes, "undirected, as its comments declare")
        merged, notes = self._arcs.merged, tuple(filter(None, notes))
        return graph_of_arcs(len(labels), labels, arcs, merged=merged, undirected=head.undirected, notes=notes)

    def _labels(self, values: np.ndarray) -> Sequence[Hashable]:
        if self._head.bipartite:
            return [f"left {value}" if value >= 0 else f"right {-1 - value}" for value in values.tolist()]
        if self._by_appearance:
            return [str(value) for value in values.tolist()]
        first, last = int(values[0]), int(values[-1])
        return range(first, last + 1) if last - first == len(values) - 1 else values.tolist()

    def _count_line(self, edges: int) -> str:
        """Return a note on the first line if it counts vertices and edges; else add its edge, and return a note if it may."""
        counts, line, weighted = self._head.counts, self._head.lines, "w" in self._head.form.columns
        vertices, rows, *more = counts
        found = len(np.unique(np.concatenate(self._arcs.all()[:2])))
        if len(counts) == 2 and rows == edges and (vertices == found or (weighted and vertices > found)):
            return f"line {line} contains the numbers of vertices and edges, {vertices:,} and {rows:,}, not an edge"
        if len(counts) != self._head.form.ends + weighted:
            what = f"{' '.join(map(str, counts))!r} is neither an edge{' with a weight' * weighted} nor"
            raise self._source.wrong(line, f"{what} the counts of vertices and edges; remove it")
        self._add_numbers(Rows(np.array([more], np.float64), np.array([counts[:2]])))
        edge = f"line {line} is read as the edge from {vertices} to {rows}"
        return f"{edge}; if it contains the numbers of vertices and edges, remove it" if edges in counts else ""


def _matrix(source: GraphFile, head: Head, chunks: Iterable[tuple[int, bytes]]) -> Adjacency:
    """Return the graph of a square matrix, in which an empty cell, NA, inf and nan mean no edge."""
    n, form, parts = head.matrix, head.form, list[np.ndarray]()
    blank = _blank_cells(form.delimiter)
    for line, chunk in chunks:
        text = chunk if blank is None or not blank.search(chunk) else blank.sub(b"nan", chunk)
        parts.append(form.rows(text, line, source).weights)
    dense = np.concatenate(parts)
    if len(dense) != n:
        raise Refused(
            f"{source.name} has {n:,} columns of weights and {counted(len(dense), 'row')}, but a matrix is square; correct it"
        )
    dense[source.is_no_edge(dense)] = np.inf
    with named(source.name):
        return replace(of_array(dense), labels=head.labels, notes=head.notes)


def _blank_cells(delimiter: str | None) -> re.Pattern[bytes] | None:
    if delimiter is None:
        return None
    between = re.escape(delimiter.encode())
    empty = rb"[ ]*(?:NA|na|-|)[ ]*"
    return re.compile(rb"(?<=%s)%s(?=%s|\r?$)|^%s(?=%s)" % (between, empty, between, empty, between), re.MULTILINE)
