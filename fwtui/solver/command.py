"""The work of `fwtui solve`: read a graph file, find its shortest paths, print or save them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from fwtui.common import units
from fwtui.common.atomic_file import check_place
from fwtui.common.errors import Refused
from fwtui.common.signals import undone_by
from fwtui.common.streams import report
from fwtui.graphs.adjacency import GivenGraph, both_ways
from fwtui.graphs.loading import load_lazily
from fwtui.solver import output
from fwtui.solver.call import Call, Clock
from fwtui.solver.result import Result
from fwtui.solver.solve import solve_one
from fwtui.solver.starting import GpuStart
from fwtui_kernels.auto import AUTO

_EVERY = 0.1  # seconds
_PATIENCE = 0.5  # seconds before the first output


def carry_out(request: argparse.Namespace, start: GpuStart, begun: float) -> None:
    """Carry out the command line with the GPU that was started for it; it began at `begun` of time.monotonic(), in any process.

    Raises Refused, and SciPy's NegativeCycleError.
    """
    start.go_on()
    if request.out:
        output.check_out(request.out, bool(request.pairs or request.source), request.paths)
        check_place(request.out, request.graph, request.pairs, request.sources, request.targets)
    elif request.paths and not request.pairs:
        raise Refused("--paths needs an output; give -o OUT or --pairs FILE too, or --from and --to for one path")
    progress = SolveProgress(sys.stderr)
    clock = Clock(time.monotonic() - begun)
    clock.lap("set-up")
    with progress.stage("reading"):
        graph = load_lazily(request.graph, tell=progress.tell)
        if request.undirected:
            graph = both_ways(graph.adjacency)
        pairs = _pairs(request, graph)
        ends = [
            output.read_vertices(file, graph.vertices, title) if file else None
            for file, title in ((request.sources, "source"), (request.targets, "target"))
        ]
    clock.lap("read")
    start.wait(graph.n)
    clock.lap("set-up")
    # single paths are found from the distances; only all predecessors need room
    with progress.stage(f"{graph.n:,} vertices"):
        call = Call(
            dtype=request.dtype or None,
            predecessors=request.paths and bool(request.out) and pairs is None,
            kernel=request.kernel or AUTO.id,
            device=request.device or None,
            devices=request.devices or None,
            tell=progress.tell,
            clock=clock,
        )
        result = solve_one(graph, call, *ends)
    size = 0
    if request.out:
        with progress.stage("writing"):
            size = output.save(result, request.out, pairs, request.paths, progress.tell)
            clock.lap("write")
    if request.json:
        _print_json(request, graph, result, pairs, clock.seconds)
    else:
        _say(request, graph, result, pairs)
    stats = result.stats
    ranks = f" over {len(stats.devices)} ranks" if stats.devices else ""
    reason = f"; {stats.reason}" if stats.reason else ""
    way = f"{stats.kernel}{f' (tile {stats.tile})' if stats.tile else ''}{ranks}, {stats.dtype}, {stats.proof}{reason}"
    report(f"{graph.name}: {graph.n:,} vertices, {stats.edges:,} edges; {way}")
    report(f"{output.spent(clock.seconds)}{f'; {units.memory(size)} written' if request.out else ''}")


def _pairs(request: argparse.Namespace, graph: GivenGraph) -> list[tuple[int, int]] | None:
    if request.source:
        return [(graph.vertices.index(request.source), graph.vertices.index(request.target))]
    return output.read_pairs(request.pairs, graph.vertices) if request.pairs else None


def _say(request: argparse.Namespace, graph: GivenGraph, result: Result, pairs: list[tuple[int, int]] | None) -> None:
    if request.source and pairs:
        print("\n".join(output.path_lines(result, graph.adjacency, *pairs[0])))
    elif pairs is not None and not request.out:
        output.pair_table(result, pairs, request.paths, sys.stdout)
    if request.summary or not (request.out or pairs):
        from fwtui.graphs.summary import summarise

        print("\n".join(output.summary_lines(summarise(result.distances), graph.vertices, result.stats)))
    if request.out.lower().endswith(".npy") and not graph.vertices.numbered:
        report(".npy holds no names: row i is the i-th vertex in the file; .npz keeps them")


def _print_json(
    request: argparse.Namespace,
    graph: GivenGraph,
    result: Result,
    pairs: list[tuple[int, int]] | None,
    seconds: Mapping[str, float],
) -> None:
    from fwtui.common.as_json import as_json

    listed = pairs is not None and not request.out
    rows = [*output.pair_objects(result, pairs or (), request.paths or bool(request.source))] if listed else []
    if request.summary or not listed:
        rows.append(output.solved_object(result, graph.name, graph.vertices, seconds, request.summary or not request.out))
    for row in rows:
        print(as_json(row))


class SolveProgress:
    """Shows stage, share and time left on a terminal, nothing elsewhere."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic):
        self._stream, self._now = stream, now
        self._shown = stream.isatty()
        self._stage = ""
        self._begun = self._last = 0.0
        self._written = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._stage = name
        self._begun = self._last = self._now()
        with undone_by(self._wipe):
            try:
                yield
            finally:
                self._wipe()

    def _wipe(self) -> None:
        if self._written:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._written = False

    def tell(self, share: float) -> None:
        now = self._now()
        if not self._shown or now - self._last < _EVERY or now - self._begun < _PATIENCE or share <= 0:
            return
        self._last, self._written = now, True
        left = (now - self._begun) * (1 - share) / share
        self._stream.write(f"\r\x1b[Kfwtui: {self._stage}: {units.percent(share)}, {units.duration(left)} left")
        self._stream.flush()
