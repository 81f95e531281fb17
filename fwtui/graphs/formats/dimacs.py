"""The header of a DIMACS shortest-path file: "p sp n m" after comments, then m lines "a from to weight"."""

from __future__ import annotations

import io

import numpy as np

from fwtui.common.errors import Refused
from fwtui.common.text import clean
from fwtui.graphs.number_lines import CHUNK, Arcs, Layout

_SHORTEST = len("a 1 1 0")


def layout(file: io.BufferedReader, name: str, size: int) -> Layout:
    """What the header promises; the file stands at the line after it."""
    number = 0
    while line := file.readline(CHUNK):
        number += 1
        fields = line.decode("latin1").split()
        if not fields or fields[0].startswith("c"):
            continue
        if len(fields) != 4 or fields[:2] != ["p", "sp"] or not all(x.isdecimal() and len(x) < 16 for x in fields[2:]):
            shown = clean(" ".join(fields))[:40]
            raise Refused(f"{name}, line {number}: {shown!r} stands where 'p sp vertices arcs' should; put that line first")
        n, rows = int(fields[2]), int(fields[3])
        if rows * _SHORTEST > size:
            raise Refused(
                f"{name}, line {number}: {rows:,} arcs do not fit into {size:,} bytes; fetch the file again, or correct the count"
            )
        return Layout(n, rows, number + 1, "a", "c", "uvw", _arcs)
    raise Refused(f"{name} has no line 'p sp vertices arcs'; put it before the arcs")


def _arcs(rows: np.ndarray, before: int) -> Arcs:
    return Arcs(rows[:, 0].astype(np.int64) - 1, rows[:, 1].astype(np.int64) - 1, rows[:, 2])
