"""The edges, or the matrix, in the rows of a text table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import quoted, sanitise
from fwtui.common.units import counted
from fwtui.graphs.adjacency import Adjacency, ArcCollector, Arcs, graph_of_arcs
from fwtui.graphs.columns import both_ways_of
from fwtui.graphs.graph_limits import named
from fwtui.graphs.library_objects import of_array
from fwtui.graphs.text_heads import Head
from fwtui.graphs.text_rows import GraphFile, Rows, arc_of_each, present
from fwtui.graphs.vertex_numbers import NamedVertices, number_whole


def read_edges(source: GraphFile, head: Head, chunks: Iterable[tuple[int, bytes]]) -> Adjacency:
    """Read rows that are an edge each. Vertices are integers until a chunk has other names. Raises Refused with file and line."""
    collected, names = ArcCollector(source.limits.max_unmerged), None
    edges = mirrored = 0
    for line, chunk in chunks:
        rows = head.form.rows(chunk, line, source)
        if not len(rows.weights):
            continue  # blank lines and comments
        edges += len(rows.weights)
        if rows.sources:
            if names is None:
                names, collected = _renamed(collected, source.limits.max_unmerged)
            arcs = _named_arcs(source, names, rows)
            if rows.directions:
                back = both_ways_of(rows.directions, head.direction, source.name)
                mirrored += int(np.count_nonzero(back))
                arcs = arcs.with_reverse(back)
        else:
            arcs = arc_of_each(rows, 0)
            if head.bipartite or names is not None:
                arcs = _other_vertices(arcs, names)
        collected.add(present(source, arcs))
        if (absent := source.is_no_edge(arcs.weights)).any():  # only names its vertices
            ends = np.concatenate([arcs.sources[absent], arcs.targets[absent]])
            collected.add(Arcs(ends, ends, np.zeros(len(ends))))
    if not edges:
        raise Refused(f"{source.name} has no edges; add some")
    notes = head.notes
    if head.counts:
        row, note = _count_line(source, head, edges, len(np.unique(np.concatenate(collected.all()[:2]))))
        notes = (*notes, note)
        if row is not None:
            arcs = arc_of_each(row, 0)
            collected.add(_other_vertices(arcs, names) if head.bipartite or names is not None else arcs)
    arcs = collected.all()
    if names is not None:
        number, labels = names.merged()
        arcs = Arcs(number[arcs.sources], number[arcs.targets], arcs.weights)
    else:
        (sources, targets), values = number_whole(np.stack(arcs[:2]))
        arcs, labels = Arcs(sources, targets, arcs.weights), values.tolist()
        if head.bipartite:
            labels = [f"left {value}" if value >= 0 else f"right {-1 - value}" for value in labels]
        elif labels[-1] - labels[0] == len(labels) - 1:
            labels = range(labels[0], labels[-1] + 1)
    if mirrored:
        notes = (*notes, f"{counted(mirrored, 'edge')} of {edges:,} undirected by column {quoted(head.direction)}")
    if head.undirected and not head.bipartite:
        notes = (*notes, "undirected, as its comments declare")
    notes = tuple(filter(None, notes))
    return graph_of_arcs(len(labels), labels, arcs, merged=collected.merged, undirected=head.undirected, notes=notes)


def _other_vertices(arcs: Arcs, names: NamedVertices | None) -> Arcs:
    """Return arcs between integers as arcs between names, or without names as those of a bipartite graph."""
    if names is None:
        return arcs._replace(targets=-1 - arcs.targets)
    ends = names.add(*([str(end) for end in part.tolist()] for part in arcs[:2]))
    return Arcs(ends[:, 0], ends[:, 1], arcs.weights)


def _named_arcs(source: GraphFile, names: NamedVertices, rows: Rows) -> Arcs:
    weights = rows.weights[:, 0] if rows.weights.shape[1] else np.ones(len(rows.sources))
    wrong = np.flatnonzero(~(np.isfinite(weights) | source.is_no_edge(weights)))
    if len(wrong):
        at = int(wrong[0])
        between = f"from {sanitise(rows.sources[at])[:40]} to {sanitise(rows.targets[at])[:40]}"
        raise Refused(f"{source.name}: the weight {between} is {weights[at]}; remove the line, or write a finite number")
    if len(names):  # before all vertices are read
        source.limits.check_size(len(names), source.name, "has at least")
    ends = names.add(rows.sources, rows.targets)
    return Arcs(ends[:, 0], ends[:, 1], weights)


def _renamed(collected: ArcCollector, most: int) -> tuple[NamedVertices, ArcCollector]:
    """Return the vertices read so far by their names, and their arcs."""
    arcs, again = collected.all(), ArcCollector(most)
    if not len(arcs.weights):
        return NamedVertices(), again
    (sources, targets), values = number_whole(np.stack(arcs[:2]))
    again.add(Arcs(sources, targets, arcs.weights))
    again.merged = collected.merged
    return NamedVertices(map(str, values.tolist())), again


def _count_line(source: GraphFile, head: Head, edges: int, found: int) -> tuple[Rows | None, str]:
    """Return the row of the first line, or None if it counts vertices and edges, and a note on it."""
    counts, line, weighted = head.counts, head.lines, "w" in head.form.columns
    vertices, rows, *more = counts
    if len(counts) == 2 and rows == edges and (vertices == found or (weighted and vertices > found)):
        return None, f"line {line} contains the numbers of vertices and edges, {vertices:,} and {rows:,}, not an edge"
    if len(counts) != head.form.ends + weighted:
        what = f"{' '.join(map(str, counts))!r} is neither an edge{' with a weight' * weighted} nor"
        raise source.wrong(line, f"{what} the counts of vertices and edges; remove it")
    edge = f"line {line} is read as the edge from {vertices} to {rows}"
    note = f"{edge}; if it contains the numbers of vertices and edges, remove it" if edges in counts else ""
    return Rows(np.array([more], np.float64), np.array([counts[:2]])), note


def read_matrix(source: GraphFile, head: Head, chunks: Iterable[tuple[int, bytes]]) -> Adjacency:
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
