"""The loader of graph files: into arcs or a matrix of the file's data type, or into a kernel's matrix."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from fwtui.common.errors import Refused
from fwtui.common.text import sanitise
from fwtui.graphs.adjacency import Adjacency, Arcs, GivenGraph, both_ways
from fwtui.graphs.arc_lines import shortest
from fwtui.graphs.bounds import held_below
from fwtui.graphs.columns import WeightChoice
from fwtui.graphs.file_options import STDIN, UNWEIGHTED, FileOptions, parse_no_edge
from fwtui.graphs.formats import read_suffixes, suffix_in, suffix_of
from fwtui.graphs.graph import GraphInput, blocks, graph_of
from fwtui.graphs.graph_file import MAX_BYTES, STDIN_NAME, open_graph_file
from fwtui.graphs.graph_limits import GraphLimits, refused_for_room
from fwtui.graphs.no_edge import likely_no_edge
from fwtui.graphs.text_rows import GraphFile

ANY = GraphLimits()
Progress = Callable[[float], None]
DEFAULT_OPTIONS = FileOptions()
_SHARE = 2  # a matrix in a file may take half of the free memory: the other half is for its distances


def load(
    path: str, limits: GraphLimits = ANY, progress: Progress = lambda share: None, options: FileOptions = DEFAULT_OPTIONS
) -> Adjacency:
    """Load a graph file in the format of its suffix. Raises Refused with file, line and fix."""
    return load_lazily(path, limits, progress, options).adjacency


def load_lazily(
    path: str, limits: GraphLimits = ANY, progress: Progress = lambda share: None, options: FileOptions = DEFAULT_OPTIONS
) -> GivenGraph:
    """Load a graph file, but check arrays only when `adjacency` is read, which may then raise Refused.

    Standard input (STDIN) is read in the format of its first bytes. `progress` is called often with the share read (0 to 1).
    Raises Refused for a matrix whose greatest weight probably means no edge, unless `options` decide that.
    """
    no_edge = parse_no_edge(options.no_edge)
    column = None if options.weight == UNWEIGHTED else options.weight
    weight = WeightChoice(column, f"pass --weight NAME, or --weight {UNWEIGHTED} to count each edge 1")
    if path == STDIN:
        name, suffix = STDIN_NAME, ""
    else:
        # a file that does not exist is rejected below
        name, suffix = sanitise(Path(path).name), suffix_of(path) if os.path.lexists(path) else ""
    arrays = not suffix or read_suffixes()[suffix].arrays
    most = max(MAX_BYTES, psutil.virtual_memory().available // _SHARE) if arrays else MAX_BYTES
    with refused_for_room(name, limits.dtype):
        with open_graph_file(path, name, most, progress) as (file, size):
            suffix = suffix or suffix_in(file.peek())
            graph = read_suffixes()[suffix].load().read(GraphFile(file, name, size, most, suffix, limits, weight, no_edge))
        limits.check_size(graph.n, name, "has")
        if no_edge is None and (likely := likely_no_edge(graph)) is not None:
            way = f"pass --no-edge {shortest(likely)}, or --no-edge inf if it is a weight"
            raise Refused(f"{name}: the greatest weight, {shortest(likely)}, is in so many cells that it may mean no edge; {way}")
        if isinstance(graph, Adjacency):
            given = replace(graph, name=name)
            limits.check_weights(given, name)
        else:
            given = replace(graph, name=name, look=partial(_checked, graph.look, name, limits, graph.notes))
    return both_ways(given.adjacency) if options.undirected else given


def _checked(look: Callable[[], Adjacency], name: str, limits: GraphLimits, notes: tuple[str, ...]) -> Adjacency:
    with refused_for_room(name, limits.dtype):
        graph = replace(look(), name=name, notes=notes)
        limits.check_weights(graph, name)
        return graph


def read(
    path: str,
    dtype: str,
    max_vertices: int = 65536,
    free_bytes: int | None = None,
    progress: Progress = lambda share: None,
    options: FileOptions = DEFAULT_OPTIONS,
) -> GraphInput:
    """Load a graph file into a dense matrix of dtype. Raises Refused with file, line and fix.

    Of parallel arcs the lightest counts; positive self-loops are ignored, negative ones are not.
    Sizes are checked against max_vertices and free_bytes (default: the machine's free memory), and before the rest of the
    file is read if its header declares them.
    """
    if free_bytes is None:
        free_bytes = psutil.virtual_memory().available
    graph = load(path, GraphLimits(dtype, max_vertices, free_bytes), progress, options)
    with refused_for_room(graph.name, dtype):
        return _filled(graph, np.empty((graph.n, graph.n), dtype=dtype))


def _filled(graph: Adjacency, matrix: np.ndarray) -> GraphInput:
    graph.fill(matrix)
    if matrix.dtype.kind == "f":
        for rows in blocks(matrix):
            matrix[rows] += 0  # -0 becomes 0
    facts = graph_of(matrix, graph.facts.integer, graph.name)
    widest = facts.largest_weight * (graph.n - 1)
    arcs = facts.edges if graph.arcs is None else _counted(graph.arcs) + graph.merged
    ignored = arcs - facts.edges
    notes = [*graph.notes, *([f"{ignored:,} of {arcs:,} arcs are parallel or self-loops"] if ignored else [])]
    rounds = not facts.integer and matrix.dtype != np.float64  # the pieces hold float64
    if rounds and any((piece.weights != piece.weights.astype(matrix.dtype)).any() for piece in graph.pieces()):
        notes.append(f"weights rounded to {matrix.dtype}; choose float64 for all their digits")
    return replace(
        facts,
        exact_sums=facts.integer or 3 * widest < held_below(graph.facts, matrix.dtype.name),
        note="; ".join(notes),
        vertices=graph.vertices,
    )


def _counted(arcs: Arcs) -> int:
    """Count the arcs except zeros on a matrix's diagonal, which are not self-loops."""
    return len(arcs.weights) - int(np.count_nonzero((arcs.sources == arcs.targets) & (arcs.weights == 0)))
