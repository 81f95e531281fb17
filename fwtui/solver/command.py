"""The work of `fwtui solve`: read a graph file, find its shortest paths, print or save them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from fwtui.common import units
from fwtui.common.atomic_file import check_writable
from fwtui.common.errors import Refused
from fwtui.common.signals import undo_on_signal
from fwtui.common.streams import report
from fwtui.common.text import quoted, sanitise
from fwtui.graphs.file_options import STDIN, FileOptions
from fwtui.graphs.graph_file import MAX_BYTES, STDIN_NAME, open_graph_file
from fwtui.graphs.graph_limits import GraphLimits
from fwtui.graphs.graph_loader import load_lazily
from fwtui.graphs.text_rows import Form, GraphFile, fields_in
from fwtui.graphs.vertices import Vertices
from fwtui.solver import output
from fwtui.solver.call import Call, Clock
from fwtui.solver.solve import solve_one
from fwtui_kernels.auto import AUTO

_EVERY = 0.1  # seconds
_PATIENCE = 0.5  # seconds before the first output


def carry_out(request: argparse.Namespace, begun: float) -> None:
    """Carry out the command line, which began at `begun` of time.monotonic().

    Raises Refused, and SciPy's NegativeCycleError.
    """
    if request.out:
        output.check_out(request.out, bool(request.pairs or request.source), request.paths)
        check_writable(request.out, request.graph, request.pairs, request.sources, request.targets, force=request.force)
    elif request.paths and not request.pairs:
        raise Refused("--paths needs an output file; pass -o OUT or --pairs FILE too, or --from and --to for one path")
    progress = SolveProgress(sys.stderr)
    clock = Clock(time.monotonic() - begun)
    clock.lap("set-up")
    with progress.stage("reading"):
        options = FileOptions(request.weight, request.no_edge, request.undirected)
        graph = load_lazily(request.graph, progress=progress.report, options=options)
        pairs = None
        if request.source:
            pairs = [(graph.vertices.index(request.source), graph.vertices.index(request.target))]
        elif request.pairs:
            pairs = [(source, target) for source, target in _listed(request.pairs, graph.vertices, ("source", "target"), "pairs")]
        rows, columns = (
            np.array(_listed(file, graph.vertices, (title,), f"{title}s", once=True))[:, 0] if file else None
            for file, title in ((request.sources, "source"), (request.targets, "target"))
        )
    clock.lap("read")
    # single paths are found from the distances; only all predecessors need room
    with progress.stage(units.vertices(graph.n)):
        call = Call(
            dtype=request.dtype or None,
            predecessors=request.paths and bool(request.out) and pairs is None,
            kernel=request.kernel or AUTO.id,
            device=request.device or None,
            report_progress=progress.report,
            clock=clock,
        )
        result = solve_one(graph, call, rows, columns)
    size = 0
    if request.out:
        with progress.stage("writing"):
            size = output.save(result, request.out, pairs, request.paths, progress.report, force=request.force)
            clock.lap("write")
    output.print_answer(request, graph, result, pairs, clock.seconds)
    stats = result.stats
    reason = f"; {stats.reason}" if stats.reason else ""
    way = f"{stats.kernel}{f' (tile {stats.tile})' if stats.tile else ''}, {stats.dtype}, {stats.proof}{reason}"
    report(f"{graph.name}: {units.vertices(graph.n)}, {units.counted(stats.edges, 'edge')}; {way}")
    if graph.notes:
        report(f"{graph.name}: {'; '.join(graph.notes)}")
    report(f"{output.spent(clock.seconds)}{f'; {units.memory(size)} written' if request.out else ''}")


def _listed(path: str, vertices: Vertices, titles: tuple[str, ...], what: str, once: bool = False) -> list[tuple[int, ...]]:
    """Read the vertices of a file, one or two per line, under optional titles. Raises Refused with file and line."""
    name = STDIN_NAME if path == STDIN else sanitise(Path(path).name)
    cycles, rows_seen = list[tuple[int, ...]](), set[tuple[int, ...]]()
    with open_graph_file(path, name, MAX_BYTES) as (file, size):
        form, source = Form("", "\t" if b"\t" in file.peek() else ","), GraphFile(file, name, size, MAX_BYTES, "", GraphLimits())
        for line, fields in (row for at, chunk in source.chunks(quotes=True) for row in fields_in(chunk, at, form, source)):
            if not cycles and tuple(f.lower() for f in fields[: len(titles)]) == titles:
                continue
            if len(fields) < len(titles):
                raise Refused(f"{name}, line {line} has 1 field, and a pair has 2; write {','.join(titles)}")
            try:
                row = tuple(vertices.index(field) for field in fields[: len(titles)])
            except Refused as refusal:
                raise Refused(f"{name}, line {line}: {refusal}") from None
            if once and row in rows_seen:
                raise Refused(f"{name}, line {line}: {quoted(fields[0])} occurs twice; list each vertex once")
            rows_seen.add(row)
            cycles.append(row)
    if not cycles:
        raise Refused(f"{name} has no {what}; write {','.join(titles)} on each line")
    return cycles


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
        with undo_on_signal(self._wipe):
            try:
                yield
            finally:
                self._wipe()

    def _wipe(self) -> None:
        if self._written:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._written = False

    def report(self, share: float) -> None:
        now = self._now()
        if not self._shown or now - self._last < _EVERY or now - self._begun < _PATIENCE or share <= 0:
            return
        self._last, self._written = now, True
        left = (now - self._begun) * (1 - share) / share
        self._stream.write(f"\r\x1b[Kfwtui: {self._stage}: {units.percent(share)}, {units.duration(left)} left")
        self._stream.flush()
