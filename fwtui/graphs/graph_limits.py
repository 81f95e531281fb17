"""Limits of a graph file: data type, number of vertices, free memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.units import LARGEST
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import held_below
from fwtui_kernels.plan import FLOATS, ITEMSIZE, NO_EDGE

MAX_VERTICES = 1 << 20
_COPIES, _CANONICAL = 5, 4  # matrices in memory during a run; bytes per cell of the canonical distances


class GraphLimits(NamedTuple):
    """Limits of a graph file; without a dtype any finite weight is accepted, and memory for the matrix is not checked."""

    dtype: str | None = None
    most: int = MAX_VERTICES
    free_bytes: int = 0
    chunk: int = 1 << 22  # bytes parsed at once
    max_unmerged: int = 1 << 20  # arcs in memory before parallel ones are merged

    def check_size(self, n: int, name: str, verb: str) -> None:
        """Raise Refused if a file has or declares too many vertices."""
        if not 1 <= n <= self.most:
            raise Refused(f"{name} {verb} {n:,} vertices, outside 1 to {self.most:,}; choose another graph")
        if self.dtype is None:
            return
        needed = n**2 * (ITEMSIZE[self.dtype] * _COPIES + _CANONICAL)
        if needed > self.free_bytes:
            raise Refused(
                f"{name} needs {needed / 2**30:.3g} GiB for {n:,} vertices in {self.dtype}, "
                f"but only {self.free_bytes / 2**30:.3g} GiB is free; choose a smaller graph or a narrower type"
            )

    def unfit(self, weight: float) -> str | None:
        """Explain why a weight cannot be used; None if it can."""
        if not np.isfinite(weight):
            return "is not a finite number; remove the line"
        dtype = self.dtype
        if dtype is None or dtype in FLOATS:
            return f"is beyond {LARGEST:g}; scale the weights down" if abs(weight) > LARGEST else None
        if weight != int(weight):
            return f"is not an integer, which {dtype} needs; choose float32 or float64"
        if dtype == "int16" and weight < 0:
            return "is negative, which int16 does not support; choose int32 or float32"
        if abs(weight) >= NO_EDGE[dtype]:
            way = "int32" if dtype == "int16" else "smaller weights"
            return f"does not fit {dtype}, which ends at {NO_EDGE[dtype] - 1}; choose {way}"
        return None

    def check_weights(self, graph: Adjacency, name: str) -> None:
        """Raise Refused for a weight that does not fit; other checks, with line numbers, have missed it, as in a matrix."""
        facts = graph.facts
        for weight in (facts.low, facts.high, None if facts.integer else _fraction(graph)):
            if weight is not None and (reason := self.unfit(weight)):
                raise Refused(f"{name}: weight {weight:g} {reason}")
        if facts.integer and self.dtype in FLOATS and facts.largest_weight > (most := held_below(facts, self.dtype)):
            way = "int32 or float64" if self.dtype == "float32" else "smaller weights"
            raise Refused(f"{name} has integer weights beyond {most:,.0f}, which {self.dtype} cannot hold exactly; choose {way}")


@contextmanager
def refused_for_room(name: str, dtype: str | None) -> Iterator[None]:
    """Convert a MemoryError in the block to Refused, since free memory may shrink after the size check."""
    try:
        yield
    except MemoryError:
        how, way = ("", "") if dtype is None else (f" as a dense {dtype} matrix", " or a narrower type")
        raise Refused(f"{name} does not fit into memory{how}; choose a smaller graph{way}") from None


@contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix the message of a Refused in the block with the file's name."""
    try:
        yield
    except Refused as refusal:
        raise Refused(f"{name}: {refusal}") from None


def _fraction(graph: Adjacency) -> float | None:
    fractional = (arcs.weights[arcs.weights != np.rint(arcs.weights)] for arcs in graph.pieces())
    return next((float(weights[0]) for weights in fractional if len(weights)), None)
