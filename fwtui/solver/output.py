"""Results as text on a terminal, and as .npy, .npz, .csv, .tsv, .bin and .out files."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fwtui.common import units
from fwtui.common.atomic_file import atomic_write
from fwtui.common.errors import Refused
from fwtui.common.streams import report
from fwtui.common.text import cells, excerpt, pad, quoted
from fwtui.common.version import RESULT_VERSION
from fwtui.graphs.adjacency import Adjacency, GivenGraph
from fwtui.graphs.cycles import weights_along
from fwtui.graphs.formats.binary import write_distances
from fwtui.graphs.formats.table import DELIMITERS
from fwtui.solver import summary_text
from fwtui.solver.result import Result, Stats

if TYPE_CHECKING:
    from fwtui.graphs.summary import DistanceSummary
    from fwtui.graphs.vertices import Vertices

ONCE = ("set-up", "compile")  # imports, the GPU's context, loading or compiling kernels: needed once
INSIDE = ("copy in", "kernels", "searches", "copy out")
ORDER = ("read", "copy in", "prepare", "allocate", "kernels", "searches", "copy out", "paths", "write")
ARROW = " -> "
BINARY = (".bin", ".out")
Pairs = Sequence[tuple[int, int]]


def check_out(path: str, pairs: bool, paths: bool) -> None:
    """Raise Refused before the work starts for a suffix that cannot be written or cannot hold paths."""
    suffix, tables = Path(path).suffix.lower(), tuple(DELIMITERS)
    allowed = tables if pairs else (".npy", ".npz", *tables, *BINARY)
    if suffix not in allowed:
        what = "pairs" if pairs else "distances"
        raise Refused(f"{quoted(Path(path).name)} ends in none of {', '.join(allowed)}; choose one of these for {what}")
    if paths and suffix in (".npy", *BINARY):
        raise Refused(f"{quoted(Path(path).name)} cannot store paths; choose .npz, .csv or .tsv")


def save(
    result: Result,
    path: str,
    pairs: Pairs | None,
    paths: bool,
    report_progress: Callable[[float], None],
    force: bool = True,
) -> int:
    """Write the result and return its bytes; the file is written whole or not at all. Raises Refused if it cannot be written.

    Without `force` no existing file is overwritten.
    """
    suffix = Path(path).suffix.lower()
    with atomic_write(path, force=force) as file:
        if suffix == ".npy":
            np.save(file, result.distances, allow_pickle=False)
        elif suffix == ".npz":
            np.savez(file, allow_pickle=False, **_arrays(result, paths))  # type: ignore[arg-type]
        elif suffix in BINARY:
            write_distances(result.distances, file, quoted(Path(path).name))
        else:
            rows = _pair_rows(result, pairs, paths) if pairs is not None else _all_rows(result, paths, report_progress)
            text = io.TextIOWrapper(file, "utf-8", newline="")
            csv.writer(text, delimiter=DELIMITERS[suffix], lineterminator="\n").writerows(rows)
            text.flush()
            text.detach()
        return file.tell()


def _arrays(result: Result, paths: bool) -> dict[str, np.ndarray]:
    arrays = {"distances": result.distances}
    if result.rows is not None:
        arrays["sources"] = result.rows
    if result.columns is not None:
        arrays["targets"] = result.columns
    if paths and result.predecessors is not None:
        arrays["predecessors"] = result.predecessors
    if not result.vertices.numbered:
        arrays["vertices"] = np.array([result.vertices.text(v) for v in range(len(result.vertices))])
    elif result.vertices.labels:
        arrays["first"] = np.array(result.vertices.labels[0])
    return arrays


def _all_rows(result: Result, paths: bool, report_progress: Callable[[float], None]) -> Iterator[Sequence[str]]:
    """Yield every pair with a path, source by source, and with `paths` the vertex before the target."""
    yield ("source", "target", "distance", *(("before",) if paths else ()))
    names = [result.vertices.text(v) for v in range(len(result.vertices))]
    every = np.arange(len(result.vertices))
    sources = every if result.rows is None else result.rows
    targets = every if result.columns is None else result.columns
    for place, (source, row) in enumerate(zip(sources.tolist(), result.distances, strict=True)):
        report_progress(place / len(result.distances))
        reached = np.flatnonzero(np.isfinite(row) & (targets != source))
        before = result.predecessors[place][reached].tolist() if paths and result.predecessors is not None else None
        distances = _plain(row[reached])
        for at, (target, distance) in enumerate(zip(targets[reached].tolist(), distances, strict=True)):
            found = (names[source], names[target], distance)
            yield (*found, names[before[at]]) if before is not None else found


def _pair_rows(result: Result, pairs: Pairs, paths: bool, terminal: bool = False) -> Iterator[Sequence[str]]:
    yield ("source", "target", "distance", *(("path",) if paths else ()))
    name = result.vertices.name if terminal else result.vertices.text
    for source, target in pairs:
        row = (name(source), name(target), *_plain(result.distances[source, [target]]))
        yield (*row, ARROW.join(map(name, result.path(source, target)))) if paths else row


def _plain(distances: np.ndarray) -> list[str]:
    """Format distances for other programs, with the digits of their type; empty for no path."""
    single = distances.dtype == np.float32

    def plain(distance: float) -> str:
        if distance == float("inf"):
            return ""
        return str(int(distance)) if distance == int(distance) else f"{distance:.9g}" if single else repr(distance)

    return list(map(plain, distances.tolist()))


def print_answer(
    request: argparse.Namespace, graph: GivenGraph, result: Result, pairs: Pairs | None, seconds: Mapping[str, float]
) -> None:
    """Print the requested output on stdout: JSON; or the path, the pairs and the summary as text."""
    listed, summary = pairs is not None and not request.out, None
    if request.summary or not (request.out or pairs):
        from fwtui.graphs.summary import summarise

        summary = summarise(result.distances)
    if request.json:
        from fwtui.common.as_json import as_json

        rows = [*_pair_objects(result, pairs or (), request.paths or bool(request.source))] if listed else []
        if request.summary or not listed:
            rows.append(_solved_object(result.stats, graph, seconds, summary))
        print("\n".join(map(as_json, rows)))
        return
    if request.source and pairs:
        print("\n".join(_path_lines(result, graph.adjacency, *pairs[0])))
    elif listed:
        csv.writer(sys.stdout, lineterminator="\n").writerows(_pair_rows(result, pairs or (), request.paths, sys.stdout.isatty()))
    if summary is not None:
        print("\n".join(summary_lines(summary, graph.vertices, result.stats)))
    if request.out and request.out.lower().endswith((".npy", *BINARY)) and not graph.vertices.numbered:
        whole = all(isinstance(label, int) for label in graph.vertices.labels)
        order = "in ascending order" if whole else "as they appear in the graph"
        report(f"{Path(request.out).suffix} stores no names: its rows are the vertices {order}; .npz stores the names")


def _pair_objects(result: Result, pairs: Pairs, paths: bool) -> Iterator[dict[str, Any]]:
    """Yield pairs with the fields that commands/README.md explains."""
    name = result.vertices.text
    for source, target in pairs:
        distance = float(result.distances[source, target])
        yield {
            "version": RESULT_VERSION,
            "source": name(source),
            "target": name(target),
            "distance": None if distance == float("inf") else distance,
            **({"path": [*map(name, result.path(source, target))]} if paths else {}),
        }


def _solved_object(
    stats: Stats, graph: GivenGraph, seconds: Mapping[str, float], summary: DistanceSummary | None
) -> dict[str, Any]:
    """Return the result and its statistics, with the fields that commands/README.md explains."""
    how = {name: getattr(stats, name) for name in ("dtype", "proof", "exact", "kernel", "reason", "tile", "device", "devices")}
    return {
        "version": RESULT_VERSION,
        "graph": graph.name,
        "vertices": stats.n,
        "edges": stats.edges,
        "notes": list(graph.notes),
        **how,
        "seconds": dict(seconds),
        "answers": summary_text.as_object(summary, graph.vertices) if summary is not None else None,
    }


def summary_lines(summary: DistanceSummary, vertices: Vertices, stats: Stats) -> list[str]:
    """Format the summary as aligned lines, then the histogram and the map of distances."""
    facts = summary_text.facts(summary, vertices, stats.edges)
    facts.append(("computed in", f"{stats.dtype}, {'no sum rounded, ' if stats.exact else ''}{stats.proof}"))
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    if summary.reachable:
        near, far, no_path = summary_text.SHADES[0], summary_text.SHADES[-1], summary_text.NO_PATH
        head = f"mean distance, sources down, targets across: '{near}' near to '{far}' far, '{no_path}' no path"
        histogram, shaded = summary_text.histogram_lines(summary), summary_text.map_lines(summary.heat)
        lines += ["", "pairs by distance", *histogram, "", head, *shaded]
    return lines


def _path_lines(result: Result, adjacency: Adjacency, source: int, target: int) -> list[str]:
    """Format one path with its edges, their weights and the distance of each vertex; only one line without a path."""
    vertices = result.vertices
    path = result.path(source, target)
    if not path:
        return [f"there is no path from {excerpt(vertices.name(source))} to {excerpt(vertices.name(target))}"]
    names = [excerpt(vertices.name(v)) for v in path]
    weights = weights_along(adjacency, path)
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    total = float(reached[-1])  # float64: the type of the distances may round the sum
    count = units.counted(len(weights), "edge")
    lines = [f"from {names[0]} to {names[-1]}: {_number(total)} over {count}"]
    rows = [("from", "to", "weight", "distance")]
    rows += [
        (a, b, _number(w), _number(d))
        for a, b, w, d in zip(names[:-1], names[1:], weights.tolist(), reached[1:].tolist(), strict=True)
    ]
    widths = [max(cells(row[column]) for row in rows) for column in range(4)]
    for row in rows if len(path) > 1 else ():
        lines.append("  " + "  ".join(pad(row[column], widths[column], right=column > 1) for column in range(4)))
    return lines


def _number(value: float) -> str:
    """Format a length: integers in full, other values with 15 digits, which float64 represents."""
    return f"{value:,.0f}" if value == int(value) else f"{value:.15g}"


def spent(seconds: Mapping[str, float]) -> str:
    """Format the time: one-time work, the rest, and the share of the rest outside copies and kernels."""
    once = sum(seconds.get(name, 0.0) for name in ONCE)
    then = sum(seconds.values()) - once
    inside = sum(seconds.get(name, 0.0) for name in INSIDE)
    parts = ", ".join(f"{name} {units.duration(seconds[name])}" for name in ORDER if name in seconds)
    share = units.percent((then - inside) / then if then else None)
    return f"set-up {units.duration(once)} once; then {units.duration(then)}: {parts}; {share} of that outside copies and kernels"
