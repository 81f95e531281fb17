"""Summarises a run's distances, after its clocks have stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec
import numpy as np

from fwtui.analysis.answers import stated
from fwtui.common.units import LARGEST
from fwtui.graphs.canonical import no_distance
from fwtui.graphs.graph import GraphInput, blocks
from fwtui.graphs.summary import summarise
from fwtui.graphs.vertices import Vertices
from fwtui.stream import events

ALWAYS = 512  # vertices up to which every run is summarised: takes some milliseconds
KEPT_BYTES = 1 << 30  # most bytes of distances kept until a user asks


@dataclass(frozen=True)
class Distances:
    """Canonical distances of a run, and the names of its vertices."""

    run: int
    cells: np.ndarray
    vertices: Vertices
    checksum: str


def of_run(run: int, cells: np.ndarray, graph: GraphInput, checksum: str) -> Distances:
    """Of many graphs those of the first; the checksum is that of all."""
    return Distances(run, cells[: graph.n], graph.vertices or Vertices(range(graph.n)), checksum)


def answers(found: Distances) -> events.Answers:
    """The event without its time; `seconds` is the time to compute it. Without a summary, its note says why."""
    begin = time.perf_counter()
    if any(no_distance(found.cells[rows]).any() for rows in blocks(found.cells)):
        note = "some distances are not numbers; run it again with verification"
    else:
        summary = summarise(found.cells, events.BINS, events.CELLS, events.CELLS)
        if max(map(abs, (summary.edges[0], summary.edges[-1]))) <= LARGEST:
            told = stated(summary, found.vertices, run=found.run, checksum=found.checksum)
            return msgspec.structs.replace(told, seconds=time.perf_counter() - begin)
        note = f"distances beyond {LARGEST:g} are not summarised; scale the weights down"
    return events.Answers(t=0.0, run=found.run, checksum=found.checksum, note=note)
