"""A dense graph of everyday size in host memory: looked through and finished by compiled code."""

from __future__ import annotations

import numpy as np

from fwtui.common import units
from fwtui.engine.engine import Engine
from fwtui.graphs.adjacency import Adjacency
from fwtui.graphs.bounds import facts_of, longest
from fwtui.graphs.graph import Facts
from fwtui.graphs.library_objects import LazyGraph, is_plain
from fwtui.solver.host_graph import HostGraph
from fwtui.solver.launching import Clock
from fwtui_kernels.one_core import BAD, EDGES, FRACTION, HIGH, LOW, MISSING, ZEROS, OneCore
from fwtui_kernels.plan import NO_EDGE, Buffers, Program

_ROUNDS = 16  # of a search, at most


class OneCoreGraph(HostGraph):
    """A graph for OneCore, with the interface of HostGraph; a sparse one is looked through by NumPy."""

    def __init__(self, origin: Adjacency | LazyGraph, engine: Engine, code: OneCore):
        super().__init__(origin, engine)
        self._code = code
        parts = origin.dense if isinstance(origin, Adjacency) else origin.parts
        dense = isinstance(parts, np.ndarray) and is_plain(parts)
        self._given = np.ascontiguousarray(parts, np.float64) if dense else None
        if self._given is not None:
            told = code.survey(self._given)
            self._facts = facts_of(self.n, int(told[EDGES]), told[LOW], told[HIGH], told[FRACTION] == 0, told[FRACTION] <= 1)
            unclear = isinstance(origin, LazyGraph) and told[ZEROS] and not told[MISSING]  # no edges, or edges of weight 0?
            if told[BAD] or unclear or max(-(self._facts.low or 0), self._facts.high or 0) > units.LARGEST:
                self._given = None  # the host checks it, and says what is wrong

    @property
    def facts(self) -> Facts:
        return super().facts if self._given is None else self._facts

    def reach(self, enough: float) -> tuple[float, bool]:
        if self._given is None:
            return super().reach(enough)
        ends = outward, inward = np.full((2, self.n), np.inf)
        ends[:, 0] = 0
        for _ in range(_ROUNDS):
            before = ends.copy()
            self._code.search(self._given, outward, inward)
            if 2 * ends.max() < enough or (ends == before).all():
                break
        return longest(outward, inward)

    def load(self, program: Program, buffers: Buffers, clock: Clock) -> None:
        if self._given is None:
            super().load(program, buffers, clock)
            return
        self._code.enter(self._given, float(NO_EDGE[program.shape.dtype]), buffers[0])
        clock.lap("prepare")

    def look(self, distances: np.ndarray, far: float) -> tuple[float, np.ndarray]:
        return self._code.largest(distances, far), distances.diagonal()[: self.n].copy()

    def finished(self, distances: np.ndarray, far: float, wide: bool) -> np.ndarray:
        result = np.empty((self.n, self.n), np.float64 if wide else np.float32)
        self._code.leave(distances, far, result)
        return result
